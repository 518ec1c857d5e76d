package agentconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/deck"
)

func TestRetention(t *testing.T) {
	c, err := parse("x.toml", []byte(`
[retention]
max_age = "90d"
max_sessions = 100
keep_label = "hold"
[retention.owner.ada]
max_age = "12h"
[retention.owner.bob]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := deck.Retention{
		Rule: deck.RetentionRule{Age: 90 * 24 * time.Hour, Sessions: 100}, Keep: "hold",
		Owners: map[string]deck.RetentionRule{"ada": {Age: 12 * time.Hour}, "bob": {}},
	}
	got := c.Retention()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if none := new(Config).Retention(); !none.IsZero() || got.IsZero() {
		t.Error("a configuration without a retention deletes something")
	}
}

func TestBadRetention(t *testing.T) {
	for text, want := range map[string]string{
		"[retention]\nmax_age = \"90\"\n":                                           "x.toml:2: max_age of retention is no time",
		"[retention]\nmax_age = \"-5d\"\n":                                          "x.toml:2: max_age of retention is no time",
		"[retention]\nmax_age = \"0d\"\n":                                           "x.toml:2: max_age of retention is no time",
		"[retention]\nmax_age = \"1s\"\n":                                           "x.toml:2: max_age of retention is no time",
		"[retention]\nmax_age = \"99999999999999d\"\n":                              "x.toml:2: max_age of retention is no time",
		"[retention]\nmax_sessions = 0\n":                                           "x.toml:2: max_sessions of retention is not above 0",
		"[retention.owner.ada]\nmax_sessions = -1\n":                                "x.toml:2: max_sessions of the retention of the owner ada",
		"[retention.owner.\"\"]\nmax_sessions = 1\n":                                "for an owner whose name",
		"\nretention = { max_sessions = 0 }\n":                                      "x.toml:2: max_sessions",
		"[retention]\n# max_age = 5\n[retention.owner.\"a b\"]\nmax_age = \"0d\"\n": "x.toml:4: max_age",
		"[retention.owner]\n\nada = { max_age = \"0d\" }\n":                         "x.toml:3: max_age",
		"[retention]\nmax_days = 5\n":                                               "there is no setting",
		"[retention]\nmax_age = 90\n":                                               "x.toml:2",
		"[retention]\nkeep_label = \"" + strings.Repeat("x", 600) + "\"\n":          "keep_label",
	} {
		if _, err := parse("x.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
	}
}
