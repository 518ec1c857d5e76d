package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// maxUnread is how many messages may wait in one run, and maxUnreadBytes how large their
// variables may be together.
const (
	maxUnread      = 1000
	maxUnreadBytes = 8 << 20
)

// An inbox has logged events for a run that waits for them without a goroutine for
// each; see [tapedeck.Inbox]. The zero value drops everything.
type inbox struct {
	ready chan struct{} // nil if the run has no inbox

	mu     sync.Mutex
	events []tapedeck.Event
	unread int // messages that no element has received
	bytes  int // of their variables
}

func (b *inbox) make(rests func()) *tapedeck.Inbox {
	b.ready = make(chan struct{}, 1)
	return &tapedeck.Inbox{Ready: b.ready, Take: b.take, Rests: rests}
}

func (b *inbox) put(ev tapedeck.Event) {
	if b.ready == nil {
		return
	}
	b.mu.Lock()
	b.events = append(b.events, ev)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns messages in the order of their offsets: of two that were sent at once,
// the later one may have arrived first.
func (b *inbox) take() []tapedeck.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.events
	b.events = nil
	slices.SortStableFunc(out, func(a, b tapedeck.Event) int { return cmp.Compare(a.Offset, b.Offset) })
	return out
}

// admit counts a message, and reports false if there are too many.
func (b *inbox) admit(bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread >= maxUnread || b.bytes+bytes > maxUnreadBytes {
		return false
	}
	b.unread++
	b.bytes += bytes
	return true
}

// count counts a message, however many there are.
func (b *inbox) count(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread++
	b.bytes += bytes
}

func (b *inbox) release(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unread, b.bytes = max(0, b.unread-1), max(0, b.bytes-bytes)
}

// noteCaught counts a message as received.
func (b *inbox) noteCaught(ev *tapedeck.Event) {
	if d, err := payload.DecodeAs[payload.WorkflowCaught](*ev); err == nil && d.Received != nil {
		b.release(membersSize(d.Variables))
	}
}

func membersSize(m tapedeck.Members) (n int) {
	for name, value := range m {
		n += len(name) + len(value)
	}
	return n
}
