package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Export returns a session as a file, which comes while it is made: an error of
// reading it means that it is not whole. The caller closes it.
func (c *Client) Export(ctx context.Context, in api.ExportRequest) (io.ReadCloser, error) {
	resp, err := c.postExport(ctx, in, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// PreviewExport returns what an export would leave out by its redaction.
func (c *Client) PreviewExport(ctx context.Context, in api.ExportRequest) (api.RedactionPreview, error) {
	var out api.RedactionPreview
	resp, err := c.postExport(ctx, in, url.Values{"preview": {"1"}})
	if err == nil {
		err = decode(resp, &out)
	}
	return out, err
}

func (c *Client) postExport(ctx context.Context, in api.ExportRequest, q url.Values) (*http.Response, error) {
	m := map[string]any{"format": in.Format, "redact": in.Redact}
	if in.At >= 0 {
		m["at"] = in.At
	}
	if in.Effective {
		m["view"] = "effective"
	}
	if in.Terminal != "" {
		m["terminal"] = in.Terminal
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the request cannot be encoded: %w", err)
	}
	return c.send(ctx, http.MethodPost, sessionPath(in.Session, "export"),
		&request{query: q, body: bytes.NewReader(body), contentType: "application/json"}, nil)
}

// Diff returns what two sessions have in common and what not, as the server says
// it; atA and atB are the offsets before which to stop, negative for the head.
func (c *Client) Diff(ctx context.Context, a, b string, atA, atB int64) (json.RawMessage, error) {
	q := url.Values{"a": {a}, "b": {b}}
	for name, at := range map[string]int64{"at_a": atA, "at_b": atB} {
		if at >= 0 {
			q.Set(name, strconv.FormatInt(at, 10))
		}
	}
	var out json.RawMessage
	err := c.call(ctx, http.MethodGet, "/api/v1/diff", q, nil, &out)
	return out, err
}
