package views

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// text shows the text of agents, with an end of line after each message.
type text struct{}

// Size implements [Fold].
func (text) Size() int { return 0 }

// Apply implements [Fold].
func (text) Apply(_ context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	switch e.Type {
	case tapedeck.TextMessageContent:
		var d struct {
			Delta string `json:"delta"`
		}
		if json.Unmarshal(e.Data, &d) == nil && d.Delta != "" {
			out = append(out, []byte(d.Delta))
		}
	case tapedeck.TextMessageEnd:
		out = append(out, []byte{'\n'})
	}
	return out, nil
}
