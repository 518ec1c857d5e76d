package a2a_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/protocol/a2a"
)

// TestDocument sends the requests of the protocol's page in order, and expects the
// documented statuses and no errors of JSON-RPC.
func TestDocument(t *testing.T) {
	examples := apitest.Examples(t, "../../docs/protocol/a2a.md", 6)
	inBubble(t, a2a.Options{}, func(w *world) {
		ids := alias{map[string]string{}, map[string]string{}}
		for _, x := range examples {
			got := string(ids.hide(apitest.Ask(w.T, w, ids.show(x.Request))))
			want := x.Status
			if !strings.HasPrefix(got, strconv.Itoa(want)+" ") || want == 200 && strings.Contains(got, `"error":{`) || strings.Contains(got, `"state":"failed"`) {
				w.Errorf("%s: got %s, want %d", x.Request, got, want)
			}
			time.Sleep(time.Second) // in the bubble: until the agent rests
		}
	})
}

// TestDocumentHasEveryError checks that the page has every code that is answered.
func TestDocumentHasEveryError(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol/a2a.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`fault\{(-\d+), "([A-Z_]+)"`).FindAllSubmatch(source, -1)
	if len(codes) < 10 {
		t.Fatalf("found only %d codes", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(string(page), string(c[1])) {
			t.Errorf("the page does not have %s %s", c[1], c[2])
		}
	}
}
