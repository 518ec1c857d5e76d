package main

import (
	"testing"

	"github.com/tapedeck/tapedeck/engine"
)

// The time that a stopped agent has reaches the server; a time of zero is refused.
func TestKillAfterFlag(t *testing.T) {
	if d := newServe(&env{}).Flags().Lookup("kill-after").DefValue; d != engine.DefaultKillAfter.String() {
		t.Errorf("the default is %s", d)
	}
	f := serveFlags{maxEvents: 1, longPoll: 1, lease: 1, killAfter: 1, a2aTasks: "per-turn"}
	if err := f.check(); err != nil {
		t.Error(err)
	}
	if f.killAfter = 0; f.check() == nil {
		t.Error("a time of 0 is accepted")
	}
}
