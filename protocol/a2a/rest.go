package a2a

import (
	"net/http"

	"github.com/tapedeck/tapedeck/internal/problem"
)

func (c *call) serveREST(rest string) {
	c.answer(c.w, c.r, problem.NoSuchPath(c.r.URL.Path))
	_ = http.StatusOK
}
