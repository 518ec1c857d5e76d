package aisdk_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/tapedeck/tapedeck/internal/decktest"
)

// In requests and responses RUN1 is the id of the first run, RUN2 that of the second.
func TestConversations(t *testing.T) {
	names := func() decktest.Names { return new(runNames) }
	decktest.Conversations(t, names, "Content-Type", "X-Vercel-Ai-Ui-Message-Stream")
}

// A runNames names the runs of a conversation by their order: their ids are random.
type runNames []string

var runID = regexp.MustCompile(`inv_[0-9A-Z]{26}`)

// Hide implements [decktest.Names].
func (n *runNames) Hide(text []byte) []byte {
	return runID.ReplaceAllFunc(text, func(id []byte) []byte {
		i := slices.Index(*n, string(id))
		if i < 0 {
			i = len(*n)
			*n = append(*n, string(id))
		}
		return fmt.Appendf(nil, "RUN%d", i+1)
	})
}

// Show implements [decktest.Names].
func (n *runNames) Show(text []byte) []byte {
	for i, id := range *n {
		text = bytes.ReplaceAll(text, fmt.Appendf(nil, "RUN%d", i+1), []byte(id))
	}
	return text
}
