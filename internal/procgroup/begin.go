package procgroup

import (
	"github.com/tapedeck/tapedeck/payload"
)

// Begin announces the process and then releases it: what announce returns nil for
// is stored, so that a server that comes after us can end the process. Nil
// announces it to nobody.
func (p *Process) Begin(announce func(payload.AgentStarted) error) error {
	if announce != nil {
		if err := announce(p.Started()); err != nil {
			return err
		}
	}
	return p.Release()
}
