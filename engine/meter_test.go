package engine

import (
	"testing"

	"github.com/tapedeck/tapedeck"
)

// An amount uses up a limit if one of its numbers has reached that of the limit; 0 is no limit.
func TestUsesUp(t *testing.T) {
	none := tapedeck.Amount{}
	for _, one := range []tapedeck.Amount{{Tokens: 5}, {USD: 5}, {Turns: 5}, {Seconds: 5}} {
		below := tapedeck.Amount{Tokens: min(one.Tokens, 4), USD: min(one.USD, 4), Turns: min(one.Turns, 4), Seconds: min(one.Seconds, 4)}
		if !usesUp(one, one) || !usesUp(one.Plus(tapedeck.Amount{Tokens: 9, Turns: 9}), one) || usesUp(below, one) || usesUp(none, one) {
			t.Errorf("of the limit %+v, another amount is used up", one)
		}
		if usesUp(one, none) {
			t.Errorf("%+v uses up no limit", one)
		}
	}
}
