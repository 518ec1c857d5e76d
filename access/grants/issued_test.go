package grants_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/access/grants"
)

// TestEndsWithItsToken: a token of a session is valid for as long as the token with which it
// was made, and so are its streams.
func TestEndsWithItsToken(t *testing.T) {
	kept := map[string]context.Context{}
	keep := func(name string) (end context.CancelFunc) {
		kept[name], end = context.WithCancel(t.Context())
		return end
	}
	i := open(t, "")
	i.Kept = func(name string) context.Context { return kept[name] }
	grant := user
	grant.With = "tok_1"
	_, token := sign(t, i, grant)
	if valid(t, i, token) {
		t.Error("it is valid, and nobody knows the token that it was made with")
	}
	end := keep("tok_1")
	who, err := i.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	bound, stop := who.Bind(t.Context())
	defer stop()
	delete(kept, "tok_1")
	end()
	<-bound.Done()
	if valid(t, i, token) {
		t.Error("it is valid after the token that it was made with")
	}
	defer keep("tok_1")()
	if again, err := i.Verify(t.Context(), token); err != nil || again.Valid() != nil {
		t.Errorf("the file was put back, and the answer is %v", err)
	}
}

// TestRevokeBy: all that a subject issued can be revoked at once, also what no list shows. It
// stays revoked after a restart.
func TestRevokeBy(t *testing.T) { synctest.Test(t, revokeBy) }

func revokeBy(t *testing.T) {
	dir := t.TempDir()
	i := open(t, dir)
	made := map[string]string{}
	for _, by := range []string{"ada", "bob"} {
		for _, name := range []string{"", "a link"} {
			g := user
			g.By, g.Name, g.Subject = by, name, "vic"
			_, made[by+name] = sign(t, i, g)
		}
	}
	if n := len(i.Issued("")); n != 2 {
		t.Errorf("%d tokens are listed before any was used, want those with a name", n)
	}
	who, err := i.Verify(t.Context(), made["ada"])
	if err != nil || len(i.Issued("ada")) != 2 || len(i.Issued("")) != 3 || len(i.Issued("vic")) != 0 {
		t.Fatalf("%v: %+v", err, i.Issued("ada"))
	}
	if n := i.Issued("ada"); n[0].By != "ada" || n[0].Session != "s" || n[0].Subject != "vic" {
		t.Errorf("%+v", n)
	}
	if err := i.RevokeBy("ada"); err != nil {
		t.Fatal(err)
	}
	if who.Valid() == nil || len(i.Issued("ada")) != 0 || len(i.Issued("bob")) != 1 {
		t.Errorf("the stream of a revoked token goes on, or the list is wrong: %+v", i.Issued(""))
	}
	for _, i := range []*grants.Issuer{i, open(t, dir)} {
		for name, want := range map[string]bool{"ada": false, "adaa link": false, "bob": true, "boba link": true} {
			if valid(t, i, made[name]) != want {
				t.Errorf("%q is valid: %v", name, !want)
			}
		}
	}
	time.Sleep(time.Millisecond) // times are in milliseconds
	g := user
	g.By = "ada"
	if _, token := sign(t, i, g); !valid(t, i, token) {
		t.Error("what ada issues later is revoked, too")
	}
	if err := i.RevokeBy("a b"); err == nil {
		t.Error("a subject that cannot exist is revoked")
	}
}
