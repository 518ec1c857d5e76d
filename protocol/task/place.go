package task

import (
	"context"
	"crypto/sha256"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A page of this protocol that loses its connection opens the stream again and does not say
// where it was, and it appends what it gets. So the server remembers for a short time how far
// each client has a session.

// keepPlace is how long a place is kept. A page tries to reconnect for 31 seconds.
const keepPlace = time.Minute

// readAfter is how old a stream is before the page is believed to read it. Some pages open a
// stream, close it at once and open another.
const readAfter = 50 * time.Millisecond

// Limits of the places that are kept.
const (
	maxClients = 10_000
	maxPlaces  = 8 // of one client in one session: of its tabs, and of a page that is loaded again
)

// A client is who reads a session. The token is not part of it: a page sends it with its
// stream in another way than with other requests, and access control removes it.
type client struct {
	session string
	life    int64 // the incarnation of the session
	who     [sha256.Size]byte
}

func clientOf(r *http.Request, head *tapedeck.Session) client {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	h := sha256.New()
	for _, s := range []string{host, r.Header.Get("X-Forwarded-For"), r.UserAgent()} {
		_, _ = h.Write(append([]byte(s), 0)) // a hash takes everything
	}
	return client{head.ID, head.Gen, [sha256.Size]byte(h.Sum(nil))}
}

// A place is the newest event that a client has.
type place struct {
	last sequence
	at   time.Time
}

// places are the places of clients whose stream has ended before its task, or who have read
// the history.
type places struct {
	mu   sync.Mutex
	list map[client][]place
}

// put notes where a client is.
func (p *places) put(c client, last sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxClients {
		p.expire()
	}
	if p.list == nil {
		p.list = make(map[client][]place)
	}
	list := append(p.list[c], place{last, time.Now()})
	p.list[c] = list[max(0, len(list)-maxPlaces):]
}

// expire removes old places, or all if that leaves too many. The caller holds mu.
func (p *places) expire() {
	for c, list := range p.list {
		if time.Since(list[len(list)-1].at) > keepPlace {
			delete(p.list, c)
		}
	}
	if len(p.list) >= maxClients {
		clear(p.list)
	}
}

// take removes and returns the newest place of a client. It reports false if there is none.
func (p *places) take(c client) (sequence, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list[c]
	if len(list) == 0 {
		return 0, false
	}
	newest := list[len(list)-1]
	if list = list[:len(list)-1]; len(list) == 0 {
		delete(p.list, c)
	} else {
		p.list[c] = list
	}
	return newest.last, time.Since(newest.at) <= keepPlace
}

// begin finds where a stream without a cursor begins: with the newest task, or where this
// client was in it. The end of the task is sent in any case.
func (h *handler) begin(ctx context.Context, c client, s *subscription, head *tapedeck.Session) (err error) {
	if s.begin == beginNew {
		s.from = head.Head
		return nil
	}
	if s.from, err = h.newestRun(ctx, s, head); err != nil || s.begin == beginTask || !s.filter.plain() {
		return err
	}
	last, found := h.places.take(c)
	if !found {
		if last, err = h.beforeStart(ctx, s, head); err != nil {
			return err
		}
	}
	if len(head.Runs) == 0 {
		end, _, err := findBackwards(ctx, h.Sessions, s.session, head.Head, func(e *tapedeck.Event) bool { return isEnd(e) && s.filter.match(e) })
		if err != nil {
			return err
		}
		last = min(last, before(end))
	}
	if last >= sequenceOf(s.from, 0) {
		s.continueAfter(last)
	}
	return nil
}

// beforeStart returns the last event of an open task that an earlier process of the server
// has stored: that has sent it to its pages, and does not say how far. It is used only for a
// short time. It returns -1 for no event.
func (h *handler) beforeStart(ctx context.Context, s *subscription, head *tapedeck.Session) (sequence, error) {
	if h.Since.IsZero() || time.Since(h.Since) > keepPlace {
		return -1, nil
	}
	ended := len(head.Runs) == 0 // and if that was before the start, nobody reconnects because of the start
	old, found, err := findBackwards(ctx, h.Sessions, s.session, head.Head, func(e *tapedeck.Event) bool {
		ended = ended && !(isEnd(e) && s.filter.match(e) && !e.Time.Before(h.Since))
		return e.Time.Before(h.Since)
	})
	if err != nil || !found || ended {
		return -1, err
	}
	return before(old + 1), nil
}

func isEnd(e *tapedeck.Event) bool {
	return e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError
}
