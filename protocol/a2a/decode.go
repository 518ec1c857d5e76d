package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A version is a version of the protocol.
type version string

const (
	v03 version = "0.3"
	v10 version = "1.0"
)

// parseVersion reads which version a client speaks. By the specification of 1.0, a
// client that does not say so speaks 0.3.
func parseVersion(r *http.Request) (version, error) {
	v := r.Header.Get("A2A-Version")
	if v == "" {
		v = r.URL.Query().Get("A2A-Version")
	}
	switch v {
	case "", "0.3":
		return v03, nil
	case "1.0":
		return v10, nil
	}
	return v10, versionNotSupported.of(tapedeck.Errorf(tapedeck.Invalid, "version %.40q of A2A is not supported", v).
		WithHint("send A2A-Version: 1.0 or 0.3"))
}

// readBody returns the body of a request: JSON in UTF-8, with the media type of JSON or
// that of the protocol.
func (c *call) readBody() ([]byte, error) {
	switch t, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type")); t {
	case "application/json", "application/a2a+json":
	default:
		return nil, notJSON.of(tapedeck.Errorf(tapedeck.Unsupported, "the Content-Type is not application/json"))
	}
	if c.r.ContentLength > c.MaxBody {
		return nil, &http.MaxBytesError{Limit: c.MaxBody}
	}
	body, err := intake.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.MaxBody), c.r.ContentLength)
	var tooLong *http.MaxBytesError
	switch refused, _ := intake.Refused(err); {
	case refused != nil, errors.As(err, &tooLong):
		return nil, err
	case err != nil:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body could not be read to its end").Because(err)
	case !utf8.Valid(body): // encoding/json would replace it with U+FFFD
		return nil, parseError.of(tapedeck.Errorf(tapedeck.Invalid, "the body is not valid UTF-8"))
	case jsonobj.Nesting(body) > jsonobj.MaxNesting: // encoding/json calls a body that is nested much deeper no JSON
		return nil, invalidRequest.of(tapedeck.Errorf(tapedeck.Invalid, "the body is nested more than %d levels deep", jsonobj.MaxNesting))
	case !json.Valid(body):
		return nil, parseError.of(tapedeck.Errorf(tapedeck.Invalid, "the body is not JSON"))
	}
	return body, nil
}

// decodeParams decodes a JSON object. The names of its members may also be in snake
// case, as ProtoJSON has it. Unknown members are ignored: later versions add some.
func decodeParams(raw json.RawMessage, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if bytes.IndexByte(raw, '_') >= 0 {
		raw = camelCase(raw)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the parameters do not have the form of this method: %s", plain(err)))
	}
	return nil
}

// plain returns the part of an error of encoding/json that helps a client.
func plain(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) && t.Field != "" {
		return "the member " + t.Field + " cannot be a " + t.Value
	}
	if t != nil {
		return "they cannot be a " + t.Value
	}
	s := strings.TrimPrefix(err.Error(), "json: ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// camelCase returns a JSON object with its names in camel case, also those of the
// objects in it. The values of metadata and data belong to the client and stay.
func camelCase(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw // the caller reports it
	}
	return encodeJSON(camelNames(v))
}

func camelNames(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = camelNames(v[i])
		}
	case map[string]any:
		for name, value := range v {
			if name == "metadata" || name == "data" {
				continue
			}
			delete(v, name)
			v[camelName(name)] = camelNames(value)
		}
	}
	return v
}

func camelName(s string) string {
	first, rest, found := strings.Cut(s, "_")
	if !found || first == "" {
		return s
	}
	var b strings.Builder
	b.WriteString(first)
	for word := range strings.SplitSeq(rest, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// decodeSend decodes the parameters of a message.
func (c *call) decodeSend(raw json.RawMessage) (*sdk.SendMessageRequest, error) {
	if c.version == v03 {
		var p sendParams03
		if err := decodeParams(raw, &p); err != nil {
			return nil, err
		}
		return p.request()
	}
	in := new(sdk.SendMessageRequest)
	if err := decodeParams(raw, in); err != nil {
		return nil, err
	}
	return in, nil
}

// maxName is the largest number of bytes in a text that names something.
const maxName = 512

// checkMessage refuses a message that cannot be sent to an agent.
func checkMessage(in *sdk.SendMessageRequest) error {
	m := in.Message
	bad := func(format string, args ...any) error {
		return invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, format, args...))
	}
	if m == nil {
		return bad("the parameters have no message")
	}
	_, rewinds := rewindOf(m.Metadata) // such a message says nothing, and nobody sends it again
	_, misplaced := rewindOf(in.Metadata)
	switch {
	case misplaced:
		return bad("%s is in the metadata of the request; a rewind has it in the metadata of the message", keyRewind)
	case in.Config != nil && in.Config.HistoryLength != nil && *in.Config.HistoryLength < 0:
		return bad("historyLength is %d; it must be 0 or more", *in.Config.HistoryLength)
	case m.ID == "" && !rewinds:
		return bad("the message has no messageId")
	case len(m.ID) > maxName:
		return bad("the messageId has %d bytes; at most %d are allowed", len(m.ID), maxName)
	case len(m.Parts) == 0 && !rewinds:
		return bad("the message has no parts")
	case m.Role != sdk.MessageRoleUser:
		return bad("the message must have the role of the user, not %.40q", m.Role)
	}
	for _, p := range m.Parts {
		if p == nil || p.Content == nil {
			return bad("a part of the message is empty")
		}
	}
	if m.ContextID != "" {
		return tapedeck.CheckID("the contextId", m.ContextID)
	}
	return nil
}

// textOf returns the words of a message for an agent: its texts, and its data as JSON.
func textOf(m *sdk.Message) (string, error) {
	var texts []string
	for _, p := range m.Parts {
		switch v := p.Content.(type) {
		case sdk.Text:
			texts = append(texts, string(v))
		case sdk.Data:
			texts = append(texts, string(encodeJSON(v.Value)))
		case sdk.Raw:
			if !strings.HasPrefix(p.MediaType, "text/") || !utf8.Valid(v) {
				return "", contentNotSupported.of(tapedeck.Errorf(tapedeck.Unsupported, "a file of the type %.80q cannot be given to this agent", p.MediaType).
					WithHint("send text, data, or files of a type that begins with text/"))
			}
			texts = append(texts, string(v))
		default:
			return "", contentNotSupported.of(tapedeck.Errorf(tapedeck.Unsupported, "the agent does not load files by their URL").
				WithHint("send the text of the file"))
		}
	}
	return strings.Join(texts, "\n"), nil
}
