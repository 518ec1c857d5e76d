package chat_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/llm/chat"
)

// TestKeysInErrors checks that a key is removed from a provider's error, and that a common word
// which is the key of a local server stays.
func TestKeysInErrors(t *testing.T) {
	for _, tt := range []struct{ key, said, want string }{
		{"k", "the key k is no key", "the key k is no key"},
		{"ollama", "ollama is busy", "ollama is busy"},
		{"sk-secret-1", `bad key "sk-secret-1", sk-secret-1!`, `bad key "…", …!`},
		{"localhost", "localhosts and my-localhost, localhost", "…s and my-…, …"},
		{"sk-secret-1", strings.Repeat("z", 495) + " sk-secret-1", strings.Repeat("z", 495) + " …"},
		{"sk-secret-1", "xsk-secret-1_sk%2Dsecret%2d1", "x…_…"},
	} {
		c := chat.Client{BaseURL: "http://model/v1", Key: tt.key, HTTP: &http.Client{Transport: answer(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(tt.said)), Header: http.Header{}}, nil
		})}}
		for _, err := range c.Stream(t.Context(), chat.Request{}) {
			if err == nil || err.Error() != "the model's provider answered 401: "+tt.want {
				t.Errorf("with the key %s: %v", tt.key, err)
			}
		}
	}
}

// TestURL: the path is added before the query, and what the URL has of secrets is in no error.
func TestURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://model/v1":               "/v1/chat/completions",
		"http://model/v1/":              "/v1/chat/completions",
		"http://model":                  "/chat/completions",
		"http://model/v1?key=s3cretkey": "/v1/chat/completions?key=s3cretkey",
		"http://model/v1/?a=b/":         "/v1/chat/completions?a=b/",
	} {
		c := chat.Client{BaseURL: base, HTTP: &http.Client{Transport: answer(func(r *http.Request) (*http.Response, error) {
			if got := r.URL.RequestURI(); got != want {
				t.Errorf("%s: asked for %s", base, got)
			}
			return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(r.URL.RawQuery)), Header: http.Header{}}, nil
		})}}
		for _, err := range c.Stream(t.Context(), chat.Request{}) {
			if err == nil || strings.Contains(err.Error(), "s3cretkey") {
				t.Errorf("%s: %v", base, err)
			}
		}
	}
}
