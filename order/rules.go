package order

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A rule checks whether an event of a type may follow. It returns the run after
// the event: the same run if the event opens and closes nothing, nil if it ends
// the run.
type rule func(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error)

// rules has a rule for every AG-UI type.
var rules = map[string]rule{
	tapedeck.RunStarted:  nowhere, // see [Verifier.start]
	tapedeck.RunFinished: finishes,
	tapedeck.RunError:    func(*run, *tapedeck.Event, *payload.Checked) (*run, error) { return nil, nil },

	tapedeck.TextMessageStart:        opens(textMessage),
	tapedeck.TextMessageContent:      continues(textMessage),
	tapedeck.TextMessageEnd:          closes(textMessage),
	tapedeck.ToolCallStart:           opens(toolCall),
	tapedeck.ToolCallArgs:            continues(toolCall),
	tapedeck.ToolCallEnd:             closes(toolCall),
	tapedeck.ReasoningMessageStart:   opens(reasoningMessage),
	tapedeck.ReasoningMessageContent: continues(reasoningMessage),
	tapedeck.ReasoningMessageEnd:     closes(reasoningMessage),
	tapedeck.ReasoningStart:          opens(reasoningSpan),
	tapedeck.ReasoningEnd:            closes(reasoningSpan),
	tapedeck.StepStarted:             opens(step),
	tapedeck.StepFinished:            closes(step),
	tapedeck.SubagentStarted:         startsSubagent,
	tapedeck.SubagentFinished:        endsSubagent,
	tapedeck.SubagentError:           endsSubagent,

	tapedeck.ToolCallResult:          answers,
	tapedeck.ActivitySnapshot:        showsActivity,
	tapedeck.ActivityDelta:           changesActivity,
	tapedeck.ReasoningEncryptedValue: encrypts,
	tapedeck.MessagesSnapshot:        restates,
	tapedeck.StateSnapshot:           anywhere,
	tapedeck.StateDelta:              anywhere,
	tapedeck.Raw:                     anywhere,
	tapedeck.Custom:                  anywhere,

	tapedeck.TextMessageChunk:      shorthand,
	tapedeck.ToolCallChunk:         shorthand,
	tapedeck.ReasoningMessageChunk: shorthand,
}

func anywhere(r *run, _ *tapedeck.Event, _ *payload.Checked) (*run, error) { return r, nil }

func nowhere(_ *run, e *tapedeck.Event, _ *payload.Checked) (*run, error) {
	return nil, tapedeck.Errorf(tapedeck.Conflict, "a %s is not allowed here", e.Type)
}

func shorthand(_ *run, e *tapedeck.Event, _ *payload.Checked) (*run, error) {
	return nil, tapedeck.Errorf(tapedeck.Invalid, "a %s is shorthand that the log does not keep", e.Type).WithHint("send START, CONTENT or ARGS, and END")
}

func opens(k kind) rule {
	return func(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error) {
		id, tag := c.Get(kinds[k].member), c.String("subagentRunId")
		if o := r.find(k, id, tag); o != nil {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "%s %s is already open", kinds[k].noun, jsonobj.Quote(o.id)).WithHint("send %s first", kinds[k].end)
		}
		o := opened{kind: k, id: jsonobj.StringOf(id), owner: tag, instance: e.Instance, turn: e.Turn}
		next, err := r.claim(&o, c)
		if err != nil {
			return nil, err
		}
		if err := r.checkSpace(); err != nil {
			return nil, err
		}
		o.chunks = chunksOf(k, c)
		return next.with(o), nil
	}
}

func (r *run) checkSpace() error {
	if len(r.open) < maxOpenThings {
		return nil
	}
	return tapedeck.Errorf(tapedeck.TooLarge, "run %s has %d things open", r.Invocation, len(r.open)).WithHint("close some of them")
}

