package problem

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestDamaged: a client learns which event is damaged, but not why the store says so.
func TestDamaged(t *testing.T) {
	err := tapedeck.Errorf(tapedeck.Internal, "the event at offset 3 is damaged").WithHint("verify").Because(tapedeck.ErrDamaged)
	e, status := Resolve(httptest.NewRequest(http.MethodGet, "/", nil), err, slog.New(slog.DiscardHandler))
	if status != http.StatusInternalServerError || e.Message != "the event at offset 3 is damaged" || e.Hint != "verify" {
		t.Errorf("got %d %v", status, e)
	}
}
