package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
)

// setRefusal sets the headers that a program needs to continue after a refused
// append. Their names are those of Durable Streams.
func setRefusal(h http.Header, err error) {
	var a *tapedeck.AppendError
	if !errors.As(err, &a) {
		return
	}
	switch a.Refusal {
	case tapedeck.RefusedEpoch:
		h.Set("Producer-Epoch", strconv.FormatInt(a.Epoch, 10))
	case tapedeck.RefusedGap:
		h.Set("Producer-Expected-Seq", strconv.FormatInt(a.Seq, 10))
	case tapedeck.RefusedOffset:
		h.Set("ETag", etagOf(a.Head))
	default: // the sentence of the error is enough
	}
}

// etagOf returns the ETag that If-Match accepts.
func etagOf(head int64) string { return fmt.Sprintf("%q", strconv.FormatInt(head, 10)) }
