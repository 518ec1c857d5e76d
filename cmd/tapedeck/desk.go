package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
)

// A desk answers the questions of the agent of one run, or of an inbox. At a terminal it
// asks the user one question after the other. Input that was typed before a question was shown does
// not answer it.
type desk struct {
	*env
	client  *connection
	session string // of the run; "" for an inbox

	mu      sync.Mutex
	pending []asked // oldest first; the first one is shown
	partial []byte  // the input of a line that is not complete
	stop    func()  // ends the goroutine that reads input; nil if there is none
}

// An asked is a question and its offset.
type asked struct {
	tapedeck.Question
	session string
	offset  int64
	form    *filling // once an option was chosen that needs a form; nil before
}

// handle processes an event of the run.
func (d *desk) handle(ctx context.Context, ev *tapedeck.Event) {
	switch ev.Type {
	case tapedeck.PermissionRequested:
		q := asked{session: d.session, offset: ev.Offset}
		if json.Unmarshal(ev.Data, &q.Question) == nil {
			d.asked(ctx, q)
		}
	case tapedeck.PermissionAnswered:
		var a tapedeck.Choice
		if json.Unmarshal(ev.Data, &a) == nil {
			d.answered(d.session, a.ID)
		}
	}
}

func (d *desk) asked(ctx context.Context, q asked) {
	if option, ok := chooseOption(q.Options, d.permissions); ok && !needsForm(&q.Question, option) {
		_ = d.answer(ctx, q, option, nil) // it has printed the error
		return
	}
	in, ok := d.stdin.(*os.File)
	if d.json || !ok || !term.IsTerminal(int(in.Fd())) {
		d.notice("the agent asks; answer with: tapedeck answer %s %s OPTION%s --at %d (%s)", q.session, terminal.Visible(q.ID), inputUsage(q.Form), q.offset, optionIDs(q.Options))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = append(d.pending, q)
	d.prompt(in, len(d.pending) > 1) // the transcript has just shown a first question
	if d.stop == nil {
		d.stop = d.start(ctx, in)
	}
}

// start reads input in a goroutine. The returned function ends it. Where canAwaitTyped
// is false, a read cannot be interrupted, and the goroutine ends with the program.
func (d *desk) start(ctx context.Context, in *os.File) (stop func()) {
	if !canAwaitTyped {
		go func() {
			for d.listen(ctx, func() ([]byte, *asked, error) { return d.readUnlocked(in) }) {
			}
		}()
		return func() {}
	}
	ended, end, err := os.Pipe()
	if err != nil {
		d.printError(err)
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for awaitTyped(in, ended) && d.listen(ctx, func() ([]byte, *asked, error) { return d.read(in) }) {
		}
	}()
	return func() {
		_ = end.Close()
		<-done
		_ = ended.Close()
	}
}

// close stops reading input.
func (d *desk) close() {
	d.mu.Lock()
	stop := d.stop
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// answered removes a question. If it was the one that is shown, the next one follows.
func (d *desk) answered(session, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	is := func(q asked) bool { return q.ID == id && q.session == session }
	first := len(d.pending) > 0 && is(d.pending[0])
	d.pending = slices.DeleteFunc(d.pending, is)
	if in, ok := d.stdin.(*os.File); ok && first && len(d.pending) > 0 {
		d.prompt(in, true)
	}
}

// prompt asks for the answer to the oldest question. With again it shows the question
// first, because other text is between. Earlier input is dropped: it was meant for
// another question, or for none.
func (d *desk) prompt(in *os.File, again bool) {
	dropInput(in)
	d.partial = nil
	q := &d.pending[0]
	if again {
		fmt.Fprintln(d.stderr)
		mark := "?"
		for _, l := range transcript.QuestionLines(&q.Question) {
			fmt.Fprintf(d.stderr, "  %s %s\n", mark, l.Text)
			mark = " "
		}
	}
	if len(q.Options) == 1 && needsForm(&q.Question, q.Options[0].ID) {
		q.form = newFilling(&q.Question, q.Options[0].ID)
	}
	if q.form != nil {
		fmt.Fprintf(d.stderr, "  %s: ", fieldPrompt(&q.form.fields[0]))
		return
	}
	fmt.Fprintf(d.stderr, "  %s, and press Enter: ", choices(q.Options))
}

// choices says what a user can type.
func choices(options []tapedeck.PermissionOption) string {
	if len(options) == 1 {
		return "type 1 to answer " + nameOr(terminal.VisibleLine(options[0].Name), terminal.VisibleLine(options[0].ID))
	}
	return fmt.Sprintf("choose 1 to %d, or y or n", len(options))
}

// inputUsage returns the arguments that fill in a form.
func inputUsage(form []tapedeck.FormField) string {
	var b strings.Builder
	for _, f := range openFields(form) {
		fmt.Fprintf(&b, " --input %s=…", terminal.Visible(f.ID))
	}
	return b.String()
}

// needsForm reports whether an option comes with values that the user fills in.
func needsForm(q *tapedeck.Question, option string) bool {
	for _, o := range q.Options {
		if o.ID == option && strings.HasPrefix(o.Kind, "reject") {
			return false
		}
	}
	return len(openFields(q.Form)) > 0
}

func newFilling(q *tapedeck.Question, option string) *filling {
	return &filling{option: option, fields: openFields(q.Form), input: tapedeck.Members{}}
}

func optionIDs(options []tapedeck.PermissionOption) string {
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = terminal.Visible(o.ID)
	}
	return strings.Join(ids, ", ")
}

// listen takes the line that read returns as the answer to the oldest question. It
// returns false at the end of the input.
func (d *desk) listen(ctx context.Context, read func() ([]byte, *asked, error)) bool {
	lines, q, err := read()
	if q != nil {
		d.takeFirst(ctx, *q, lines)
	}
	return err == nil
}

// read returns complete lines and the question that was shown when they were read, nil
// if there was none. It reads under the lock, so that the question cannot change.
func (d *desk) read(in *os.File) (lines []byte, q *asked, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !isTyped(in) { // a prompt dropped the input meanwhile
		return nil, nil, nil
	}
	return d.gather(in.Read)
}

// readUnlocked is like read, for a system that cannot tell whether there is input.
func (d *desk) readUnlocked(in *os.File) (lines []byte, q *asked, err error) {
	d.mu.Lock()
	var before asked
	if len(d.pending) > 0 {
		before = d.pending[0]
	}
	d.mu.Unlock()
	buf := make([]byte, 4096)
	n, err := in.Read(buf)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) > 0 && (d.pending[0].session != before.session || d.pending[0].offset != before.offset) {
		return nil, nil, err
	}
	return d.gather(func(b []byte) (int, error) { return copy(b, buf[:n]), err })
}

