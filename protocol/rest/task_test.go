package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck/protocol/rest"
)

// TestTaskRequests: the requests in the form of the task protocol, and no others, are
// those of Options.Task.
func TestTaskRequests(t *testing.T) {
	const teapot = http.StatusTeapot
	tasks := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(teapot) })
	for path, want := range map[string]struct{ with, without int }{
		"events?format=task":               {teapot, 415},
		"events?limit=1&format=task":       {teapot, 415},
		"stream?format=task":               {teapot, 415},
		"events/history":                   {teapot, 415},
		"events/history?limit=3":           {teapot, 415},
		"events":                           {200, 200},
		"events?format=native":             {200, 200},
		"events?format=tusk":               {400, 400},
		"stream?begin=task":                {400, 400},
		"events?format=native&format=task": {400, 400},
	} {
		for _, o := range []rest.Options{{Task: tasks}, {}} {
			handler, g := newHandler(o)
			g.session(t, "s", 1)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/sessions/s/"+path, nil))
			if status := map[bool]int{true: want.with, false: want.without}[o.Task != nil]; w.Code != status {
				t.Errorf("%s with task %t: %d %s, want %d", path, o.Task != nil, w.Code, w.Body, status)
			}
		}
	}
}
