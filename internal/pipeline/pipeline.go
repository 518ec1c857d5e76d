// Package pipeline appends for a client that does not wait for the answer to one append
// before it sends the next. It is behind WebSockets and behind request bodies that stay
// open.
package pipeline

import (
	"context"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/frame"
)

// Limits of a pipeline. A client with more appends than that is not read until some of
// them are durable.
const (
	maxWaiting      = 4096    // appends
	maxWaitingBytes = 2 << 20 // of their messages, but at least one message

	maxJoined = 1000 // events of appends that are joined to one
	maxAtOnce = 16   // sessions that one client writes to at once
)

// Options configure a pipeline. All members are required.
type Options struct {
	Append  func(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Send    func(answers []byte) error      // sends frames, one a line
	Shown   func(err error) *tapedeck.Error // returns the part of an error that the client may see
	Release func(size int)                  // says that a message of this size is not in memory any more
}

// A Pipeline appends in the order of arrival. While a commit is under way, more appends
// arrive. Together they are the next round: the appends of a session are joined, so they
// cost one commit, and so one client can write as fast as the log. Put and Close are for
// one goroutine.
type Pipeline struct {
	options Options
	ctx     context.Context
	done    chan struct{} // closed when all are answered

	mu     sync.Mutex
	change sync.Cond
	queue  []*pending
	bytes  int // of the messages in queue and in the round
	count  int // of the appends in queue and in the round
	closed bool
}

// pending is an append that waits for its answer.
type pending struct {
	frame.Request
	size int // of the message, if it is the last append in it

	done tapedeck.Appended
	err  error
}

// Start starts a pipeline. The end of ctx does not end it: what has arrived is appended.
func Start(ctx context.Context, o Options) *Pipeline {
	p := &Pipeline{options: o, ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	p.change.L = &p.mu
	go p.run()
	return p
}

// Put adds the appends of a message of a size in bytes. It waits for space, so a client
// that sends faster than the log can write is slowed down.
func (p *Pipeline) Put(list []frame.Request, size int) {
	if len(list) == 0 {
		p.options.Release(size)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.count > 0 && (p.count+len(list) > maxWaiting || p.bytes+size > maxWaitingBytes) {
		p.change.Wait()
	}
	for i := range list {
		x := &pending{Request: list[i]}
		if i == len(list)-1 {
			x.size = size
		}
		p.queue = append(p.queue, x)
	}
	p.count, p.bytes = p.count+len(list), p.bytes+size
	p.change.Broadcast()
}

// Close says that no append follows, and waits until all are answered.
func (p *Pipeline) Close() {
	p.mu.Lock()
	p.closed = true
	p.change.Broadcast()
	p.mu.Unlock()
	<-p.done
}

// take returns the appends of the next round, nil if none follows.
func (p *Pipeline) take() []*pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.change.Wait()
	}
	round := p.queue
	p.queue = nil
	return round
}

// leave ends the count of a round.
func (p *Pipeline) leave(round []*pending) {
	bytes := 0
	for _, x := range round {
		bytes += x.size
	}
	p.options.Release(bytes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count, p.bytes = p.count-len(round), p.bytes-bytes
	p.change.Broadcast()
}

// run appends and answers until the pipeline is closed and empty.
func (p *Pipeline) run() {
	defer close(p.done)
	var answers []byte
	var broken error
	for {
		round := p.take()
		if round == nil {
			return
		}
		p.append(round)
		answers = answers[:0]
		for _, x := range round {
			if x.err != nil {
				answers = frame.AppendError(answers, x.Seq, x.Session, p.options.Shown(x.err), x.err)
			} else {
				answers = frame.AppendAck(answers, x.Seq, x.Session, x.done)
			}
		}
		if broken == nil { // if the client is disconnected, appends continue, but answers are not sent
			broken = p.options.Send(answers)
		}
		p.leave(round)
	}
}

// append appends a round. Sessions do not wait for each other.
func (p *Pipeline) append(round []*pending) {
	var sessions []string
	lists := make(map[string][]*pending, 1)
	for _, x := range round {
		if lists[x.Session] == nil {
			sessions = append(sessions, x.Session)
		}
		lists[x.Session] = append(lists[x.Session], x)
	}
	if len(sessions) == 1 {
		p.appendTo(round)
		return
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, maxAtOnce)
	for _, s := range sessions {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			p.appendTo(lists[s])
		})
	}
	wg.Wait()
}

// appendTo appends to one session.
func (p *Pipeline) appendTo(list []*pending) {
	for len(list) > 0 {
		n := joinable(list)
		p.join(list[:n])
		list = list[n:]
	}
}

// joinable returns how many of the first appends can be joined: all from the same
// producer, or all without a producer. An append with an expected offset is the first of
// its group: the offset after the events before it is not known until they are in the
// form of the log.
func joinable(list []*pending) int {
	events := len(list[0].Events)
	for n := 1; n < len(list); n++ {
		a, b := list[n-1].Producer, list[n].Producer
		events += len(list[n].Events)
		follows := a == nil && b == nil || a != nil && b != nil && *b == tapedeck.Producer{ID: a.ID, Epoch: a.Epoch, Seq: a.Seq + 1}
		if !follows || list[n].Expect != nil || events > maxJoined || len(list[n].Events) == 0 {
			return n
		}
	}
	return len(list)
}

// join appends a group as one append. If it is refused, each half is tried by itself, so
// that only the append that is wrong is refused.
func (p *Pipeline) join(group []*pending) {
	a := tapedeck.Append{Session: group[0].Session, Expect: group[0].Expect, Producer: group[0].Producer, Events: group[0].Events}
	if len(group) > 1 {
		a.Events, a.Parts = make([]tapedeck.Event, 0, 2*len(group)), make([]int, 0, len(group))
		for _, x := range group {
			a.Events, a.Parts = append(a.Events, x.Events...), append(a.Parts, len(x.Events))
		}
	}
	done, err := p.options.Append(p.ctx, a)
	switch {
	case len(group) == 1:
		group[0].done, group[0].err = done, err
	case err == nil && done.Duplicate:
		p.skip(group, done)
	case err == nil:
		divide(group, done)
	case mayConcernOneAppend(err):
		half := len(group) / 2
		p.join(group[:half])
		p.join(group[half:])
	default:
		for _, x := range group {
			x.err = err
		}
	}
}

// mayConcernOneAppend reports whether an error may concern only one of several appends.
func mayConcernOneAppend(err error) bool {
	if tapedeck.RefusalOf(err) == tapedeck.RefusedClosed {
		return false
	}
	switch tapedeck.KindOf(err) {
	case tapedeck.Unavailable, tapedeck.Internal, tapedeck.NotFound, tapedeck.Gone:
		return false
	}
	return true
}

// divide divides the answer to a group.
func divide(group []*pending, done tapedeck.Appended) {
	next := done.First
	for i, x := range group {
		x.done = tapedeck.Appended{First: next, Next: next + int64(done.Parts[i])}
		next = x.done.Next
		x.done.Head = next
	}
}

// skip answers the appends of a group that were appended before, and appends the others.
func (p *Pipeline) skip(group []*pending, done tapedeck.Appended) {
	n := int(min(max(done.Seq-group[0].Producer.Seq+1, 1), int64(len(group))))
	for i, x := range group[:n] {
		x.done = tapedeck.Appended{First: -1, Next: -1, Head: done.Head, Duplicate: true}
		if i == 0 {
			x.done.First, x.done.Next = done.First, done.Next
		}
	}
	if n < len(group) {
		p.join(group[n:])
	}
}
