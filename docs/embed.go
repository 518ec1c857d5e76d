// Package docs has the generated description of the HTTP API, which the server
// serves. The other files of this folder are for people.
package docs

import _ "embed"

// OpenAPI is openapi.json: the description of the HTTP API as OpenAPI 3.1. Package
// internal/apischema generates it. It must not be changed.
//
//go:embed openapi.json
var OpenAPI []byte
