package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// WriteJSON answers with v. If v cannot be encoded, it returns an error and sends
// nothing.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("%T cannot be encoded: %w", v, err)
	}
	WriteBytes(w, status, b.Bytes())
	return nil
}

// WriteBytes answers with JSON that is encoded already.
func WriteBytes(w http.ResponseWriter, status int, b []byte) {
	SetJSON(w.Header(), len(b))
	w.WriteHeader(status)
	_, _ = w.Write(b) // if the client has disconnected, nobody needs the answer
}

// SetJSON sets the headers of an answer of size bytes of JSON. Clients must not
// cache it, unless h has a Cache-Control already.
func SetJSON(h http.Header, size int) {
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(size))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
}

// OrEmpty returns list, or an empty list instead of nil, which is null in JSON.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
