package agentconfig

import (
	"testing"
	"time"
)

// Without idle_timeout an agent has the default limit; 0 is no limit.
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
	c, err := parse("x.toml", []byte(agents))
	if err != nil {
		t.Fatal(err)
	}
	built, err := c.Build(someFolder)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, -1, 5 * time.Minute} {
		if got := built[i].IdleTimeout; got != want {
			t.Errorf("%s: %v, want %v", built[i].Name, got, want)
		}
	}
}
