package server

import (
	"html/template"
	"net/http"
)

// front answers with a page that says that the server runs and lists the endpoints.
func (o *Options) front(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	_ = frontPage.Execute(w, o.Version) // fails only if the client has disconnected
}

var frontPage = template.Must(template.New("front").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tapedeck</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem }
  code { font-size: .9em } dt { margin-top: .8rem } h1 { font-size: 1.5rem }
</style>
<h1>Tapedeck {{.}}</h1>
<p>The server is running. Sessions are read and written over these paths:</p>
<dl>
  <dt><a href="/api/v1/sessions"><code>/api/v1/sessions</code></a>
  <dd>the sessions, newest first, as JSON
  <dt><code>/api/v1/sessions/<em>id</em>/stream</code>
  <dd>the events of one as Server-Sent Events, live
  <dt><code>/api/v1/sessions/<em>id</em>/snapshot</code>
  <dd>its conversation as of now
  <dt><a href="/v1/stream"><code>/v1/stream/…</code></a>
  <dd>Durable Streams
  <dt><code>/mcp</code>
  <dd>the Model Context Protocol: sessions for other agents
  <dt><code>/agui/<em>agent</em></code>, <a href="/copilotkit/info"><code>/copilotkit</code></a>
  <dd>AG-UI, and the runtime of a CopilotKit front end
  <dt><code>/aisdk/<em>agent</em></code>
  <dd>the UI message stream of the AI SDK, for useChat
  <dt><a href="/api/v1/agents"><code>/api/v1/agents</code></a>
  <dd>the agents that tasks can go to
</dl>
`))

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}