// gather adds input to the partial line and returns the complete lines.
func (d *desk) gather(read func([]byte) (int, error)) (lines []byte, q *asked, err error) {
	buf := make([]byte, 4096)
	n, err := read(buf)
	if n == 0 && err == nil {
		err = io.EOF
	}
	d.partial = append(d.partial, buf[:n]...)
	end := bytes.LastIndexByte(d.partial, '\n') + 1
	lines, d.partial = d.partial[:end:end], d.partial[end:]
	if len(lines) == 0 || len(d.pending) == 0 {
		return nil, nil, err
	}
	first := d.pending[0]
	return lines, &first, err
}

// takeFirst uses the first line as the answer. The other lines belong to no question.
func (d *desk) takeFirst(ctx context.Context, q asked, lines []byte) {
	line, _, _ := bytes.Cut(lines, []byte("\n"))
	if q.form != nil {
		d.fill(ctx, q, string(line))
		return
	}
	option, ok := typedOption(q.Options, string(line))
	switch {
	case !ok:
		fmt.Fprintf(d.stderr, "  %s: ", choices(q.Options))
	case needsForm(&q.Question, option):
		q.form = newFilling(&q.Question, option)
		d.show(q)
	default:
		_ = d.answer(ctx, q, option, nil) // it has printed the error
	}
}

// fill takes the line for a field of a form, and answers after the last one.
func (d *desk) fill(ctx context.Context, q asked, line string) {
	if err := q.form.take(line); err != nil {
		d.printError(err)
	}
	if len(q.form.fields) > 0 {
		d.show(q)
		return
	}
	if err := d.answer(ctx, q, q.form.option, q.form.input); err != nil && tapedeck.KindOf(err) == tapedeck.Invalid {
		q.form = newFilling(&q.Question, q.form.option)
		d.show(q)
	}
}

// show asks for the next field of a form, unless the question was answered meanwhile.
func (d *desk) show(q asked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) == 0 || d.pending[0].ID != q.ID || d.pending[0].session != q.session || d.pending[0].offset != q.offset {
		return
	}
	d.pending[0].form = q.form
	fmt.Fprintf(d.stderr, "  %s: ", fieldPrompt(&q.form.fields[0]))
}

// answer sends the answer. It is no error if somebody else answered first.
func (d *desk) answer(ctx context.Context, q asked, option string, input tapedeck.Members) error {
	_, err := d.client.Answer(ctx, api.Answer{Session: q.session, Permission: q.ID, Option: option, Input: input, Offset: &q.offset})
	over := tapedeck.KindOf(err) == tapedeck.Conflict
	if err != nil && !over && ctx.Err() == nil {
		d.printError(err)
	}
	if d.session == "" && (err == nil || over) { // an inbox follows no events, which would say so
		if over {
			d.notice("the question no longer waits: it was answered, or its run has ended")
		}
		d.answered(q.session, q.ID)
	}
	return err
}
