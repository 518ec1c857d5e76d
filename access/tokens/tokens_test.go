package tokens_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/quota"
	"github.com/tapedeck/tapedeck/access/tokens"
)

func create(t *testing.T, path string, token tokens.Token) (made tokens.Token, secret string) {
	t.Helper()
	made, secret, err := tokens.Create(path, token)
	if err != nil {
		t.Fatal(err)
	}
	return made, secret
}

// verified returns the identity of a token, nil if it is refused.
func verified(t *testing.T, s *tokens.Set, secret string) *access.Identity {
	t.Helper()
	who, err := s.Verify(context.Background(), secret)
	if err != nil && tapedeck.KindOf(err) != tapedeck.Unauthorized {
		t.Error(err)
	}
	if err != nil {
		return nil
	}
	return who
}

// TestFile: tokens are created and revoked beside comments and each other, and the file
// never has a token itself.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.toml")
	admin, first := create(t, path, tokens.Token{Subject: "root", Role: access.Admin})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("# for the office\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, second := create(t, path, tokens.Token{Subject: "ada", Role: access.User, Labels: map[string]string{"team": "blue"}, Expires: time.Now().Add(time.Hour).UTC().Truncate(time.Second)})
	b, err = os.ReadFile(path)
	if err != nil || bytes.Contains(b, []byte(first)) || bytes.Contains(b, []byte(second)) || !bytes.HasPrefix(b, []byte("# for the office\n")) {
		t.Errorf("the file is %s, %v", b, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	s, err := tokens.Open(tokens.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	root, ada := verified(t, s, first), verified(t, s, second)
	if root == nil || root.Role != access.Admin || ada == nil || ada.Subject != "ada" || ada.Limits.Labels["team"] != "blue" || ada.Expires.IsZero() {
		t.Errorf("%+v %+v", root, ada)
	}
	if verified(t, s, first+"x") != nil || verified(t, s, tokens.Prefix) != nil {
		t.Error("a wrong token is accepted")
	}
	if who, err := s.Verify(t.Context(), "eyJ.x.y"); who != nil || err != nil {
		t.Errorf("a token of another kind: %v %v", who, err)
	}
	if err := tokens.Revoke(path, admin.ID); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Revoke(path, admin.ID); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("revoked twice: %v", err)
	}
	s.Reload()
	if verified(t, s, first) != nil || root.Valid() == nil || root.Revoked.Err() == nil {
		t.Error("a revoked token is valid")
	}
	if verified(t, s, second) != ada || ada.Valid() != nil {
		t.Error("the other token changed")
	}
	if list, err := tokens.List(path); err != nil || len(list) != 1 || list[0].Subject != "ada" {
		t.Errorf("%+v %v", list, err)
	}
}

// TestKept: a token has a name for what is made with it. One that may do something else is
// another token; one that expires at another time is the same.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.toml")
	_, secret := create(t, path, tokens.Token{Subject: "ada", Role: access.Admin, Labels: map[string]string{"team": "blue", "floor": "2"}})
	s, err := tokens.Open(tokens.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ada := verified(t, s, secret)
	kept := s.Kept(ada.Token)
	if kept == nil || s.Kept("") != nil || s.Kept(ada.Token+"x") != nil {
		t.Fatal("the name of the token does not find it")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		strings.Replace(string(b), "role", "expires = 2999-01-01T00:00:00Z\nrole", 1): true,
		strings.Replace(string(b), "blue", "green", 1):                                false,
		strings.Replace(string(b), `"admin"`, `"user"`, 1):                            false,
		strings.Replace(string(b), `"ada"`, `"bob"`, 1):                               false,
		"# Nothing is left.\n":                                                        false,
		string(b):                                                                     true,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Reload()
		now := s.Kept(ada.Token)
		if (now != nil) != want || want && now.Err() != nil || !want && kept.Err() == nil {
			t.Errorf("the token is kept: %v, want %v, with the file\n%s", now != nil, want, text)
		}
		if want && kept.Err() == nil && now != kept {
			t.Error("what was made with the token ends, and it is kept")
		}
		kept = now
		if !want { // back
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			s.Reload()
			kept = s.Kept(ada.Token)
		}
	}
}

// TestBrokenFile: a file that is deleted or has a fault leaves the tokens as they are, and
// the log says so once.
func TestBrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.toml")
	_, secret := create(t, path, tokens.Token{Subject: "root", Role: access.Admin})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := tokens.Open(tokens.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.Reload()
	s.Reload()
	if verified(t, s, secret) == nil || strings.Count(log.String(), "stay valid") != 1 {
		t.Errorf("after the file was deleted: %s", &log)
	}
	if err := os.WriteFile(path, append(whole, []byte("[[token]]\nrole = \"king\"\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Reload()
	if verified(t, s, secret) == nil || strings.Count(log.String(), "stay valid") != 2 {
		t.Errorf("after a fault: %s", &log)
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Reload()
	if verified(t, s, secret) == nil || strings.Count(log.String(), "stay valid") != 3 {
		t.Errorf("after the file was emptied: %s", &log)
	}
}

// TestNoTokens: a server does not start with a file that lets nobody in, and the last token
// can be revoked all the same.
func TestNoTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.toml")
	made, secret := create(t, path, tokens.Token{Subject: "root", Role: access.Admin})
	s, err := tokens.Open(tokens.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Revoke(path, made.ID); err != nil {
		t.Fatal(err)
	}
	s.Reload()
	if verified(t, s, secret) != nil {
		t.Error("the last token is valid after it was revoked")
	}
	for _, content := range []string{"", "\n", "# nobody\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tokens.Open(tokens.Options{Path: path}); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), "nobody could use the server") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestQuotas: the quotas of the file count as it has them now, and stay through edits of the
// tokens.
func TestQuotas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.toml")
	create(t, path, tokens.Token{Subject: "root", Role: access.Admin})
	s, err := tokens.Open(tokens.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ada := quota.Key{Subject: "ada", Role: access.User}
	if got := s.Quotas(ada); got != (quota.Limits{}) {
		t.Errorf("without quotas: %+v", got)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("[quota]\nruns = 3\n[quota.subject.ada]\nstreams = 4\n\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	made, _ := create(t, path, tokens.Token{Subject: "ada", Role: access.User})
	if err := tokens.Revoke(path, made.ID); err != nil {
		t.Fatal(err)
	}
	s.Reload()
	if got := s.Quotas(ada); got != (quota.Limits{Runs: 3, Streams: 4}) {
		t.Errorf("%+v", got)
	}
}

// TestParse: what is wrong in a file is named.
func TestParse(t *testing.T) {
	entry := func(more string) string {
		return "[[token]]\nid = \"a\"\nhash = \"sha256:" + strings.Repeat("0", 64) + "\"\nsubject = \"x\"\n" + more
	}
	for text, want := range map[string]string{
		entry("role = \"user\"\nlabels = [\"team=blue\"]\n"): "token.labels of the token a takes a table such as { name = \"value\" }, not a list",
		entry("role = 5\n"): "line 5: token.role of the token a takes a text in quotes, not a number",
		entry("role = \"user\"\nexpires = \"2030-01-01\"\n"):         "token.expires of the token a takes a time such as 2030-01-31T12:00:00Z, not a text",
		"[jwt]\nroles = \"admin\"\n":                                 "jwt.roles takes a table such as",
		"[quota]\nsubject = 5\n":                                     "quota.subject takes a table, not a number",
		"[token]\n":                                                  "token takes tables such as [[token]], not a table",
		"[[token]\n":                                                 "line 2",
		"\n[server]\n":                                               `line 2: there is no setting "server"`,
		entry("role = \"king\"\n"):                                   `no role "king"`,
		entry("role = \"agent\"\n"):                                  "no tokens of agents",
		entry("role = \"user\"\nprefix = \"a b\"\n"):                 `no id begins with the prefix "a b"`,
		entry("role = \"user\"\n[token.labels]\n\"\" = \"\"\n"):      "the name of a label is empty",
		entry("role = \"user\"\n[token.labels]\n\"a b\" = \"c\"\n"):  `the name of a label "a b"`,
		entry("role = \"user\"\n[token.labels]\na = \"b\\u0007\"\n"): "the label a has a control character",
		entry("role = \"user\"\n") + entry("role = \"user\"\n"):      "twice",
		"[[token]]\nid = \"a\"\nhash = \"md5:0\"\nsubject = \"x\"\nrole = \"user\"\n": "the hash of token a",
		"[quota]\nruns = -1\n": "runs is a number",
		"[quota]\nwords = 1\n": `line 2: there is no setting "quota.words"`,
		entry("role = \"user\"\n") + "\n" + strings.Replace(entry("role = 5\n"), "\"a\"", "\"b\"", 1): "line 11: token.role of the token b",
		entry("role = \"reader\"\nsession = \"s\"\n"):                                                 `line 6: there is no setting "token.session"`,
	} {
		if _, err := tokens.Parse([]byte(text)); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := tokens.Open(tokens.Options{Path: filepath.Join(t.TempDir(), "none")}); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("without a file: %v", err)
	}
}
