package gate

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"net/http"
)

//go:embed login.html
var page []byte

// pagePolicy lets the page run its own script, and nothing else.
var pagePolicy = func() string {
	_, rest, _ := bytes.Cut(page, []byte("<script>"))
	script, _, _ := bytes.Cut(rest, []byte("</script>"))
	sum := sha256.Sum256(script)
	return "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// servePage answers with the page for people.
func servePage(w http.ResponseWriter, p Provider) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	out := page
	if p != nil {
		host := template.HTMLEscapeString(p.Host())
		out = bytes.Replace(page, []byte(`<p id="sso" hidden>`), []byte(`<p id="sso">`), 1)
		out = bytes.Replace(out, []byte("your identity provider"), []byte(host), 1)
	}
	_, _ = w.Write(out) // fails only if the client has disconnected
}
