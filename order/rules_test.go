package order

import (
	"slices"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func TestRulesAreOfTheCatalogue(t *testing.T) {
	for name := range rules {
		if !slices.Contains(tapedeck.EventTypes(), name) {
			t.Errorf("there is a rule for %s, which is not in the catalogue", name)
		}
	}
}
