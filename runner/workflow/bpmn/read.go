package bpmn

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner/workflow/expression"
)

// Options says how to read a file.
type Options struct {
	// Process is the id of the process to run. If it is empty, the only process that the
	// file marks as executable runs, or the only process with elements.
	Process string

	// Outside says that only the file is known: a call activity may run a diagram that is
	// stored elsewhere, see [Embed]. Without it, such a call is a problem of the file.
	Outside bool

	prefix string  // for the ids of a file that is called
	caller *caller // of the file that calls this one
}

// Read reads a file of BPMN 2.0. It reads at most [MaxFile] bytes. A file that cannot
// run is an [*Error] with all problems that were found; nothing of the file is ignored
// without an error or a warning, except what describes the look of the diagram and the
// extension elements of unknown tools.
func Read(input io.Reader, o Options) (*Definitions, error) {
	data, err := io.ReadAll(io.LimitReader(input, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the diagram: %w", err)
	}
	if len(data) <= MaxFile {
		data = UTF8(data)
	}
	if len(data) > MaxFile {
		return nil, &Error{
			Problems: []Problem{{Line: 1, Message: fmt.Sprintf("the file is larger than %d MiB", MaxFile>>20), Hint: "remove embedded pictures and unused processes"}},
			kind:     tapedeck.TooLarge,
		}
	}
	root, problems, warnings := parse(data)
	if root == nil {
		return nil, errorOf(problems)
	}
	if o.prefix != "" {
		root.prefix(o.prefix)
	}
	if o.caller == nil {
		o.caller = &caller{files: embeddedIn(root), read: map[string]called{}}
	}
	r := &reader{
		Definitions: &Definitions{Name: root.attr("name"), Exporter: exporter(root), Digest: DigestOf(data), elements: map[string]*Node{}},
		options:     o, problems: problems, warnings: warnings, language: root.attr("expressionLanguage"), shared: map[string]*element{}, global: map[string]bool{}, adopted: map[*Definitions]bool{},
		lost: map[string]bool{}, incomplete: map[*Scope]bool{}, associations: associationsIn(root),
	}
	r.checkOwn(root, at{})
	if p := inline(root); p != nil {
		return nil, errorOf(append(r.problems, *p))
	}
	r.definitions(root)
	r.choose(root.line)
	r.calls()
	reached := r.reached()
	for p := range reached {
		r.check(p)
	}
	r.Warnings = ofProcesses(r.warnings, reached)
	sortProblems(r.Warnings)
	r.Warnings = r.Warnings[:min(len(r.Warnings), maxWarnings)]
	var bad *Error
	if errors.As(errorOf(ofProcesses(r.problems, reached)), &bad) {
		bad.Processes = r.several
		return nil, bad
	}
	return r.Definitions, nil
}

// DigestOf returns the digest of a file, as in [Definitions].
func DigestOf(file []byte) string {
	digest := sha256.Sum256(file)
	return hex.EncodeToString(digest[:])
}

func exporter(root *element) string {
	return strings.TrimSpace(root.attr("exporter") + " " + root.attr("exporterVersion"))
}

// ofProcesses returns the problems of the file and of these processes: what a pool
// cannot do that does not run is no problem.
func ofProcesses(problems []Problem, reached map[*Process]bool) []Problem {
	return slices.DeleteFunc(problems, func(p Problem) bool { return p.in != nil && !reached[p.in] })
}

// A reader makes definitions of the tree of a file.
type reader struct {
	*Definitions
	options  Options
	problems []Problem
	warnings []Problem
	language string                // of expressions that name none; may be empty
	process  *Process              // the one that is read
	shared   map[string]*element   // messages, signals, errors and escalations by id
	global   map[string]bool       // ids of global tasks
	forms    map[string]string     // embedded forms of the process by id
	lanes    map[string]string     // names of lanes by the id of their elements
	several  []string              // processes of which one must be named
	lost     map[string]bool       // ids of elements that were refused and are in no scope
	adopted  map[*Definitions]bool // called files whose elements are among those of this file

	incomplete map[*Scope]bool // scopes that lack an element that was refused

	associations map[string][]string // the targets of associations, by their source
}

// at is what a problem is about.
type at struct {
	line     int
	id, name string
}

func atElement(e *element) at { return at{e.line, idOf(e), e.attr("name")} }
func atNode(n *Node) at       { return at{n.Line, n.ID, n.Name} }

func (r *reader) refuse(where at, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{Line: where.line, Element: where.id, Name: where.name, Message: fmt.Sprintf(format, args...), Hint: hint, in: r.process})
}

