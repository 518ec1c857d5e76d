package adk

import (
	"context"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/adk/v2/session"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// maxPending is how much text may wait for the disk, in bytes. Beyond it the agent waits.
const maxPending = 1 << 20

// deltas are the partial texts of a model that wait to be appended. The first one is
// appended at once; those that arrive during a commit are joined in the next append.
type deltas struct {
	mu      sync.Mutex
	changed sync.Cond // on mu
	pending []partial
	size    int
	busy    bool  // an append is under way
	err     error // why nothing is streamed any more in this invocation
}

// A partial is one piece of text that a model has sent.
type partial struct {
	invocation, author, branch string
	thought                    bool
	text                       string
	at                         time.Time
}

// stream returns the key of the stream of texts that p belongs to: agents that work side
// by side have one each.
func (p *partial) stream() string { return p.author + "\x00" + p.branch }

// A stream is the text of a model call, so far. Text and thinking alternate in it.
type stream struct {
	author   string
	segments []segment
}

// A segment is a message that is being streamed.
type segment struct {
	id      string
	thought bool
	closed  bool
	text    []byte
}

// push appends the text of a partial event, soon.
func (c *conversation) push(ctx context.Context, event *session.Event) {
	if event.Content == nil {
		return
	}
	d := &c.deltas
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed.L == nil {
		d.changed.L = &d.mu
	}
	for d.size > maxPending && d.err == nil {
		d.changed.Wait()
	}
	if d.err != nil {
		return
	}
	for _, p := range event.Content.Parts {
		if p == nil || p.Text == "" {
			continue
		}
		d.pending = append(d.pending, partial{event.InvocationID, event.Author, event.Branch, p.Thought, p.Text, time.Now()})
		d.size += len(p.Text)
	}
	if len(d.pending) > 0 && !d.busy {
		d.busy = true
		go c.flush(context.WithoutCancel(ctx)) // what the model said stays, also if its caller is cancelled
	}
}

// flush appends what is pending until nothing is.
func (c *conversation) flush(ctx context.Context) {
	d := &c.deltas
	for {
		d.mu.Lock()
		batch := d.pending
		d.pending, d.size = nil, 0
		if len(batch) == 0 || d.err != nil {
			d.busy = false
		}
		done := !d.busy
		d.changed.Broadcast()
		d.mu.Unlock()
		if done {
			return
		}
		if err := c.write(ctx, func() (*builder, error) { return c.partials(batch), nil }); err != nil {
			d.mu.Lock()
			d.err = err
			d.mu.Unlock()
		}
	}
}

// settle waits until nothing is pending. With again, the next text is streamed even if an
// earlier one could not be.
func (d *deltas) settle(again bool) (failed error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.busy {
		d.changed.Wait()
	}
	failed = d.err
	if again {
		d.err = nil
	}
	return failed
}

// partials returns the events of partial texts. Consecutive ones of a message are joined.
func (c *conversation) partials(batch []partial) *builder {
	b := c.newBuilder(batch[0].invocation, batch[0].author)
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].stream() == batch[0].stream() && batch[n].thought == batch[0].thought {
			n++
		}
		b.author = batch[0].author
		b.stream(batch[:n])
		batch = batch[n:]
	}
	return b
}

// stream appends pieces of one message.
func (b *builder) stream(pieces []partial) {
	first := &pieces[0]
	s := b.openStream(first.stream(), first.author)
	b.r.final = false
	turn := b.r.turn
	b.r.turn++ // the model call that has not ended
	defer func() { b.r.turn = turn }()
	if n := len(s.segments); n > 0 && s.segments[n-1].thought != first.thought {
		b.endSegment(s, n-1)
	}
	if n := len(s.segments); n == 0 || s.segments[n-1].closed {
		id := tapedeck.NewID("msg_")
		b.open(id, first.author, first.thought)
		s.segments = append(s.segments, segment{id: id, thought: first.thought})
	}
	last := &s.segments[len(s.segments)-1]
	var text []byte
	var cuts []payload.Cut
	for i := range pieces {
		p := &pieces[i]
		text = append(text, p.text...)
		cuts = append(cuts, payload.Cut{int64(len(p.text)), p.at.Sub(first.at).Milliseconds()})
	}
	if len(cuts) == 1 || !utf8.Valid(text) {
		cuts = nil
	}
	last.text = append(last.text, text...)
	b.say(last.id, string(text), first.thought, cuts)
}

// openStream returns the stream of a key, which the builder may change.
func (b *builder) openStream(key, author string) *stream {
	s := &stream{author: author}
	if old := b.r.streams[key]; old != nil {
		s.segments = slices.Clone(old.segments)
	}
	b.r.streams[key] = s
	return s
}

// endStream closes what is open in a stream and removes it.
func (b *builder) endStream(key string) {
	s := b.openStream(key, b.r.streams[key].author)
	delete(b.r.streams, key)
	defer func(author string) { b.author = author }(b.author)
	b.author = s.author
	for i := range s.segments {
		b.endSegment(s, i)
	}
}

// endSegment closes a message if it is open.
func (b *builder) endSegment(s *stream, i int) {
	if !s.segments[i].closed {
		s.segments[i].closed = true
		b.closeText(s.segments[i].id, s.segments[i].thought)
	}
}

// open opens a message.
func (b *builder) open(id, author string, thought bool) {
	if thought {
		b.add(payload.ReasoningMessageStart{MessageID: id, Role: payload.RoleReasoning})
		return
	}
	b.add(payload.TextMessageStart{MessageID: id, Role: payload.RoleAssistant, Name: author})
}

// say appends text to an open message.
func (b *builder) say(id, text string, thought bool, cuts []payload.Cut) {
	if thought {
		b.add(payload.ReasoningMessageContent{MessageID: id, Delta: payload.Piece(text), Cuts: cuts})
		return
	}
	b.add(payload.TextMessageContent{MessageID: id, Delta: payload.Piece(text), Cuts: cuts})
}

// closeText closes a message.
func (b *builder) closeText(id string, thought bool) {
	if thought {
		b.add(payload.ReasoningMessageEnd{MessageID: id})
		return
	}
	b.add(payload.TextMessageEnd{MessageID: id})
}
