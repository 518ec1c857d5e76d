package agentconfig

import (
	"testing"
	"time"
)

// kill_after reaches the agent; without it the server's default applies. A time that
// is not above 0 is refused.
func TestKillAfter(t *testing.T) {
	const agent = "[[agent]]\nname = \"a\"\nkind = \"script\"\nscript = \"hello\"\n"
	for text, want := range map[string]time.Duration{"": 0, "kill_after = \"30s\"\n": 30 * time.Second} {
		c, err := parse("x.toml", []byte(agent+text))
		if err != nil {
			t.Fatal(err)
		}
		built, err := c.Build(someFolder)
		if err != nil || built[0].KillAfter != want {
			t.Errorf("%q: %v, %v", text, built, err)
		}
	}
	for _, text := range []string{"-1s", "0s"} {
		if _, err := parse("x.toml", []byte(agent+"kill_after = \""+text+"\"\n")); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