// claim determines the owner of a thing that is being opened. A thing that was
// open before keeps its owner.
func (r *run) claim(o *opened, c *payload.Checked) (*run, error) {
	if o.kind == step {
		return r, nil // a step has its owner in its key
	}
	tagged := o.owner != ""
	if o.kind == toolCall {
		inherits, err := r.inherit(o, c.String("parentMessageId"))
		if err != nil {
			return nil, err
		}
		tagged = tagged || inherits
	}
	owner, known := r.ownerOf(o.kind, o.id)
	if !known {
		return r.setOwner(o.kind, o.id, o.owner), nil
	}
	if tagged && o.owner != owner {
		return nil, foreign(o.kind, o.id, owner, o.owner)
	}
	o.owner = owner
	return r, nil
}

// inherit gives an untagged tool call the owner of its message, and reports
// whether that message is known.
func (r *run) inherit(o *opened, parent string) (bool, error) {
	owner, known := r.ownerOf(textMessage, parent)
	if known && o.owner != "" && o.owner != owner {
		return false, tapedeck.Errorf(tapedeck.Conflict, "tool call %s belongs to %s, but its message %s belongs to %s", jsonobj.Quote(o.id), author(o.owner), jsonobj.Quote(parent), author(owner))
	}
	if known {
		o.owner = owner
	}
	return known, nil
}

func author(owner string) string {
	if owner == "" {
		return "the agent itself"
	}
	return "sub-agent " + jsonobj.Quote(owner)
}

// foreign returns the error for an event that is tagged with another owner than
// its thing has.
func foreign(k kind, id, owner, tag string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "%s %s belongs to %s, not to %s", kinds[k].noun, jsonobj.Quote(id), author(owner), author(tag)).
		WithHint("leave subagentRunId out, or send that of the event that opened it")
}

// opener returns the open thing that an event continues or closes.
func (r *run) opener(k kind, e *tapedeck.Event, c *payload.Checked) (*opened, error) {
	id, tag := c.Get(kinds[k].member), c.Get("subagentRunId")
	owner := ""
	if k == step {
		owner = jsonobj.StringOf(tag)
	}
	o := r.find(k, id, owner)
	switch {
	case o == nil && k == step:
		return nil, r.noStep(id, owner)
	case o == nil:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "%s %s is not open in run %s", kinds[k].noun, jsonobj.Quote(jsonobj.StringOf(id)), r.Invocation).
			WithHint("send %s before %s", kinds[k].start, e.Type)
	case tag != nil && !jsonobj.StringIs(tag, o.owner):
		return nil, foreign(k, o.id, o.owner, jsonobj.StringOf(tag))
	}
	return o, nil
}

// noStep explains why a step cannot be finished: often another owner has begun
// it.
func (r *run) noStep(id []byte, owner string) error {
	for i := range r.open {
		if o := &r.open[i]; o.kind == step && jsonobj.StringIs(id, o.id) {
			return tapedeck.Errorf(tapedeck.Conflict, "step %s belongs to %s, not to %s", jsonobj.Quote(o.id), author(o.owner), author(owner)).
				WithHint("a step is finished with the subagentRunId with which it began")
		}
	}
	return tapedeck.Errorf(tapedeck.Conflict, "step %s is not open in run %s", jsonobj.Quote(jsonobj.StringOf(id)), r.Invocation).WithHint("send %s first", tapedeck.StepStarted)
}

func continues(k kind) rule {
	return func(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error) {
		_, err := r.opener(k, e, c)
		return r, err
	}
}

func closes(k kind) rule {
	return func(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error) {
		o, err := r.opener(k, e, c)
		if err != nil {
			return nil, err
		}
		return r.without(o), nil
	}
}

func startsSubagent(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error) {
	id, parent := c.String("subagentRunId"), c.String("parentSubagentRunId")
	_, before := r.ownerOf(subagent, id)
	_, parentBefore := r.ownerOf(subagent, parent)
	switch {
	case before:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "sub-agent %s was started before in run %s", jsonobj.Quote(id), r.Invocation).
			WithHint("every invocation of a sub-agent needs its own id")
	case parent != "" && !parentBefore:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "sub-agent %s has the parent %s, which was not started in run %s", jsonobj.Quote(id), jsonobj.Quote(parent), r.Invocation)
	}
	if err := r.checkSpace(); err != nil {
		return nil, err
	}
	o := opened{kind: subagent, id: id, instance: e.Instance, turn: e.Turn}
	return r.setOwner(subagent, id, "").with(o), nil
}

