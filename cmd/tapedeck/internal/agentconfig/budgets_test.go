package agentconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
)

func TestOwnerBudgets(t *testing.T) {
	c, err := parse("x.toml", []byte(`
[budgets]
day = { usd = 5, time = "2h" }
month = { tokens = 1_000_000 }
[budgets.owner.ada]
month = { usd = 500.5 }
[budgets.owner.bob]
[budgets.owner."team a"]
day = { turns = 7 }
`))
	if err != nil {
		t.Fatal(err)
	}
	want := deck.OwnerBudgets{
		OwnerBudget: deck.OwnerBudget{Day: tapedeck.Amount{USD: 5, Seconds: 7200}, Month: tapedeck.Amount{Tokens: 1_000_000}},
		Owners:      map[string]deck.OwnerBudget{"ada": {Month: tapedeck.Amount{USD: 500.5}}, "bob": {}, "team a": {Day: tapedeck.Amount{Turns: 7}}},
	}
	if diff := cmp.Diff(want, c.Budgets()); diff != "" {
		t.Error(diff)
	}
}

func TestBadOwnerBudgets(t *testing.T) {
	for text, want := range map[string]string{
		"[budgets]\nday = {}\n":                                  "x.toml:2: the budget of owners for a day has no limit above 0",
		"[budgets]\nmonth = { usd = -1 }\n":                      "for a month has no limit above 0",
		"[budgets]\nmonth = { usd = nan }\n":                     "for a month has no limit above 0",
		"[budgets]\nmonth = { usd = inf }\n":                     "for a month has no limit above 0",
		"[budgets]\nday = { tokens = 5, at_limit = \"stop\" }\n": "x.toml:2: the budget of owners for a day has at_limit",
		"[budgets.owner.ada]\nday = { turns = -3 }\n":            "x.toml:2: the budget of the owner ada for a day",
		"[budgets.owner.\"\"]\nday = { turns = 3 }\n":            "for an owner whose name",
		"[budgets]\nyear = { usd = 1 }\n":                        "there is no setting",
		"[budgets]\nday = 5\n":                                   "x.toml",
	} {
		if _, err := parse("x.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
