package agui_test

import (
	"testing"

	"github.com/tapedeck/tapedeck/internal/decktest"
)

func TestConversations(t *testing.T) {
	decktest.Conversations(t, nil, "Content-Type", "Cache-Control", "Allow")
}
