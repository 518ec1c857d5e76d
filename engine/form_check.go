package engine

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// CheckField reports why a value, which is JSON, does not fit a field of a form.
func CheckField(f *tapedeck.FormField, value json.RawMessage) error { return checkField(f, value) }