func endsSubagent(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error) {
	o := r.find(subagent, c.Get("subagentRunId"), "")
	if o == nil {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "sub-agent %s is not active in run %s", jsonobj.Quote(c.String("subagentRunId")), r.Invocation).
			WithHint("send %s before %s", tapedeck.SubagentStarted, e.Type)
	}
	return r.without(o), nil
}

// answers folds a result. It is a message, whose author may differ from that of
// the call.
func answers(r *run, _ *tapedeck.Event, c *payload.Checked) (*run, error) {
	return r.setOwner(textMessage, c.String("messageId"), c.String("subagentRunId")), nil
}

func showsActivity(r *run, _ *tapedeck.Event, c *payload.Checked) (*run, error) {
	id := c.String("messageId")
	if _, shown := r.ownerOf(activityMessage, id); shown && string(c.Get("replace")) == "false" {
		return r, nil // it stays unchanged
	}
	return r.setOwner(activityMessage, id, c.String("subagentRunId")), nil
}

func changesActivity(r *run, _ *tapedeck.Event, c *payload.Checked) (*run, error) {
	return r, r.checkOwner(c, activityMessage, c.String("messageId"))
}

func encrypts(r *run, _ *tapedeck.Event, c *payload.Checked) (*run, error) {
	id := c.String("entityId")
	if c.String("subtype") == "tool-call" {
		return r, r.checkOwner(c, toolCall, id)
	}
	if _, text := r.ownerOf(textMessage, id); text {
		return r, r.checkOwner(c, textMessage, id)
	}
	return r, r.checkOwner(c, reasoningMessage, id)
}

// checkOwner returns an error if an event is tagged with another owner than
// that of the thing it names.
func (r *run) checkOwner(c *payload.Checked, of kind, id string) error {
	tag := c.String("subagentRunId")
	if owner, known := r.ownerOf(of, id); known && tag != "" && tag != owner {
		return foreign(of, id, owner, tag)
	}
	return nil
}

// restates replaces the owners of messages by those in a snapshot.
func restates(r *run, _ *tapedeck.Event, c *payload.Checked) (*run, error) {
	next := *r
	next.known = r.known.seed(c.Get("messages"))
	next.open = slices.Clone(r.open)
	for i := range next.open {
		o := &next.open[i]
		if k := next.known.find(o.kind.ownedAs(), o.id); k != nil {
			o.owner = k.owner // steps and sub-agents are not in the snapshot, or keep their owner
		}
	}
	return &next, nil
}

func finishes(r *run, e *tapedeck.Event, c *payload.Checked) (*run, error) {
	if !jsonobj.StringIs(c.Get("runId"), e.Invocation) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the %s has the runId %s, but belongs to invocation %s", e.Type, jsonobj.Quote(c.String("runId")), e.Invocation)
	}
	if len(r.open) == 0 {
		return nil, nil
	}
	var ends []string
	for i := len(r.open) - 1; i >= 0 && len(ends) < 3; i-- {
		o := r.open[i]
		ends = append(ends, kinds[o.kind].end+" of "+jsonobj.Quote(o.id))
	}
	o := r.open[len(r.open)-1]
	more := ""
	if n := len(r.open) - 1; n > 0 {
		more = ", and " + strconv.Itoa(n) + " more"
	}
	err := tapedeck.Errorf(tapedeck.Conflict, "run %s cannot finish while %s %s is open%s", r.Invocation, kinds[o.kind].noun, jsonobj.Quote(o.id), more)
	return nil, err.WithHint("send %s first", strings.Join(ends, ", "))
}
