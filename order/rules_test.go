package order

import (
	"slices"
	"testing"

	"github.com/tapedeck/tapedeck/payload"
)

func TestRulesAreOfTheCatalogue(t *testing.T) {
	for name := range rules {
		if !slices.Contains(payload.EventTypes(), name) {
			t.Errorf("there is a rule for %s, which is not in the catalogue", name)
		}
	}
}
