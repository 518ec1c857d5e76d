package audit

import (
	"testing"

	"github.com/tapedeck/tapedeck/api"
)

// TestRefusalBetweenFlushes: a refusal that could not be queued is counted, also if the
// minute has ended between the two.
func TestRefusalBetweenFlushes(t *testing.T) {
	var s refusals
	r := api.AuditRecord{Action: Access, Actor: "eve"}
	if !s.isNew(&r) || len(s.take()) != 0 {
		t.Fatal("the first refusal is not new")
	}
	s.again(&r)
	if got := s.take(); len(got) != 1 || got[0].record.Count != 1 || got[0].record.Actor != "eve" {
		t.Errorf("got %+v", got)
	}
}
