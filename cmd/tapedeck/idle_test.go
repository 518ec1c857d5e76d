package main

import (
	"testing"
	"time"
)

// An agent may not be silent forever, unless somebody says so; 0 is no limit.
func TestIdleTimeouts(t *testing.T) {
	const agents = `[[agent]]
name = "a"
kind = "script"
script = "hello"
[[agent]]
name = "b"
kind = "script"
script = "hello"
idle_timeout = "0s"
[[agent]]
name = "c"
kind = "script"
script = "hello"
idle_timeout = "5m"
`
	c, err := parseConfig("x.toml", []byte(agents))
	if err != nil {
		t.Fatal(err)
	}
	built, err := c.agents(&folders{}, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, -1, 5 * time.Minute} {
		if got := built[i].IdleTimeout; got != want {
			t.Errorf("%s: %v, want %v", built[i].Name, got, want)
		}
	}
	if d := newServe(&env{}).Flags().Lookup("idle-timeout").DefValue; d != "1h0m0s" || orNever(0) >= 0 || orNever(time.Minute) != time.Minute {
		t.Errorf("the default is %s", d)
	}
}
