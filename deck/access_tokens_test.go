package deck_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// send sends a request with a token, and returns the answer.
func (g *guarded) send(method, path, token, body string) (int, string) {
	g.t.Helper()
	r := httptest.NewRequestWithContext(g.t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	g.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// issue makes a token of a session as its owner.
func (g *guarded) issue(session, body string) api.IssuedToken {
	g.t.Helper()
	code, answer := g.send("POST", "/api/v1/sessions/"+session+"/tokens", "owner", body)
	var out api.IssuedToken
	if err := json.Unmarshal([]byte(answer), &out); err != nil || code != http.StatusCreated {
		g.t.Fatalf("%d %s, %v", code, answer, err)
	}
	return out
}

// TestTokensOfSessions: a token is good for its session and what it was made for, until it is
// revoked or the session is replaced.
func TestTokensOfSessions(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session, other := g.session(""), g.session("")
	path := "/api/v1/sessions/" + session
	user := g.issue(session, `{"role":"user"}`)
	if user.Subject != "ada" || user.Expires.Before(time.Now()) || user.Session != session {
		t.Errorf("%+v", user)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", path, "", 200}, {"GET", "/api/v1/sessions/" + other, "", 404}, {"GET", "/api/v1/sessions", "", 403},
		{"POST", path + "/task", `{"task":"go"}`, 202}, {"DELETE", path, "", 403}, {"POST", path + "/tokens", `{"role":"reader"}`, 403}, {"POST", path + "/fork", "", 403},
	} {
		if code, answer := g.send(c.method, c.path, user.Token, c.body); code != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, code, answer, c.want)
		}
	}
	agent := g.issue(session, `{"role":"agent","subject":"coder","invocation":"inv"}`)
	if code, answer := g.send("POST", path+"/events", agent.Token, event); code != 200 {
		t.Errorf("%d %s", code, answer)
	}
	if code, answer := g.send("DELETE", "/api/v1/sessions/"+other+"/tokens/"+user.ID, "owner", ""); code != 404 {
		t.Errorf("%d %s", code, answer)
	}
	if code, _ := g.send("GET", path, user.Token, ""); code != 200 {
		t.Error("the token of a session is revoked through another one")
	}
	if code, answer := g.send("DELETE", path+"/tokens/"+user.ID, "owner", ""); code != 204 {
		t.Errorf("%d %s", code, answer)
	}
	if code, _ := g.send("GET", path, user.Token, ""); code != 401 {
		t.Errorf("a revoked token: %d", code)
	}
	if code, _ := g.send("DELETE", path, "owner", ""); code != 204 {
		t.Fatal(code)
	}
	if _, err := g.Create(t.Context(), api.NewSession{ID: session, Owner: "eve"}); err != nil {
		t.Fatal(err)
	}
	if code, answer := g.send("GET", path, agent.Token, ""); code != 404 {
		t.Errorf("a session that replaces the one of the token: %d %s", code, answer)
	}
}

