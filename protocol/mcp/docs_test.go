package mcp

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The limits in the documentation are those of the code.
func TestDocsTellTheLimits(t *testing.T) {
	b, err := os.ReadFile("../../docs/protocol/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("about %d KiB of content", pageBytes>>10),
		fmt.Sprintf("%d,000 bytes, or `text_limit` up to %d,000", defaultText/1000, maxText/1000),
		fmt.Sprintf("%d,000 bytes, or `data_limit` up to %d,000", defaultData/1000, maxText/1000),
		fmt.Sprintf("| sessions in a page | %d, or `limit` up to %d |", defaultSessions, maxSessions),
		fmt.Sprintf("| messages in a page | %d, or `limit` up to %d |", defaultMessages, maxMessages),
		fmt.Sprintf("| events in a page | %d, or `limit` up to %d |", defaultEvents, maxEvents),
		fmt.Sprintf("| tools, models and files in a summary | %d each", maxNames),
		fmt.Sprintf("| a request | %d MiB |", maxBody>>20),
		fmt.Sprintf("| %d,%03d. One without a request for %d minutes", maxPeers/1000, maxPeers%1000, int(idleTimeout.Minutes())),
		fmt.Sprintf("| subscriptions of such a client | %d sessions |", maxSubscriptions),
		fmt.Sprintf("All changes of %d ms", gather.Milliseconds()),
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("docs/protocol/mcp.md does not say %q", want)
		}
	}
}
