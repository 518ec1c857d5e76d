// Package apischema generates the machine-readable description of the HTTP API:
// docs/openapi.json (OpenAPI 3.1, whose schemas are JSON Schemas 2020-12) and the
// TypeScript types of the client. It reads the table of routes of protocol/rest, the
// structs that the routes decode and encode, the event catalogue, and the comments of
// all these in the source. docs/http.md describes the parameters.
//
// The output is deterministic. A test fails if a committed file differs from it;
// make generated writes the files.
package apischema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The generated files, below the root of the repository.
const (
	OpenAPIFile    = "docs/openapi.json"
	TypeScriptFile = "packages/client/src/wire.ts"
)

// Generate returns the content of each generated file. root is the folder of the
// repository.
func Generate(root string) (map[string][]byte, error) {
	d, err := describe(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(d.document()); err != nil {
		return nil, err
	}
	return map[string][]byte{OpenAPIFile: b.Bytes(), TypeScriptFile: d.typeScript()}, nil
}

// Write writes the generated files.
func Write(root string) error {
	files, err := Generate(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error if a committed file differs from what is generated now.
func Check(root string) error {
	files, err := Generate(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		have, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if !bytes.Equal(have, content) {
			return fmt.Errorf("%s is out of date; run: make generated", name)
		}
	}
	return nil
}
