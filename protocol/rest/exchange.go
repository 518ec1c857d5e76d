package rest

import (
	"io"
	"mime"
	"net/http"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/problem"
)

var (
	importParameters = []string{"format", "title", "owner", "actor", "preview"}
	exportParameters = []string{"preview"}
)

// importSessions creates sessions from recorded ones. It passes the body on as it
// arrives; the format says what it is.
func (h *handler) importSessions(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, importParameters...)
	in := api.ImportRequest{Format: q.String("format"), Title: q.String("title"), Owner: q.String("owner"), Actor: q.String("actor")}
	if !q.Values.Has("format") {
		in.Format = "auto"
	}
	preview := wantsPreview(q)
	if q.Err != nil {
		return q.Err
	}
	switch mediaType(r) {
	case "", "application/x-www-form-urlencoded", "multipart/form-data": // the default of curl and of browsers
		return unsupported(r, "application/octet-stream, application/json or application/x-ndjson")
	}
	if mediaType(r) != "application/json" || r.ContentLength > h.MaxAppend { // otherwise it is one document, which is in memory until its end
		intake.ByLine(r)
	}
	body := http.MaxBytesReader(w, r.Body, h.MaxImport)
	status, out := http.StatusCreated, any(nil)
	var err error
	if preview {
		status = http.StatusOK
		out, err = h.Verbs.PreviewImport(r.Context(), in, body)
	} else {
		out, err = h.Verbs.Import(r.Context(), in, body)
	}
	if err != nil {
		if given := intake.GivenUp(r); given != nil {
			return given
		}
		drain(r, body)
		return err
	}
	return httpapi.WriteJSON(w, status, out)
}

// drain reads the rest of a body of known length: a browser that still sends a file does
// not read the error, and would report that the server has disconnected.
func drain(r *http.Request, body io.Reader) {
	if r.ContentLength > 0 {
		_, _ = io.Copy(io.Discard, body) // there is an error to answer with already
	}
}

// wantsPreview reads the parameter preview.
func wantsPreview(q *httpapi.Query) bool {
	v := q.OneOf("preview", "false", "1", "true", "0", "false")
	return v == "1" || v == "true"
}

// export answers with a session as a file, or with a preview of what a redaction leaves
// out.
func (h *handler) export(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, exportParameters...)
	preview := wantsPreview(q)
	if q.Err != nil {
		return q.Err
	}
	in, err := h.exportRequest(w, r)
	if err != nil {
		return err
	}
	if preview {
		out, err := h.Verbs.PreviewExport(r.Context(), in)
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, out)
	}
	x, err := h.Verbs.Export(r.Context(), in)
	if err != nil {
		return err
	}
	return h.sendFile(w, r, &x)
}

// exportRequest reads the request for an export.
func (h *handler) exportRequest(w http.ResponseWriter, r *http.Request) (api.ExportRequest, error) {
	id, err := httpapi.SessionID(r)
	if err != nil {
		return api.ExportRequest{}, err
	}
	in, err := decode[api.ExportRequest](h, w, r)
	in.Session = id
	return in, err
}

// sendFile sends an export while it is built. An error before the first byte is the
// answer. After it the connection is closed, so that the client knows that the file is
// incomplete.
func (h *handler) sendFile(w http.ResponseWriter, r *http.Request, x *api.Export) error {
	f := &file{ResponseWriter: w, export: x}
	err := x.Write(f)
	if err != nil && f.begun {
		if r.Context().Err() == nil {
			problem.Log(r, err, h.Logger)
		}
		panic(http.ErrAbortHandler)
	}
	if err == nil && !f.begun {
		f.begin()
	}
	return err
}

// A file is the body of an answer. It sends its headers before the first byte.
type file struct {
	http.ResponseWriter
	export *api.Export
	begun  bool
}

// begin sends the headers.
func (f *file) begin() {
	f.begun = true
	header := f.Header()
	header.Set("Content-Type", f.export.MediaType)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.export.Name}))
	// A file has the output of agents, and an HTML file has a script. If a browser shows
	// it in spite of the disposition, it has no origin.
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	f.WriteHeader(http.StatusOK)
}

// Write implements [io.Writer].
func (f *file) Write(b []byte) (int, error) {
	if !f.begun {
		f.begin()
	}
	return f.ResponseWriter.Write(b)
}