func (r *reader) warn(where at, hint, format string, args ...any) {
	r.warnings = append(r.warnings, Problem{Line: where.line, Element: where.id, Name: where.name, Message: fmt.Sprintf(format, args...), Hint: hint, in: r.process})
}

// refuseError adds an error of an expression with the hint that it has.
func (r *reader) refuseError(where at, err error) {
	hint := ""
	var e *tapedeck.Error
	if errors.As(err, &e) {
		hint = e.Hint
	}
	r.refuse(where, hint, "%v", err)
}

// ignored are elements of BPMN that do not change what a run does.
var ignored = words(`documentation extensionElements incoming outgoing import itemDefinition dataStore category
	interface resource partnerEntity partnerRole relationship endPoint correlationProperty correlationSubscription
	dataObject dataObjectReference dataStoreReference textAnnotation association group ioSpecification ioBinding property
	dataInputAssociation dataOutputAssociation dataInput dataOutput inputSet outputSet potentialOwner humanPerformer performer
	resourceRole auditing monitoring supports rendering eventDefinitionRef collaboration categoryValueRef
	participantAssociation conversation text categoryValue globalTask globalUserTask globalManualTask globalScriptTask globalBusinessRuleTask`)

// thrown are the elements of a file that events refer to.
var thrown = words("message signal error escalation")

func words(text string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		out[word] = true
	}
	return out
}

// definitions reads what is directly in the file.
func (r *reader) definitions(root *element) {
	pools := map[string]string{}
	for _, e := range root.children {
		if e.Space != modelNamespace {
			continue
		}
		if thrown[e.Local] {
			r.shared[idOf(e)] = e
		}
		switch e.Local {
		case "globalTask", "globalUserTask", "globalManualTask", "globalScriptTask", "globalBusinessRuleTask":
			r.global[idOf(e)] = true
		case "collaboration":
			for _, c := range e.children {
				if c.Local == "participant" && c.attr("name") != "" {
					pools[local(c.attr("processRef"))] = c.attr("name")
				}
			}
		}
	}
	for _, e := range root.children {
		switch {
		case e.Space != modelNamespace, ignored[e.Local], thrown[e.Local], isTrigger(e):
		case e.Local == "extension":
			r.extension(root, e)
		case e.Local == "process":
			r.readProcess(e, pools[idOf(e)])
		case e.Local == "choreography" || e.Local == "globalChoreographyTask" || e.Local == "globalConversation":
			r.process = nil
			r.refuse(atElement(e), "draw a process, or a collaboration with one", "%s is not supported", e.Local)
		default:
			r.process = nil
			r.refuse(atElement(e), "", "%s is no element of BPMN 2.0 that may be in definitions", e.Local)
		}
	}
	r.process = nil
}

// extension refuses what a file says that no one may run it without knowing. Any other
// extension only says which elements of tools the file may have.
func (r *reader) extension(root, e *element) {
	r.process = nil
	name := e.attr("definition")
	prefix, _, _ := strings.Cut(name, ":")
	space, _ := e.lookup("xmlns", prefix)
	if space == "" {
		space, _ = root.lookup("xmlns", prefix)
	}
	if r.flag(e, atElement(e), "mustUnderstand", false) && !known(space) {
		r.refuse(atElement(e), "remove the extension if a run does not need it, or set mustUnderstand to false", "the file says that its extension %.100q must be understood, and it is not known here", name)
	}
}

func (r *reader) readProcess(e *element, pool string) {
	name := e.attr("name")
	if name == "" {
		name = pool
	}
	r.process = nil // whether a process is executable concerns the whole file
	p := &Process{ID: idOf(e), Name: name, Line: e.line, Executable: r.flag(e, atElement(e), "isExecutable", false)}
	r.process, r.lanes, r.forms = p, map[string]string{}, map[string]string{}
	r.Processes = append(r.Processes, p)
	r.checkID(atElement(e))
	for _, x := range e.extensions() {
		if x.Space == zeebeNamespace && x.Local == "userTaskForm" {
			r.forms[idOf(x)] = x.text
		}
	}
	r.processExtensions(e)
	r.readLanes(e, 0)
	r.scope(e, &p.Scope, nil)
}

func (r *reader) readLanes(e *element, level int) {
	if level > maxLevels {
		return
	}
	for _, set := range e.children {
		if set.Local != "laneSet" && set.Local != "childLaneSet" {
			continue
		}
		for _, lane := range set.children {
			name := lane.attr("name")
			if name == "" {
				name = idOf(lane)
			}
			for _, c := range lane.children {
				if c.Local == "flowNodeRef" {
					r.lanes[local(c.content())] = name
				}
			}
			r.readLanes(lane, level+1)
		}
	}
}

// local returns a reference without its prefix.
func local(ref string) string { return ref[strings.LastIndexByte(ref, ':')+1:] }

