package tokens_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/tokens"
)

// TestChanges: who reads the changes in their order knows which tokens are valid: one that was
// changed is removed before it is added.
func TestChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.toml")
	ada, _ := create(t, path, tokens.Token{Subject: "ada", Role: access.User})
	bob, _ := create(t, path, tokens.Token{Subject: "bob", Role: access.User})
	s, err := tokens.Open(tokens.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	valid := map[string]bool{ada.ID: true, bob.ID: true}
	var told []string
	s.Changes(func(t tokens.Token, removed bool) {
		valid[t.ID] = !removed
		told = append(told, fmt.Sprint(t.Subject, " ", t.Role, " ", removed))
	})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), `"user"`, `"reader"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Reload()
	slices.Sort(told)
	if want := []string{"ada reader false", "ada user true", "bob reader false", "bob user true"}; !slices.Equal(told, want) {
		t.Errorf("told were %q", told)
	}
	if !valid[ada.ID] || !valid[bob.ID] {
		t.Errorf("after the last change of each, valid are %v", valid)
	}
}
