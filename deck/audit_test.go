package deck_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/deck"
)

// An audited deck is in a folder, with access control.
type audited struct {
	*guarded
	dir string
}

func openAudited(t *testing.T) *audited {
	t.Helper()
	g := &guarded{t: t, known: map[string]*access.Identity{
		"admin": {Subject: "root", Role: access.Admin}, "owner": {Subject: "ada", Role: access.User}, "foreign": {Subject: "eve", Role: access.User},
	}}
	dir := t.TempDir()
	g.Deck = openAt(t, dir, deck.Options{Access: &deck.Access{Verifiers: []gate.Verifier{g}}})
	return &audited{g, dir}
}

// send sends a request of a sender with an id and an address.
func (a *audited) send(sender, method, path, body string) *httptest.ResponseRecorder {
	a.t.Helper()
	r := httptest.NewRequestWithContext(a.t.Context(), method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1", "10.0.0.7:4711"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "r1")
	r.Header.Set("Tapedeck-Login", "1")
	if sender != "" {
		r.Header.Set("Authorization", "Bearer "+sender)
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	return w
}

// log returns the records as lines, oldest first. Refusals are written in the background,
// so it closes the deck first.
func (a *audited) log() (lines []string) {
	a.t.Helper()
	if err := a.Close(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	page, err := audit.Read(a.dir, api.AuditQuery{})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, r := range page.Records {
		lines = append([]string{strings.TrimSpace(fmt.Sprint(r.Outcome, " ", r.Action, " ", r.Actor, " ", r.Role, " ", r.Session, " ", r.Request, " ", r.Remote, " ", r.Reason))}, lines...)
	}
	return lines
}

func TestAuditLog(t *testing.T) {
	a := openAudited(t)
	for _, id := range []string{"s1", "s2"} {
		if _, err := a.Create(t.Context(), api.NewSession{ID: id, Owner: "ada", Title: "a secret title"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		sender, method, path, body string
		want                       int
	}{
		{"owner", http.MethodPost, "/api/v1/sessions/s1/export", `{"format":"ndjson"}`, 200},
		{"owner", http.MethodPatch, "/api/v1/sessions/s1", `{"title":"not recorded"}`, 200},
		{"owner", http.MethodPatch, "/api/v1/sessions/s1", `{"change_labels":{"share.read":"bob"}}`, 200},
		{"owner", http.MethodPost, "/api/v1/sessions/s1/erase", `{"all":true,"reason":"r"}`, 200},
		{"owner", http.MethodDelete, "/api/v1/sessions/s1", "", 204},
		{"admin", http.MethodDelete, "/v1/stream/sessions/s2", "", 204},
		{"admin", http.MethodDelete, "/api/v1/sessions/none", "", 404},
		{"owner", http.MethodPut, "/v1/stream/users/ada/x", "", 201},
		{"owner", http.MethodDelete, "/v1/stream/users/ada/x", "", 204},
		{"", http.MethodPost, "/login", `{"token":"owner"}`, 200},
		{"owner", http.MethodDelete, "/login", "", 204},
	} {
		if w := a.send(test.sender, test.method, test.path, test.body); w.Code != test.want {
			t.Fatalf("%s %s: %d %s", test.method, test.path, w.Code, w.Body)
		}
	}
	if err := a.Session("absent").Delete(t.Context()); err == nil {
		t.Error("there was such a session")
	}
	want := []string{
		"allowed session.export ada user s1 r1 10.0.0.7", "allowed session.share ada user s1 r1 10.0.0.7",
		"allowed session.erase ada user s1 r1 10.0.0.7", "allowed session.delete ada user s1 r1 10.0.0.7",
		"allowed session.delete root admin s2 r1 10.0.0.7",
		"allowed session.delete root admin none r1 10.0.0.7", "failed session.delete root admin none r1 10.0.0.7 not_found",
		"allowed stream.delete ada user stream/users/ada/x r1 10.0.0.7",
		"allowed login ada user  r1 10.0.0.7", "allowed logout ada user  r1 10.0.0.7",
		"allowed session.delete  program absent", "failed session.delete  program absent   not_found",
	}
	if diff := cmp.Diff(want, a.log()); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"admin", "users"} {
		b, err := os.ReadFile(filepath.Join(a.dir, audit.Folder, name+".jsonl"))
		if err != nil || strings.Contains(string(b), "secret title") {
			t.Errorf("%v\n%s", err, b)
		}
	}
}

// TestAuditOfRefusals: who was refused is recorded once for each request, and what the
// server only asks for itself is not.
func TestAuditOfRefusals(t *testing.T) {
	a := openAudited(t)
	if _, err := a.Create(t.Context(), api.NewSession{ID: "s1", Owner: "ada"}); err != nil {
		t.Fatal(err)
	}
	a.send("owner", http.MethodGet, "/api/v1/sessions/s1", "")
	a.send("foreign", http.MethodDelete, "/api/v1/sessions/s1", "")
	a.send("foreign", http.MethodGet, "/api/v1/audit", "")
	a.send("admin", http.MethodGet, "/api/v1/audit", "")
	a.send("", http.MethodGet, "/api/v1/sessions", "")
	a.send("", http.MethodPost, "/login", `{"token":"wrong"}`)
	want := []string{
		"refused access eve user s1 r1 10.0.0.7",
		"refused access    r1 10.0.0.7 unauthorized",
		"refused login    r1 10.0.0.7 unauthorized",
		"refused access eve user   10.0.0.7 more refusals like the one before",
	}
	if diff := cmp.Diff(want, a.log()); diff != "" {
		t.Error(diff)
	}
}

// TestAuditOfTokens: a token of a session is recorded by its id, and not answered if that
// is not possible. A revocation always counts.
func TestAuditOfTokens(t *testing.T) {
	a := openAudited(t)
	if _, err := a.Create(t.Context(), api.NewSession{ID: "s1", Owner: "ada"}); err != nil {
		t.Fatal(err)
	}
	made := a.send("owner", http.MethodPost, "/api/v1/sessions/s1/tokens", `{"role":"reader"}`)
	page, err := a.Audit(t.Context(), api.AuditQuery{})
	if err != nil || len(page.Records) != 1 || page.Records[0].TokenID == "" || !strings.Contains(made.Body.String(), page.Records[0].TokenID) {
		t.Fatalf("%v %+v %s", err, page, made.Body)
	}
	block(t, a.dir)
	if w := a.send("owner", http.MethodPost, "/api/v1/sessions/s1/tokens", `{"role":"reader"}`); w.Code != 503 || strings.Contains(w.Body.String(), "tds_") {
		t.Errorf("an unrecorded token: %d %s", w.Code, w.Body)
	}
	if w := a.send("owner", http.MethodDelete, "/api/v1/sessions/s1/tokens/"+page.Records[0].TokenID, ""); w.Code != 503 || !strings.Contains(w.Body.String(), "was revoked") {
		t.Errorf("an unrecorded revocation: %d %s", w.Code, w.Body)
	}
}

// block makes the audit log of a folder unwritable, also for root.
func block(t *testing.T, dir string) {
	t.Helper()
	folder := filepath.Join(dir, audit.Folder)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNothingIsDoneUnrecorded: what cannot be recorded is refused, and not done.
func TestNothingIsDoneUnrecorded(t *testing.T) {
	a := openAudited(t)
	if _, err := a.Create(t.Context(), api.NewSession{ID: "s1", Owner: "ada"}); err != nil {
		t.Fatal(err)
	}
	block(t, a.dir)
	for _, request := range []string{"DELETE /api/v1/sessions/s1", "POST /api/v1/sessions/s1/export", "POST /api/v1/sessions/s1/erase", "DELETE /v1/stream/sessions/s1"} {
		method, path, _ := strings.Cut(request, " ")
		if w := a.send("owner", method, path, `{}`); w.Code != 503 {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
	if w := a.send("", http.MethodPost, "/login", `{"token":"owner"}`); w.Code != 503 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("an unrecorded log-in: %d %v", w.Code, w.Header())
	}
	if s, err := a.Session("s1").Info(t.Context()); err != nil || s.Head != 1 {
		t.Errorf("the session has %d events, %v", s.Head, err)
	}
}

// TestAuditRate: a user cannot push the records of others out of the log; an admin is not
// limited.
func TestAuditRate(t *testing.T) {
	a := openAudited(t)
	ctx := access.With(t.Context(), a.known["owner"])
	for n := range 1100 {
		err := a.Session("none").Delete(ctx)
		if n < 1000 && tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Fatalf("delete %d: %v", n, err)
		}
		if n == 1099 && tapedeck.KindOf(err) != tapedeck.Limited {
			t.Errorf("delete %d: %v", n, err)
		}
	}
	if err := a.Session("none").Delete(access.With(t.Context(), a.known["admin"])); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Error(err)
	}
}

func TestNoAudit(t *testing.T) {
	dir := t.TempDir()
	d := openAt(t, dir, deck.Options{NoAudit: true})
	s, err := d.Create(t.Context(), api.NewSession{})
	if err == nil {
		err = s.Delete(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, audit.Folder)); err == nil {
		t.Error("there is an audit log")
	}
	if _, err := d.Audit(t.Context(), api.AuditQuery{}); tapedeck.KindOf(err) != tapedeck.Unsupported {
		t.Error(err)
	}
}
