package engine

import (
	"context"
	"io"

	"github.com/tapedeck/tapedeck"
)

// Import makes sessions of recorded conversations.
func (e *Engine) Import(context.Context, tapedeck.ImportRequest, io.Reader) (tapedeck.Imported, error) {
	return tapedeck.Imported{}, tapedeck.Errorf(tapedeck.Unsupported, "import is not there yet")
}
