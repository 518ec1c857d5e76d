package grants_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/grants"
)

func open(t *testing.T, dir string) *grants.Issuer {
	t.Helper()
	i, err := grants.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func sign(t *testing.T, i *grants.Issuer, g grants.Grant) (grants.Grant, string) {
	t.Helper()
	if g.Expires == 0 {
		g.Expires = time.Now().Add(time.Hour).Unix()
	}
	token, err := i.Sign(&g)
	if err != nil {
		t.Fatal(err)
	}
	return g, token
}

func valid(t *testing.T, i *grants.Issuer, token string) bool {
	t.Helper()
	who, err := i.Verify(t.Context(), token)
	if err != nil && tapedeck.KindOf(err) != tapedeck.Unauthorized {
		t.Error(err)
	}
	return err == nil && who != nil
}

var user = grants.Grant{Subject: "ada", Role: access.User, Session: "s", Gen: 7}

// TestToken: a token says what it was made for, and no other spelling of it is valid.
func TestToken(t *testing.T) {
	i := open(t, "")
	_, token := sign(t, i, grants.Grant{Subject: "vic", Role: access.Reader, Session: "s", Gen: 7, Before: 12})
	who, err := i.Verify(t.Context(), token)
	if err != nil || who.Subject != "vic" || who.Role != access.Reader || who.Limits.Session != "s" || who.Limits.Gen != 7 || who.Limits.Before != 12 {
		t.Fatalf("%+v %v", who, err)
	}
	if again, err := i.Verify(t.Context(), token); err != nil || again != who {
		t.Errorf("its next request has another identity: %v", err)
	}
	for at := range token {
		for _, c := range []byte{'A', 'B', '_', '.', '\n'} {
			if other := token[:at] + string(c) + token[at+1:]; other != token && strings.HasPrefix(other, grants.Prefix) && valid(t, i, other) {
				t.Fatalf("%s is valid, too", other)
			}
		}
	}
	for _, other := range []string{token + "=", token + "\n", strings.Replace(token, ".", "\n.", 1), grants.Prefix, grants.Prefix + "."} {
		if valid(t, i, other) {
			t.Errorf("%q is valid, too", other)
		}
	}
	if valid(t, open(t, ""), token) {
		t.Error("a token of another server is valid")
	}
	body, _, _ := strings.Cut(strings.TrimPrefix(token, grants.Prefix), ".")
	if b, err := base64.RawURLEncoding.DecodeString(body); err != nil || !strings.Contains(string(b), `"before":12`) {
		t.Errorf("%s %v", b, err)
	}
}

// TestLife: a token is not made for the past, nor for more than a year.
func TestLife(t *testing.T) {
	i := open(t, "")
	for _, d := range []time.Duration{-time.Minute, 400 * 24 * time.Hour} {
		g := user
		g.Expires = time.Now().Add(d).Unix()
		if _, err := i.Sign(&g); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%v: %v", d, err)
		}
	}
	g := user
	g.Role, g.Expires = access.Admin, time.Now().Add(time.Hour).Unix()
	if _, err := i.Sign(&g); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("a token of one session for an admin: %v", err)
	}
}

// TestRevoke: a revocation ends what the token began, holds after a restart, and leaves
// other tokens valid.
func TestRevoke(t *testing.T) {
	dir := t.TempDir()
	i := open(t, dir)
	one, first := sign(t, i, user)
	_, second := sign(t, i, user)
	other := user
	other.Gen = 8
	_, third := sign(t, i, other)
	who, err := i.Verify(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Revoke(8, one.ID); tapedeck.KindOf(err) != tapedeck.NotFound || !valid(t, i, first) {
		t.Errorf("the owner of another session revokes it: %v", err)
	}
	if err := i.Revoke(7, one.ID); err != nil {
		t.Fatal(err)
	}
	if who.Revoked.Err() == nil || valid(t, i, first) || !valid(t, i, second) {
		t.Error("a revocation")
	}
	i = open(t, dir)
	if valid(t, i, first) || !valid(t, i, second) {
		t.Error("a revocation after a restart")
	}
	if err := i.RevokeAll(7); err != nil {
		t.Fatal(err)
	}
	i = open(t, dir)
	if valid(t, i, second) || !valid(t, i, third) {
		t.Error("the revocation of all tokens of a session")
	}
	if err := os.WriteFile(filepath.Join(dir, grants.RevokedFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := grants.Open(dir); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("without the revocations: %v", err)
	}
}

// TestRevokeUnknown: an id that was never one leaves nothing in the file.
func TestRevokeUnknown(t *testing.T) {
	dir := t.TempDir()
	i := open(t, dir)
	one, _ := sign(t, i, user)
	for _, id := range []string{"", ".", "grant_x", "grant_x.1.", one.ID + "x", "x" + one.ID, strings.Replace(one.ID, ".", ".1", 1), strings.ToUpper(one.ID)} {
		if err := i.Revoke(7, id); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, grants.RevokedFile)); err == nil {
		t.Error("an unknown id is stored")
	}
	for range 2 {
		if err := i.Revoke(7, one.ID); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, grants.RevokedFile))
	if err != nil || strings.Count(string(b), one.ID) != 1 || !strings.Contains(string(b), strconv.FormatInt(one.Expires, 10)) {
		t.Errorf("%s %v", b, err)
	}
	if err := tapedeck.CheckID("the id", one.ID); err != nil {
		t.Error(err)
	}
}

