package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
)

func TestExchange(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.String()+" "+string(body))
		switch {
		case r.URL.Query().Has("preview"):
			_, _ = io.WriteString(w, `{"events":3,"rules":[{"rule":"key a","count":4}]}`)
		case len(asked) == 1:
			_, _ = io.WriteString(w, "the file")
		case len(asked) == 2: // the connection breaks off
			_, _ = io.WriteString(w, "the fi")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, `{"same":true}`)
		}
	}))
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"the file", ""} {
		in := api.ExportRequest{Session: "s", Format: "csv"}
		if i == 0 {
			in.At, in.View, in.Terminal = new(int64(5)), api.ExportEffective, "t"
		}
		f, err := c.Export(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if (err == nil) != (want != "") || want != "" && string(got) != want {
			t.Errorf("%d: %q %v", i, got, err)
		}
		_ = f.Close()
	}
	p, err := c.PreviewExport(t.Context(), api.ExportRequest{Session: "s", Format: "json", Redact: api.Redaction{Keys: []string{"a"}}})
	if err != nil || p.Events != 3 || p.Rules[0].Count != 4 {
		t.Errorf("%+v %v", p, err)
	}
	would, err := c.PreviewImport(t.Context(), api.ImportRequest{Format: "auto", Title: "T"}, strings.NewReader("x"))
	if err != nil || would.Events != 3 {
		t.Errorf("%+v %v", would, err)
	}
	d, err := c.Diff(t.Context(), "a", "b", -1, 7)
	if err != nil || !d.Same {
		t.Errorf("%+v %v", d, err)
	}
	want := []string{
		`POST /api/v1/sessions/s/export {"format":"csv","at":5,"view":"effective","terminal":"t"}`,
		`POST /api/v1/sessions/s/export {"format":"csv"}`,
		`POST /api/v1/sessions/s/export?preview=1 {"format":"json","redact":{"keys":["a"]}}`,
		`POST /api/v1/import?format=auto&preview=1&title=T x`,
		`GET /api/v1/diff?a=a&at_b=7&b=b `,
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Error(d)
	}
}
