package procgroup

import (
	"github.com/tapedeck/tapedeck/payload"
)

// Begin calls announce with the identity of the process, and then releases the
// process. announce stores the identity, so that a later server can end the process.
// If announce fails, the program does not begin. A nil announce is skipped.
func (p *Process) Begin(announce func(payload.AgentStarted) error) error {
	if announce != nil {
		if err := announce(p.Started()); err != nil {
			return err
		}
	}
	if err := p.Release(); err != nil {
		return err
	}
	go p.limitTime()
	return nil
}
