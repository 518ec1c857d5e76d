package a2a

import (
	"encoding/json"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck/internal/a2a03"
)

// A sendParams03 has the parameters of message/send and message/stream.
type sendParams03 struct {
	Message *a2a03.Message `json:"message"`
	Config  *struct {
		Blocking *bool             `json:"blocking"`
		History  *int              `json:"historyLength"`
		Push     *a2a03.PushConfig `json:"pushNotificationConfig"`
	} `json:"configuration"`
	Metadata map[string]any `json:"metadata"`
}

// request returns the parameters in the form of version 1.0.
func (p *sendParams03) request() (*sdk.SendMessageRequest, error) {
	out := &sdk.SendMessageRequest{Metadata: p.Metadata}
	if c := p.Config; c != nil {
		out.Config = &sdk.SendMessageConfig{HistoryLength: c.History, ReturnImmediately: c.Blocking != nil && !*c.Blocking}
		if c.Push != nil {
			out.Config.PushConfig = c.Push.ToV1()
		}
	}
	m := p.Message
	if m == nil {
		return out, nil // checkMessage reports it
	}
	var err error
	if out.Message, err = m.ToV1(); err != nil {
		err = invalidParams.of(err)
	}
	return out, err
}

// encode returns a task, a message or an update as it goes into an answer.
func (v version) encode(e sdk.Event, final bool) json.RawMessage {
	if v == v03 {
		return encodeJSON(a2a03.Of(e, final))
	}
	return encodeJSON(sdk.StreamResponse{Event: e})
}

// encodeTask returns a task that is the whole answer.
func (v version) encodeTask(t *sdk.Task) json.RawMessage {
	if v == v03 {
		return encodeJSON(a2a03.Of(t, true))
	}
	return encodeJSON(t)
}
