package push

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// A config that is stored shows nothing without the key, and opens only for its own task
// and id.
func TestSeal(t *testing.T) {
	dir := t.TempDir()
	c := &Config{Version: "1.0", PushConfig: sdk.PushConfig{
		TaskID: "c~inv", ID: "p", URL: "https://hook.example/secret", Token: "tok-1", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "cred-1"},
	}}
	k := key{7, "inv", "p"}
	sealed, err := sealerIn(dir).seal(k, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"hook", "secret", "tok-1", "cred-1", "Bearer"} {
		if bytes.Contains(sealed, []byte(word)) {
			t.Errorf("the sealed config shows %q", word)
		}
	}
	got, err := sealerIn(dir).open(k, sealed) // as the next process does
	if d := cmp.Diff(c, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	for name, open := range map[string]func() error{
		"another session": func() error { _, err := sealerIn(dir).open(key{8, "inv", "p"}, sealed); return err },
		"another task":    func() error { _, err := sealerIn(dir).open(key{7, "inv2", "p"}, sealed); return err },
		"another config":  func() error { _, err := sealerIn(dir).open(key{7, "inv", "q"}, sealed); return err },
		"another key":     func() error { _, err := sealerIn(t.TempDir()).open(k, sealed); return err },
		"nothing":         func() error { _, err := sealerIn(dir).open(k, nil); return err },
	} {
		if err := open(); !errors.Is(err, errNoKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if again, err := sealerIn(dir).seal(k, c); err != nil || bytes.Equal(again, sealed) {
		t.Errorf("two sealed configs are the same, %v", err)
	}
}

// A key that cannot be read is an error, not another key.
func TestDamagedKey(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"", "AAAA", "no base64!"} {
		if err := os.WriteFile(filepath.Join(dir, KeyFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := sealerIn(dir).seal(key{}, new(Config)); tapedeck.KindOf(err) != tapedeck.Unavailable {
			t.Errorf("%q: %v", content, err)
		}
	}
}
