package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// An input is a RunAgentInput.
type input struct {
	payload.RunInput
	place  place
	agent  string
	resume []answer
}

// An answer is an entry of resume: the answer to an interrupt.
type answer struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved or cancelled
	Payload     json.RawMessage `json:"payload"`
}

// profile returns the form of the events for the client. A client before AG-UI 1.0
// sends no version.
func (in *input) profile() profile {
	if in.ProtocolVersion == "" {
		return legacy
	}
	return current
}

// readInput reads a RunAgentInput for the agent in the path.
func (h *handler) readInput(w http.ResponseWriter, r *http.Request) (*input, error) {
	body, err := h.readJSON(w, r)
	if err != nil {
		return nil, err
	}
	return h.parseInput(body, r.PathValue("agent"))
}

// maxNesting is how deep the values of an input may be nested. A deeper value could
// be stored, but no view could show it.
const maxNesting = 500

func (h *handler) parseInput(body []byte, agent string) (*input, error) {
	in := new(input)
	if jsonobj.Nesting(body) > maxNesting {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the input is nested more than %d levels deep", maxNesting)
	}
	if err := json.Unmarshal(body, &in.RunInput); err != nil {
		return nil, notInput(err)
	}
	if in.Resume != nil {
		if err := json.Unmarshal(in.Resume, &in.resume); err != nil {
			return nil, notInput(err)
		}
	}
	for _, raw := range []*json.RawMessage{&in.State, &in.Tools, &in.Context, &in.ForwardedProps, &in.Resume} {
		if jsonobj.IsNull(*raw) {
			*raw = nil
		}
	}
	var err error
	if in.agent, err = h.agent(agent); err != nil {
		return nil, err
	}
	if in.place, err = parseThread(in.ThreadID); err != nil {
		return nil, err
	}
	if in.RunID == "" {
		in.RunID = tapedeck.NewID("run_")
	}
	return in, tapedeck.CheckID("the runId", in.RunID)
}

func notInput(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the member %.100s of the input cannot be a JSON %.20s", wrong.Field, wrong.Value)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body is not a RunAgentInput of AG-UI").Because(err)
}

// readJSON returns the body, which must be a JSON object by its content type and its
// first byte.
func (h *handler) readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if t := mediaType(r); t != "application/json" {
		return nil, tapedeck.Errorf(tapedeck.Unsupported, "a body of type %.100q is not understood here", t).WithHint("send Content-Type: application/json")
	}
	if r.ContentLength > h.MaxBody {
		return nil, &http.MaxBytesError{Limit: h.MaxBody}
	}
	body, err := intake.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody), r.ContentLength)
	switch {
	case err != nil:
		return nil, readError(err)
	case !utf8.Valid(body):
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body is not valid UTF-8")
	case !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")):
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body is not a JSON object")
	}
	return body, nil
}

// mediaType returns the media type of the body, "" if it has none.
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// readError returns the error of a body that could not be read. The client caused it.
func readError(err error) error {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return err
	}
	if refused, _ := intake.Refused(err); refused != nil {
		return refused
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the body could not be read to its end").Because(err)
}