var idPattern = regexp.MustCompile(`^[\p{L}_][\p{L}\p{M}\p{N}_.\-]{0,199}$`)

// checkID checks that an element has an id, and that it is one.
func (r *reader) checkID(where at) bool {
	switch {
	case where.id == "":
		r.refuse(where, "every modeler writes one", "the element has no id")
	case !idPattern.MatchString(where.id):
		r.refuse(where, "an id begins with a letter or _ and has at most 200 letters, digits, dots, hyphens and underscores", "%.60q is not an id", where.id)
	default:
		return true
	}
	return false
}

// variablePattern allows single spaces, as FEEL does.
var variablePattern = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*(?: [\p{L}\p{N}_]+)*$`)

// variable checks that a name can be the name of a variable.
func (r *reader) variable(where at, what, name string) string {
	if len(name) > 200 || !variablePattern.MatchString(name) || strings.HasPrefix(name, "__") {
		r.refuse(where, "a name has at most 200 letters, digits, underscores and single spaces, and does not begin with a digit or with two underscores", "%s %.60q is not the name of a variable", what, name)
	}
	return name
}

// choose finds the process that a run executes.
func (r *reader) choose(line int) {
	if len(r.Processes) == 0 {
		r.refuse(at{line: line}, "", "the file has no process")
		return
	}
	if id := r.options.Process; id != "" {
		if r.Main = r.Process(id); r.Main == nil {
			r.refuse(at{line: line}, "the processes are "+strings.Join(processIDs(r.Processes), ", "), "the file has no process %q", id)
		}
		return
	}
	called := map[string]bool{}
	for _, n := range r.elements {
		called[n.CalledProcess] = true
	}
	candidates := func(keep func(p *Process) bool) []*Process {
		var out []*Process
		for _, p := range r.Processes {
			if len(p.Nodes) > 0 && keep(p) {
				out = append(out, p)
			}
		}
		return out
	}
	found := candidates(func(p *Process) bool { return p.Executable })
	if len(found) == 0 {
		found = candidates(func(*Process) bool { return true })
	}
	if top := slices.DeleteFunc(slices.Clone(found), func(p *Process) bool { return called[p.ID] }); len(top) > 0 {
		found = top
	}
	switch len(found) {
	case 0:
		r.refuse(at{line: line}, "", "no process of the file has an element")
	case 1:
		r.Main = found[0]
		if !r.Main.Executable {
			r.process = r.Main
			r.warn(at{r.Main.Line, r.Main.ID, r.Main.Name}, "", "the process is not marked as executable; it runs, because it is the only one")
		}
	default:
		r.several = processIDs(found)
		r.refuse(at{line: line}, "name one, or mark only one as executable; the processes are "+strings.Join(r.several, ", "), "the file has %d processes that could run", len(found))
	}
	r.process = nil
}

func processIDs(ps []*Process) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.ID)
	}
	return out
}

// each calls f for every node of a scope and of the sub-processes in it.
func each(s *Scope, f func(n *Node)) {
	for _, n := range s.Nodes {
		f(n)
		if n.Scope != nil {
			each(n.Scope, f)
		}
	}
}

// reached returns the processes of the file that a run can reach.
func (r *reader) reached() map[*Process]bool {
	out := map[*Process]bool{}
	var visit func(p *Process)
	visit = func(p *Process) {
		if p == nil || out[p] {
			return
		}
		out[p] = true
		each(&p.Scope, func(n *Node) {
			if n.CalledIn == r.Definitions {
				visit(n.Called)
			}
		})
	}
	visit(r.Main)
	return out
}

// notJUEL matches what is an expression in Camunda 7 only.
var notJUEL = regexp.MustCompile(`\$\{\s*([\p{L}_][^{}\n]{0,80}?)\s*\}`)

// value compiles a value in the form of Camunda 8 and of this project.
func (r *reader) value(where at, text string) *expression.Value {
	if found := notJUEL.FindStringSubmatch(text); found != nil {
		r.warn(where, "write {{ "+found[1]+" }} for its value", "%s is not read as an expression here: it stays as it is", found[0])
	}
	return r.compiled(where, expression.ParseValue, text)
}

func (r *reader) compiled(where at, parse func(string) (*expression.Value, error), text string) *expression.Value {
	v, err := parse(text)
	if err != nil {
		r.refuseError(where, err)
		return expression.Literal(text)
	}
	return v
}

// condition compiles a condition; it returns nil for an empty one.
func (r *reader) condition(where at, text string) *expression.Program {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	p, err := expression.Compile(text)
	if err != nil {
		r.refuseError(where, err)
	}
	return p
}
