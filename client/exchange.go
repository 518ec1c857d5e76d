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
	"github.com/tapedeck/tapedeck/view"
)

// Export returns a session as a file, which the server sends while it builds it: an
// error of reading it means that the file is not complete. The caller closes it.
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
	body, err := json.Marshal(in)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the request cannot be encoded: %w", err)
	}
	return c.send(ctx, http.MethodPost, sessionPath(in.Session, "export"),
		&request{query: q, body: bytes.NewReader(body), contentType: "application/json"}, nil)
}

// Diff returns what two sessions have in common, and the turns that differ. atA and
// atB are the offsets before which to stop, negative for the head.
func (c *Client) Diff(ctx context.Context, a, b string, atA, atB int64) (view.Diff, error) {
	q := url.Values{"a": {a}, "b": {b}}
	for name, at := range map[string]int64{"at_a": atA, "at_b": atB} {
		if at >= 0 {
			q.Set(name, strconv.FormatInt(at, 10))
		}
	}
	return get[view.Diff](ctx, c, "/api/v1/diff", q)
}
