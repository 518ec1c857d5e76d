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

// A desk answers what the agent of one run asks. At a terminal it asks for one
// answer after the other, and takes for an answer only what is typed after its
// question was shown.
type desk struct {
	*env
	client  *connection
	session string

	mu    sync.Mutex
	open  []asked // oldest first; the first is the one that is to be answered
	begun []byte  // what was read of a line that is not whole
	stop  func()  // ends the goroutine that reads what is typed; nil if there is none
}

// An asked is a question and where it is in the log.
type asked struct {
	tapedeck.Question
	offset int64
}

// see takes note of an event of the run.
func (d *desk) see(ctx context.Context, ev *tapedeck.Event) {
	switch ev.Type {
	case tapedeck.PermissionRequested:
		q := asked{offset: ev.Offset}
		if json.Unmarshal(ev.Data, &q.Question) == nil {
			d.asked(ctx, q)
		}
	case tapedeck.PermissionAnswered:
		var a tapedeck.Choice
		if json.Unmarshal(ev.Data, &a) == nil {
			d.answered(a.ID)
		}
	}
}

func (d *desk) asked(ctx context.Context, q asked) {
	if option, ok := choice(q.Options, d.permissions); ok {
		d.answer(ctx, q, option)
		return
	}
	in, ok := d.stdin.(*os.File)
	if d.json || !ok || !term.IsTerminal(int(in.Fd())) {
		d.notice("the agent asks; answer with: tapedeck answer %s %s OPTION --at %d (%s)", d.session, terminal.Visible(q.ID), q.offset, optionIDs(q.Options))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, q)
	d.prompt(in, len(d.open) > 1) // else the transcript has just shown it
	if d.stop == nil {
		d.stop = d.start(ctx, in)
	}
}

// start reads what is typed, in a goroutine that the returned function ends.
// Where canAwaitTyped is false, a read cannot be interrupted, and it ends with
// the program.
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

// close ends the reading of what is typed.
func (d *desk) close() {
	d.mu.Lock()
	stop := d.stop
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// answered asks for the answer to the next question, if the one that was asked
// for has its answer now.
func (d *desk) answered(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := len(d.open) > 0 && d.open[0].ID == id
	d.open = slices.DeleteFunc(d.open, func(q asked) bool { return q.ID == id })
	if in, ok := d.stdin.(*os.File); ok && first && len(d.open) > 0 {
		d.prompt(in, true)
	}
}

// prompt asks for the answer to the oldest question, which it shows again if
// something else stands between. What was typed before counts for nothing: it was
// meant for another question, or for none.
func (d *desk) prompt(in *os.File, again bool) {
	forget(in)
	d.begun = nil
	q := &d.open[0]
	if again {
		fmt.Fprintln(d.stderr)
		for _, l := range transcript.QuestionLines(&q.Question) {
			fmt.Fprintf(d.stderr, "  ? %s\n", l.Text)
		}
	}
	fmt.Fprintf(d.stderr, "  choose 1 to %d, or y or n, and press Enter: ", len(q.Options))
}

func optionIDs(options []tapedeck.PermissionOption) string {
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = terminal.Visible(o.ID)
	}
	return strings.Join(ids, ", ")
}

// listen takes the line that read returns as the answer to the oldest question.
// It returns false if nothing more can be read.
func (d *desk) listen(ctx context.Context, read func() ([]byte, *asked, error)) bool {
	lines, q, err := read()
	if q != nil {
		d.take(ctx, *q, lines)
	}
	return err == nil
}

// read reads whole lines and returns them with the question that was asked for
// when they were read, nil if there is none. It reads under the lock, so that
// nothing comes between the prompt and the line.
func (d *desk) read(in *os.File) (lines []byte, q *asked, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !isTyped(in) { // a prompt has dropped it meanwhile
		return nil, nil, nil
	}
	return d.gather(in.Read)
}

// readUnlocked is read for a system that does not tell whether something was
// typed.
func (d *desk) readUnlocked(in *os.File) (lines []byte, q *asked, err error) {
	d.mu.Lock()
	var before int64
	if len(d.open) > 0 {
		before = d.open[0].offset
	}
	d.mu.Unlock()
	buf := make([]byte, 4096)
	n, err := in.Read(buf)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) > 0 && d.open[0].offset != before {
		return nil, nil, err
	}
	return d.gather(func(b []byte) (int, error) { return copy(b, buf[:n]), err })
}

// gather adds what read reads to the line that has begun.
func (d *desk) gather(read func([]byte) (int, error)) (lines []byte, q *asked, err error) {
	buf := make([]byte, 4096)
	n, err := read(buf)
	if n == 0 && err == nil {
		err = io.EOF
	}
	d.begun = append(d.begun, buf[:n]...)
	end := bytes.LastIndexByte(d.begun, '\n') + 1
	lines, d.begun = d.begun[:end:end], d.begun[end:]
	if len(lines) == 0 || len(d.open) == 0 {
		return nil, nil, err
	}
	first := d.open[0]
	return lines, &first, err
}

// take takes the first of the lines as the answer; the others were typed for no
// question.
func (d *desk) take(ctx context.Context, q asked, lines []byte) {
	line, _, _ := bytes.Cut(lines, []byte("\n"))
	option, ok := typed(q.Options, string(line))
	if !ok {
		fmt.Fprintf(d.stderr, "  choose 1 to %d, or y or n: ", len(q.Options))
		return
	}
	d.answer(ctx, q, option)
}

// answer answers; that somebody else has been faster is no error.
func (d *desk) answer(ctx context.Context, q asked, option string) {
	_, err := d.client.Answer(ctx, api.Answer{Session: d.session, Permission: q.ID, Option: option, Offset: &q.offset})
	if err != nil && tapedeck.KindOf(err) != tapedeck.Conflict && ctx.Err() == nil {
		d.printError(err)
	}
}
