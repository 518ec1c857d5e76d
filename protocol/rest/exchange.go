package rest

import (
	"io"
	"mime"
	"net/http"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/intake"
)

var (
	importParameters = []string{"format", "title", "owner", "actor", "preview"}
	exportParameters = []string{"preview"}
)

// importSessions makes sessions of recorded ones. The body is passed on as it
// comes; what it is, the format says.
func (h *handler) importSessions(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r, importParameters...)
	in := api.ImportRequest{Format: q.string("format"), Title: q.string("title"), Owner: q.string("owner"), Actor: q.string("actor")}
	if !q.values.Has("format") {
		in.Format = "auto"
	}
	preview := isYes(q)
	if q.err != nil {
		return q.err
	}
	switch mediaType(r) {
	case "", "application/x-www-form-urlencoded", "multipart/form-data": // what curl sends unless told
		return unsupported(r, "application/octet-stream, application/json or application/x-ndjson")
	}
	if mediaType(r) != "application/json" || r.ContentLength > h.MaxAppend { // else it is one document, and held until its end
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
	return writeJSON(w, status, out)
}

// drain reads what is left of a body whose end is known: a browser that still
// sends a file does not hear what is wrong with it, and would say that the server
// has gone.
func drain(r *http.Request, body io.Reader) {
	if r.ContentLength > 0 {
		_, _ = io.Copy(io.Discard, body) // it may go away, or be too much: there is an error to tell already
	}
}

// isYes reads the parameter preview.
func isYes(q *query) bool {
	v := q.one("preview", "false", "1", "true", "0", "false")
	return v == "1" || v == "true"
}

// export answers with a session as a file or, if a preview is asked for, with
// what would be left out of it.
func (h *handler) export(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r, exportParameters...)
	preview := isYes(q)
	if q.err != nil {
		return q.err
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
		return writeJSON(w, http.StatusOK, out)
	}
	x, err := h.Verbs.Export(r.Context(), in)
	if err != nil {
		return err
	}
	return h.sendFile(w, r, &x)
}

func (h *handler) exportRequest(w http.ResponseWriter, r *http.Request) (api.ExportRequest, error) {
	id, err := sessionID(r)
	if err != nil {
		return api.ExportRequest{}, err
	}
	in, err := decode[api.ExportRequest](h, w, r)
	in.Session = id
	return in, err
}

// sendFile sends an export as it is made. What fails before the first byte is an
// answer like any other; after it the connection is cut, so that the client knows
// that the file is not whole.
func (h *handler) sendFile(w http.ResponseWriter, r *http.Request, x *api.Export) error {
	f := &file{ResponseWriter: w, export: x}
	err := x.Write(f)
	if err != nil && f.begun {
		if r.Context().Err() == nil {
			_ = h.internal(r, err)
		}
		panic(http.ErrAbortHandler)
	}
	if err == nil && !f.begun {
		f.begin()
	}
	return err
}

// A file is the body of an answer, with its headers before the first byte.
type file struct {
	http.ResponseWriter
	export *api.Export
	begun  bool
}

func (f *file) begin() {
	f.begun = true
	header := f.Header()
	header.Set("Content-Type", f.export.MediaType)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.export.Name}))
	// A file has what an agent has said, and an HTML one a script: should a browser
	// show it all the same, it does not have our origin.
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	f.WriteHeader(http.StatusOK)
}

func (f *file) Write(b []byte) (int, error) {
	if !f.begun {
		f.begin()
	}
	return f.ResponseWriter.Write(b)
}
