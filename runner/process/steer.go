package process

import (
	"slices"

	"github.com/google/uuid"

	"github.com/tapedeck/tapedeck/runner"
)

// acknowledges is the option with which Claude Code repeats a message when it reads it.
// Without that nobody knows whether a result is the last one: the message may have been
// read before the result, or it begins another turn.
const acknowledges = "--replay-user-messages"

// steers reports whether the program of a command takes messages of users while it works.
func (r *Runner) steers(command []string) bool {
	return r.dialect.tell != nil && slices.Contains(command, acknowledges)
}

// steer sends the program what users have sent to the run.
func (a *attempt) steer() {
	texts, err := runner.Steered(a.ctx, &a.stream.in)
	if err != nil && a.ctx.Err() == nil {
		a.failed = err
	}
	for _, text := range texts {
		id := uuid.NewString()
		a.stream.unread[id] = true
		a.send(a.runner.dialect.tell(id, text))
	}
}

// waits reports whether the program has ended a turn and has a message for another one.
func (a *attempt) waits() bool {
	return a.stream.ended && len(a.stream.unread) > 0 && !a.cancelled() && a.failed == nil
}

// begins notes that the program begins a turn. If it had ended one, a message that it has
// not acknowledged yet begins another one: it does that only with the first answer.
func (s *stream) begins() {
	if len(s.unread) > 0 {
		s.ended, s.failure = false, ""
	}
}

// read notes that the program has read a message. If it had ended its turn, the message
// begins another one, whose result counts.
func (s *stream) read(id string) {
	delete(s.unread, id)
	s.ended, s.failure = false, ""
}
