package subscription

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxBody is the largest body of a request, in bytes.
const maxBody = 1 << 20

// decode reads a JSON object. An empty body counts as an object without members.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return failed(codeTooLarge, "the body has more than %d bytes", maxBody)
	case err != nil:
		return err
	case len(b) == 0:
		return nil
	case json.Unmarshal(b, into) != nil:
		return invalid("the body is not a JSON object with the members of this request")
	}
	return nil
}

// A request is the body of a PUT.
type request struct {
	Type        string   `json:"type"`
	Pattern     string   `json:"pattern"`
	Streams     []string `json:"streams"`
	Filter      string   `json:"filter"`
	WakeStream  string   `json:"wake_stream"`
	Lease       *int64   `json:"lease_ttl_ms"`
	Description string   `json:"description"`
	Webhook     struct {
		URL string `json:"url"`
	} `json:"webhook"`
}

func (r *request) config() config {
	c := config{
		Type: r.Type, Pattern: trim(r.Pattern), Streams: trimAll(r.Streams), Filter: r.Filter,
		URL: r.Webhook.URL, WakeStream: trim(r.WakeStream), Lease: defaultLease, Description: r.Description,
	}
	if r.Lease != nil {
		c.Lease = time.Duration(min(max(*r.Lease, 0), maxLease.Milliseconds()+1)) * time.Millisecond
	}
	return c
}

// trim removes the slashes around a path, which the protocol ignores.
func trim(path string) string { return strings.Trim(path, "/") }

// trimAll returns the paths sorted, each once.
func trimAll(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = trim(p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bearer returns the token of a request.
func bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	if len(values) == 1 {
		if scheme, token, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			return token, nil
		}
	}
	return "", failed(codeToken, "the request has no token").hint("send Authorization: Bearer with the token of the wake")
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}
