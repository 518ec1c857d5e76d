package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// An overtaken engine appends another event before each append.
type overtaken struct {
	*engine
	before func(a tapedeck.Append) tapedeck.Append
}

func (o *overtaken) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if _, err := o.engine.Append(ctx, o.before(a)); err != nil {
		return tapedeck.Appended{}, err
	}
	return o.engine.Append(ctx, a)
}

// TestConditionsAreForTheStore: a condition, such as the expected head, can hold when the
// request arrives and not when it is written. So the handler must not check it.
func TestConditionsAreForTheStore(t *testing.T) {
	for _, c := range []struct {
		header map[string]string
		before func(a tapedeck.Append) tapedeck.Append
		want   string
	}{
		{map[string]string{"If-Match": `"2"`}, func(tapedeck.Append) tapedeck.Append {
			return tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "acme.other"}}}
		}, `409 {"error":{"kind":"conflict","message":"session s is at offset 3, you expected 2"`},
		{map[string]string{"Producer-Id": "p", "Producer-Epoch": "0", "Producer-Seq": "0"}, func(a tapedeck.Append) tapedeck.Append {
			a.Events = []tapedeck.Event{{Type: "acme.said"}}
			return a
		}, `200 {"first":2,"last":2,"head":3,"duplicate":true}`},
	} {
		_, g := newHandler(rest.Options{})
		g.session(t, "s", 1)
		handler := rest.New(rest.Options{Sessions: g.Hub, Verbs: &overtaken{g, c.before}})
		r := httptest.NewRequest(http.MethodPost, "/api/v1/sessions/s/events", strings.NewReader(`{"type":"acme.said"}`))
		r.Header.Set("Content-Type", asJSON)
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if got := fmt.Sprint(w.Code, " ", w.Body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %s", c.header, got)
		}
		if s, _ := g.Head(t.Context(), "s"); s.Head != 3 {
			t.Errorf("%v: the head is %d", c.header, s.Head)
		}
	}
}
