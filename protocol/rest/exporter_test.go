package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/protocol/rest"
)

// An export of this engine is the request. The format broken fails at once, the format
// cut after some bytes.

func (g *engine) Export(ctx context.Context, in api.ExportRequest) (api.Export, error) {
	if err := in.Check(); err != nil {
		return api.Export{}, err
	}
	if _, err := g.Head(ctx, in.Session); err != nil {
		return api.Export{}, err
	}
	if in.Format == "" {
		return api.Export{}, tapedeck.Errorf(tapedeck.Invalid, "there is no export format %q", in.Format)
	}
	return api.Export{Name: in.Session + ".txt", MediaType: "text/plain; charset=utf-8", Write: func(w io.Writer) error {
		if in.Format == "broken" {
			return tapedeck.Errorf(tapedeck.Unavailable, "the store is broken")
		}
		if in.Format == "empty" {
			return nil
		}
		at := int64(-1)
		if in.At != nil {
			at = *in.At
		}
		_, err := fmt.Fprintf(w, "{Session:%s Format:%s At:%d Effective:%t Terminal:%s Redact:%+v}\n",
			in.Session, in.Format, at, in.View == api.ExportEffective, in.Terminal, in.Redact)
		if in.Format == "cut" {
			err = errors.New("the disk has failed")
		}
		return err
	}}, nil
}

func (g *engine) PreviewExport(_ context.Context, in api.ExportRequest) (api.RedactionPreview, error) {
	var rules []api.RedactionRule
	for _, k := range in.Redact.Keys {
		rules = append(rules, api.RedactionRule{Rule: "key " + k, Count: 1})
	}
	return api.RedactionPreview{Events: 1, Rules: rules}, nil
}

// TestExportCutOff: an incomplete file does not look complete.
func TestExportCutOff(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 1)
	server := httptest.NewServer(handler)
	defer server.Close()
	resp, err := http.Post(server.URL+"/api/v1/sessions/s/export", "application/json", strings.NewReader(`{"format":"cut"}`))
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil {
		t.Error("it looks complete")
	}
}

func TestExportIsAnAttachment(t *testing.T) {
	handler, g := newHandler(rest.Options{})
	g.session(t, "s", 1)
	for _, format := range []string{"text", "empty"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/api/v1/sessions/s/export", strings.NewReader(`{"format":"`+format+`"}`))
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Disposition"); got != "attachment; filename=s.txt" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", format, w.Header())
		}
	}
}
