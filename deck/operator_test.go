package deck_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/metrics"
	"github.com/tapedeck/tapedeck/payload"
)

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Host = "127.0.0.1"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestStatsOfADeck: the figures of the store, the cache, the requests and the events are
// those of what happened, and no figure names a session.
func TestStatsOfADeck(t *testing.T) {
	d := openAt(t, t.TempDir(), deck.Options{Version: "v9"})
	s, err := d.Create(t.Context(), api.NewSession{ID: "a-session-of-its-own"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m", payload.RoleUser, "hello")})); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/sessions/a-session-of-its-own/events", nil)
	r.Host = "127.0.0.1"
	d.Handler().ServeHTTP(httptest.NewRecorder(), r)
	got := d.Stats()
	st := got.Store
	if got.Version != "v9" || got.Instance != d.Instance() || st.Kind != "sqlite" || st.Events != 2 || st.Groups < 2 || st.LogBytes == 0 || st.DataBytes == 0 || st.TailBytes == 0 || st.TailHits == 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Requests) != 1 || got.Requests[0].Protocol != "http" || got.Requests[0].Answered != 1 {
		t.Errorf("%+v", got.Requests)
	}
	text := scrape(t, d.Handler())
	for _, line := range []string{"tapedeck_events_total 2\n", `tapedeck_build_info{version="v9"} 1`, "tapedeck_cached_sessions 1\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics have no %s", line)
		}
	}
	if strings.Contains(text, "a-session-of-its-own") {
		t.Error("the metrics name a session")
	}
}

func TestWithoutMetricsThereAreNone(t *testing.T) {
	d := openAt(t, "", deck.Options{InMemory: true, NoMetrics: true, NoScreen: true})
	for _, path := range []string{"/metrics", "/debug/pprof/heap", "/api/v1/stats"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		if d.Handler().ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if got := d.Stats(); got.Instance != "" {
		t.Errorf("%+v", got)
	}
}

var metric = regexp.MustCompile("`(tapedeck_\\w+)`")

// TestDocsHaveEveryMetric: the table of docs/observability.md has the metrics of the server
// and no others.
func TestDocsHaveEveryMetric(t *testing.T) {
	b, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range metric.FindAllStringSubmatch(string(b), -1) {
		documented = append(documented, m[1])
	}
	d := openAt(t, "", deck.Options{InMemory: true})
	served := metricsOf(scrape(t, d.Handler()))
	served = append(served, metricsOf(scrape(t, metrics.NewCluster("test").Handler()))...)
	for _, name := range served {
		if strings.HasPrefix(name, "tapedeck_") && !slices.Contains(documented, name) {
			t.Errorf("docs/observability.md does not have %s", name)
		}
	}
	for _, name := range documented {
		if !slices.Contains(served, name) {
			t.Errorf("docs/observability.md has %s, which the server does not have", name)
		}
	}
}

var named = regexp.MustCompile(`\b(?:tapedeck|go|process)_\w+`)

// TestDashboardNamesMetrics: every metric that the dashboard asks for is served.
func TestDashboardNamesMetrics(t *testing.T) {
	b, err := os.ReadFile("../docs/operate/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	d := openAt(t, "", deck.Options{InMemory: true})
	served, asked := metricsOf(scrape(t, d.Handler())), 0
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			names := named.FindAllString(target.Expr, -1)
			if len(names) == 0 || strings.Count(target.Expr, "(") != strings.Count(target.Expr, ")") {
				t.Errorf("%s: %s", p.Title, target.Expr)
			}
			for _, name := range names {
				asked++
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					if base := strings.TrimSuffix(name, suffix); slices.Contains(served, base) {
						name = base
					}
				}
				if !slices.Contains(served, name) {
					t.Errorf("%s asks for %s, which the server does not have", p.Title, name)
				}
			}
		}
	}
	if asked < 30 {
		t.Errorf("the dashboard asks for %d metrics only", asked)
	}
}

// metricsOf returns the names of metrics in an answer.
func metricsOf(text string) (names []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names
}