// TestRevokeExpired: a token that has expired leaves nothing in the file when it is revoked.
func TestRevokeExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		i := open(t, dir)
		late, _ := sign(t, i, user)
		time.Sleep(2 * time.Hour)
		if err := i.Revoke(7, late.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, grants.RevokedFile)); err == nil {
			t.Error("a token that has expired is stored")
		}
	})
}

// TestRevokeMany: the single tokens that a session revokes have a limit, which counts from
// zero after it has revoked all.
func TestRevokeMany(t *testing.T) {
	i := open(t, "")
	var ids []string
	for range 1001 {
		g, _ := sign(t, i, user)
		ids = append(ids, g.ID)
	}
	for n, id := range ids {
		if err := i.Revoke(7, id); (tapedeck.KindOf(err) == tapedeck.Limited) != (n == 1000) {
			t.Fatalf("token %d: %v", n, err)
		}
	}
	other := user
	other.Gen = 8
	if g, _ := sign(t, i, other); i.Revoke(8, g.ID) != nil {
		t.Error("another session cannot revoke")
	}
	if err := i.RevokeAll(7); err != nil {
		t.Fatal(err)
	}
	if err := i.Revoke(7, ids[1000]); err != nil {
		t.Errorf("after all were revoked: %v", err)
	}
}

// TestNamedAfterRestart: the names of tokens outlive a restart, what has expired does not, and
// a file with a fault costs only the list.
func TestNamedAfterRestart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, grants.NamedFile)
	i := open(t, dir)
	g := grants.Grant{Subject: "ada", Role: access.Reader, Session: "s", Gen: 7, Expires: time.Now().Add(time.Hour).Unix()}
	sign(t, i, g)
	g.Name = "stays"
	sign(t, i, g)
	if got := open(t, dir).Named(7); len(got) != 1 || got[0].Name != "stays" || got[0].ID == "" || got[0].Session != "s" {
		t.Errorf("%+v", got)
	}
	b, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(b), grants.Prefix) {
		t.Errorf("the file has a token: %s, %v", b, err)
	}
	old := strings.ReplaceAll(string(b), strconv.FormatInt(g.Expires, 10), "1")
	for _, content := range []string{old, "{", `{"7":1}`} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := open(t, dir).Named(7); len(got) != 0 {
			t.Errorf("%s: %+v", content, got)
		}
	}
}

// TestFilesOfOthers: what is no file of ours is not taken for one that has a fault.
func TestFilesOfOthers(t *testing.T) {
	for _, name := range []string{grants.NamedFile, grants.RevokedFile} {
		for _, content := range []string{"mine", `{"a":1}`, `[1]`} {
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := grants.Open(dir); err == nil || !strings.Contains(err.Error(), "is not a file that Tapedeck has made") {
				t.Errorf("%s %s: %v", name, content, err)
			}
		}
	}
}

// TestNamedLimit: one session cannot fill the file.
func TestNamedLimit(t *testing.T) {
	i := open(t, "")
	g := grants.Grant{Subject: "ada", Role: access.Reader, Session: "s", Gen: 7, Expires: time.Now().Add(time.Hour).Unix(), Name: "n"}
	for range 1000 {
		sign(t, i, g)
	}
	if _, err := i.Sign(&g); tapedeck.KindOf(err) != tapedeck.Limited {
		t.Errorf("one more: %v", err)
	}
	g.Name = ""
	sign(t, i, g)
}