// TestWrongTokens: what cannot be issued is refused.
func TestWrongTokens(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("")
	for body, want := range map[string]int{
		`{"role":"admin"}`: 400, `{"role":"agent"}`: 400, `{"role":"user","before":2}`: 400, `{"role":"reader","before":99}`: 400, `{"role":"reader","before":0}`: 400, `{"role":"reader","before":-1}`: 400,
		`{"role":"reader","before":2,"forks":true}`: 400, `{"role":"user","subject":"bob"}`: 403, `{"role":"user","expires":"2001-01-01T00:00:00Z"}`: 400,
		`{"role":"agent","subject":"x","invocation":"never"}`: 404, `{"role":"reader","subject":"a b"}`: 403, `{"role":"usr"}`: 400,
	} {
		if code, answer := g.send("POST", "/api/v1/sessions/"+session+"/tokens", "owner", body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	plain := openAt(t, "", deck.Options{InMemory: true})
	if code, answer := do(plain, "POST", "/api/v1/sessions/x/tokens", `{"role":"reader"}`); code != 415 || !strings.Contains(answer, "no access control") {
		t.Errorf("%d %s", code, answer)
	}
}

// TestWrongTokensSayWhatToDo: the error of a token that cannot be issued names what is accepted
// here, also for people who use the command line.
func TestWrongTokensSayWhatToDo(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	open, idle := g.session(""), g.newID()
	if _, err := g.Create(t.Context(), api.NewSession{ID: idle, Owner: "ada"}); err != nil {
		t.Fatal(err)
	}
	const roles = "the roles are reader, user, agent\""
	for _, c := range []struct{ session, body, want, hint string }{
		{idle, `{"role":"boss"}`, `there is no role \"boss\" for a token of a session`, roles},
		{idle, `{"role":""}`, `there is no role \"\"`, roles},
		{idle, `{"role":"admin"}`, `there is no role \"admin\" for a token of a session`, roles},
		{idle, `{"role":"agent"}`, "needs the invocation of an open run", "--role agent --run"},
		{open, `{"role":"agent"}`, "needs the invocation of an open run", "the open runs of the session are "},
		{idle, `{"role":"agent","invocation":"nope"}`, `has no open run \"nope\"`, "start one with tapedeck run"},
		{open, `{"role":"agent","invocation":"nope"}`, `has no open run \"nope\"`, "the open runs of the session are "},
		{open, `{"role":"reader","expires":"30d"}`, `the member \"expires\" cannot be \"30d\"`, `\"2026-02-01T00:00:00Z\"`},
		{open, `{"role":"reader","Expires":7}`, `the member \"expires\" cannot be 7`, `\"2026-02-01T00:00:00Z\"`},
		{open, `{"role":"reader","invocation":"inv"}`, "only a token of the role agent", "--role agent with --run"},
	} {
		code, answer := g.send("POST", "/api/v1/sessions/"+c.session+"/tokens", "owner", c.body)
		if code < 400 || code >= 500 || !strings.Contains(answer, c.want) || !strings.Contains(answer, c.hint) {
			t.Errorf("%s: %d %s", c.body, code, answer)
		}
	}
}

// TestEmptyFilters: a filter that is empty, such as a variable that is not set, is refused: it
// would select everything.
func TestEmptyFilters(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	for path, names := range map[string]string{
		"/tokens": "issued_by", "/sessions": "agent owner parent from to projectId taskId label without_label status",
		"/search": "session role agent owner from to", "/inbox": "agent owner", "/usage": "agent owner from to", "/audit": "action actor session outcome from to",
		"/sessions/$S/events": "thread type invocation channel", "/sessions/$S/snapshot": "thread", "/sessions/$S/inputs": "thread",
	} {
		session := g.session("")
		for name := range strings.FieldsSeq(names) {
			at := "/api/v1" + strings.ReplaceAll(path, "$S", session) + "?q=x&" + name + "="
			if !strings.Contains(path, "/search") && path != "/sessions" {
				at = strings.Replace(at, "q=x&", "", 1)
			}
			if code, answer := g.send("GET", at, "admin", ""); code != http.StatusBadRequest || !strings.Contains(answer, name) {
				t.Errorf("GET %s: %d %s", at, code, answer)
			}
		}
	}
}

// TestFrozenToken: a token with an offset shows nothing of what follows, in any view.
func TestFrozenToken(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session := g.session("")
	if _, err := g.Session(session).Rename(t.Context(), api.Rename{Title: new(secret), Labels: map[string]string{"x": secret}}); err != nil {
		t.Fatal(err)
	}
	for _, e := range secretRun() {
		if _, err := g.Session(session).Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	token := g.issue(session, `{"role":"reader","before":2}`).Token
	whole := g.issue(session, `{"role":"reader"}`).Token
	shown := 0
	for route, r := range table {
		method, path, _ := strings.Cut(route, " ")
		if method != "GET" || !strings.Contains(path, "{id}") && !strings.Contains(path, "{chat}") {
			continue
		}
		g.known["frozen"], g.known["reader"] = identityOf(t, g, token), identityOf(t, g, whole)
		if a := g.ask(route, r, "frozen", session); strings.Contains(a.body, secret) {
			t.Errorf("%s shows what follows: %s", route, a.body)
		}
		if a := g.ask(route, r, "reader", session); strings.Contains(a.body, secret) {
			shown++
		}
	}
	if shown < 8 {
		t.Errorf("only %d routes show the secret to those who may see it", shown)
	}
	code, answer := g.send("GET", "/api/v1/sessions/"+session, token, "")
	var s tapedeck.Session
	if err := json.Unmarshal([]byte(answer), &s); err != nil || code != 200 || s.Head != 2 || !s.Closed || s.Title != "hello" || len(s.Runs) > 0 || s.Status != tapedeck.StatusIdle {
		t.Errorf("%d %s, %v", code, answer, err)
	}
	for _, path := range []string{"?from=3", "?from=1000", "?reverse=true&limit=5"} {
		if _, answer := g.send("GET", "/api/v1/sessions/"+session+"/events"+path, token, ""); strings.Contains(answer, secret) || strings.Contains(answer, `"offset":2`) {
			t.Errorf("%s: %s", path, answer)
		}
	}
	for _, path := range []string{"/snapshot?at=3", "/summary?at=3", "/context?at=3"} {
		if code, answer := g.send("GET", "/api/v1/sessions/"+session+path, token, ""); code != 400 || !strings.Contains(answer, "at offset 2") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
}

func identityOf(t *testing.T, g *guarded, token string) *access.Identity {
	t.Helper()
	who, err := g.Issuer().Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// TestLoginWithALongToken: a token that no cookie can hold logs nobody in.
func TestLoginWithALongToken(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	long := strings.Repeat("x", 5000)
	g.known[long] = g.known["owner"]
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(`{"token":"`+long+`"}`))
	r.Host = "localhost:4747"
	r.Header.Set("Tapedeck-Login", "1")
	w := httptest.NewRecorder()
	if g.Handler().ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge || len(w.Result().Cookies()) > 0 || !strings.Contains(w.Body.String(), "fewer claims") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestLoginWithoutAToken: the error of a log-in without a token says what to send.
func TestLoginWithoutAToken(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	for body, want := range map[string]string{
		`{"token":""}`: "the log-in has no token", `{"token":" "}`: "the log-in has no token", `{}`: "the log-in has no token", `null`: "the log-in has no token", ``: "the body is not",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", strings.NewReader(body))
		r.Host = "localhost:4747"
		r.Header.Set("Tapedeck-Login", "1")
		w := httptest.NewRecorder()
		if g.Handler().ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "Authorization") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// TestLogin: a browser logs in with a cookie that only its own pages use.
func TestLogin(t *testing.T) {
	g := openGuarded(t, deck.Options{AllowOrigins: []string{"https://app.example"}})
	ask := func(method, path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{"token":"owner"}`))
		r.Host = "localhost:4747"
		for ; len(headers) > 0; headers = headers[2:] {
			r.Header.Set(headers[0], headers[1])
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		return w
	}
	const own = "http://localhost:4747"
	in := ask("POST", "/login", "Tapedeck-Login", "1", "Origin", own, "X-Forwarded-Proto", "https")
	cookies := in.Result().Cookies()
	if in.Code != 200 || len(cookies) != 1 || !cookies[0].HttpOnly || !cookies[0].Secure || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != "/" {
		t.Fatalf("%d %s %+v", in.Code, in.Body, cookies)
	}
	cookie := fmt.Sprintf("%s=%s", cookies[0].Name, cookies[0].Value)
	for name, c := range map[string]struct {
		want    int
		method  string
		path    string
		headers []string
	}{
		"a log-in without the header":       {403, "POST", "/login", []string{"Origin", own}},
		"a log-in of another site":          {403, "POST", "/login", []string{"Tapedeck-Login", "1", "Origin", "https://evil.example"}},
		"a log-in of an allowed origin":     {403, "POST", "/login", []string{"Tapedeck-Login", "1", "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}},
		"a read":                            {200, "GET", "/api/v1/sessions", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin"}},
		"a write of an allowed origin":      {403, "POST", "/api/v1/sessions", []string{"Cookie", cookie, "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}},
		"a read of an allowed origin":       {403, "GET", "/api/v1/sessions", []string{"Cookie", cookie, "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}},
		"a read of a page on the same site": {403, "GET", "/api/v1/sessions", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}},
		"the page":                          {200, "GET", "/login", []string{"Accept", "text/html"}},
		"who it is":                         {200, "GET", "/login", []string{"Cookie", cookie}},
		"a token of another server":         {401, "GET", "/api/v1/sessions", []string{"Cookie", cookies[0].Name + "=td_x"}},
		"a stream with a parameter":         {401, "GET", "/api/v1/sessions?token=owner", []string{"Accept", "application/json"}},
	} {
		if w := ask(c.method, c.path, c.headers...); w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
	if w := ask("GET", "/login", "Accept", "text/html"); !strings.Contains(w.Header().Get("Content-Security-Policy"), "script-src 'sha256-") || !strings.Contains(w.Body.String(), "Your token") {
		t.Errorf("the page: %v", w.Header())
	}
	for path, want := range map[string]string{"/": "/login?next=%2F", "/s/x?at=3": "/login?next=%2Fs%2Fx%3Fat%3D3", "/s/x?token=y": "/login?next=%2Fs%2Fx"} {
		if w := ask("GET", path, "Accept", "text/html"); w.Code != 302 || w.Header().Get("Location") != want {
			t.Errorf("%s without a log-in: %d %v", path, w.Code, w.Header())
		}
		if w := ask("GET", path, "Accept", "text/html", "Cookie", cookie); w.Code != 200 {
			t.Errorf("%s with a log-in: %d %v", path, w.Code, w.Header())
		}
	}
	out := ask("DELETE", "/login", "Tapedeck-Login", "1", "Cookie", cookie)
	if c := out.Result().Cookies(); out.Code != 204 || len(c) != 1 || c[0].Value != "" || c[0].Expires.After(time.Now()) {
		t.Errorf("the log-out: %d %+v", out.Code, c)
	}
}

// TestSessionTokens: a token with a name is listed without the token itself, until it is revoked,
// also after a restart; one without a name is not.
func TestSessionTokens(t *testing.T) {
	g := openGuarded(t, deck.Options{})
	session, other := g.session(""), g.session("")
	path := "/api/v1/sessions/" + session + "/tokens"
	g.issue(session, `{"role":"reader"}`)
	first := g.issue(session, `{"role":"reader","name":"For Bob","before":2}`)
	second := g.issue(session, `{"role":"user","name":"For Eve","forks":true}`)
	g.issue(other, `{"role":"reader","name":"Another session"}`)
	list := func() (ids []string) {
		t.Helper()
		code, answer := g.send("GET", path, "owner", "")
		var out api.SessionTokens
		if err := json.Unmarshal([]byte(answer), &out); err != nil || code != http.StatusOK || strings.Contains(answer, "tds_") {
			t.Fatalf("%d %s, %v", code, answer, err)
		}
		for _, n := range out.Tokens {
			ids = append(ids, n.ID)
			if n.ID == first.ID && (n.Name != "For Bob" || n.Before != 2 || n.Role != "reader" || n.Subject != "ada" || !n.Expires.Equal(first.Expires) || n.Created.IsZero()) {
				t.Errorf("%+v", n)
			}
		}
		slices.Sort(ids) // those of one millisecond have no order
		return ids
	}
	both := []string{first.ID, second.ID}
	slices.Sort(both)
	if got := fmt.Sprint(list()); got != fmt.Sprint(both) {
		t.Errorf("listed are %s", got)
	}
	if code, answer := g.send("DELETE", path+"/"+second.ID, "owner", ""); code != 204 {
		t.Fatalf("%d %s", code, answer)
	}
	if got := fmt.Sprint(list()); got != fmt.Sprint([]string{first.ID}) {
		t.Errorf("listed are %s", got)
	}
	if code, answer := g.send("POST", path, "owner", `{"role":"reader","name":"a\nb"}`); code != 400 {
		t.Errorf("a name with a line break: %d %s", code, answer)
	}
	if code, _ := g.send("DELETE", path, "owner", ""); code != 204 || list() != nil {
		t.Errorf("after all are revoked: %d, %v", code, list())
	}
}

// TestLoginWithoutAccess: a server without access control says that nobody is logged in, and
// sends people to its screen.
func TestLoginWithoutAccess(t *testing.T) {
	d, err := deck.Open(t.Context(), "", deck.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	for _, c := range []struct {
		method, accept string
		code           int
	}{{"GET", "application/json", 200}, {"GET", "text/html", 302}, {"POST", "application/json", 405}} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/login", nil)
		r.Host = "127.0.0.1"
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		d.Handler().ServeHTTP(w, r)
		if w.Code != c.code || c.code == 200 && strings.TrimSpace(w.Body.String()) != "{}" || c.code == 302 && w.Header().Get("Location") != "/" {
			t.Errorf("%s for %s: %d %s", c.method, c.accept, w.Code, w.Body)
		}
	}
}
