package llm

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tapedeck/tapedeck/runner/llm/tool"
)

// mismatch returns why arguments do not match the schema of a tool; "" if they do. So nobody
// is asked about a call that would fail. The schema of a server may be one that cannot be
// read here; then the server checks alone.
func mismatch(t *tool.Tool, arguments string) string {
	var s jsonschema.Schema
	if json.Unmarshal(t.Parameters, &s) != nil {
		return ""
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		return ""
	}
	var given map[string]any
	if err := json.Unmarshal([]byte(arguments), &given); err != nil {
		return err.Error()
	}
	for name, v := range given { // models write null for what they leave out
		if v == nil && !slices.Contains(s.Required, name) {
			delete(given, name)
		}
	}
	if err := schema.Validate(given); err != nil {
		return strings.TrimPrefix(err.Error(), "validating root: ")
	}
	return ""
}
