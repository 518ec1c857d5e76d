package deck

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/server"
)

// A Server serves a deck on a listener, with the time-outs of the program.
type Server struct {
	deck *Deck
	http *http.Server
}

// NewServer returns a server of the deck. Call [Server.Serve], and [Server.Close]
// instead of [Deck.Close] at the end.
func (d *Deck) NewServer() *Server {
	return &Server{deck: d, http: server.NewHTTP(d.handler, d.options.Logger)}
}

// Serve accepts connections on l until [Server.Close], then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := server.Serve(s.http, l, s.deck.options.MaxConnections, s.deck.options.Logger); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops the runs, each with its terminal event, then the streams, then the
// connections, and closes the deck. A follower that needs more than a second to read what
// is there gets the rest when it resumes from its cursor.
func (s *Server) Close(ctx context.Context) (err error) {
	s.deck.closing.Do(func() { err = s.deck.close(ctx, func() {}, s.shutdown) })
	return err
}

func (s *Server) shutdown(ctx context.Context) error {
	if s.http.Shutdown(ctx) != nil {
		return s.http.Close()
	}
	return nil
}

// cutOff ends the GET requests and the open bodies when the deck closes: a stream does
// not end by itself. Every other request is answered, because its client wants to know
// whether it was done.
func (d *Deck) cutOff(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.streams.Err() != nil {
			problem.Write(w, r, errDeckClosed, d.options.Logger)
			return
		}
		if r.Method == http.MethodGet || rest.IsOpen(r) {
			ctx, cancel := context.WithCancelCause(r.Context())
			stop := context.AfterFunc(d.streams, func() { cancel(http.ErrServerClosed) })
			defer func() { // one defer: each makes the stack of every follower larger
				stop()
				cancel(nil)
			}()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}
