package rest

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"

	"github.com/tapedeck/tapedeck/docs"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// openAPITag is the ETag of the description.
var openAPITag = sync.OnceValue(func() string {
	h := fnv.New64a()
	_, _ = h.Write(docs.OpenAPI) // never fails
	return fmt.Sprintf(`"%x"`, h.Sum64())
})

// openAPI answers with the description of the API.
func (h *handler) openAPI(w http.ResponseWriter, r *http.Request) error {
	if q := httpapi.ParseQuery(r); q.Err != nil {
		return q.Err
	}
	w.Header().Set("Cache-Control", "no-cache") // ask again each time, and get 304
	w.Header().Set("ETag", openAPITag())
	if matches(r.Header.Get("If-None-Match"), openAPITag()) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	httpapi.WriteBytes(w, http.StatusOK, docs.OpenAPI)
	return nil
}
