package ws

import (
	"sync"

	"github.com/coder/websocket"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/frame"
	"github.com/tapedeck/tapedeck/internal/pipeline"
)

// A native socket speaks tapedeck.v1.
type native struct {
	*socket
	appends *pipeline.Pipeline
	next    int64 // number of the next append; -1 before the first

	followers sync.WaitGroup
	mu        sync.Mutex
	following map[string]*follower // by session
}

func (s *socket) serveNative() {
	n := &native{socket: s, next: -1, following: make(map[string]*follower)}
	n.appends = pipeline.Start(s.ctx, pipeline.Options{Append: s.Verbs.Append, Send: s.send, Shown: s.shown, Release: s.release})
	defer s.watch()()
	var done sync.WaitGroup
	done.Go(func() { s.beat(s.ctx, func() error { return s.send([]byte(frame.Heartbeat)) }) })
	err := n.readFrames()
	n.appends.Close() // what has arrived is appended, also if the client has closed the socket
	s.cancel()
	n.followers.Wait()
	s.end(err)
	done.Wait()
}

// readFrames reads until the socket ends or a frame is wrong.
func (n *native) readFrames() error {
	for {
		message, err := n.read()
		if err != nil {
			return err
		}
		if err := n.readMessage(message); err != nil {
			return err
		}
	}
}

func (n *native) readMessage(message []byte) error {
	var appends []frame.Request
	defer func() { n.appends.Put(appends, len(message)) }() // also those before a wrong frame
	for line := range frame.Lines(message) {
		r, err := frame.Parse(line)
		if err == nil && r.Session == "" {
			if r.Session = n.session; r.Session == "" {
				err = tapedeck.Errorf(tapedeck.Invalid, "the frame names no session").WithHint("a socket at /api/v1/sessions/{id}/ws has a session of its own")
			}
		}
		if err == nil && r.Type == frame.TypeAppend {
			if err = n.count(r.Seq); err == nil {
				appends = append(appends, r)
			}
		}
		switch {
		case err != nil:
			return &fault{err, websocket.StatusPolicyViolation}
		case r.Type == frame.TypeFollow:
			err = n.follow(r)
		case r.Type == frame.TypeUnfollow:
			n.unfollow(r.Session)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count checks the number of an append.
func (n *native) count(seq int64) error {
	if n.next >= 0 && seq != n.next {
		return tapedeck.Errorf(tapedeck.Invalid, "the append has the number %d, but %d comes next", seq, n.next).
			WithHint("the appends of a socket are numbered without gaps")
	}
	n.next = seq + 1
	return nil
}
