package aisdk

import (
	"github.com/tapedeck/tapedeck"
	"net/http"
)

func (h *handler) addMessages(w http.ResponseWriter, r *http.Request) error {
	return tapedeck.Errorf(tapedeck.Invalid, "x")
}
func (h *handler) ingest(w http.ResponseWriter, r *http.Request) error {
	return tapedeck.Errorf(tapedeck.Invalid, "x")
}
