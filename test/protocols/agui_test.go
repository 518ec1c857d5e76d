package protocols

import (
	"bytes"
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// agui connects to the thread in AG-UI. The snapshot replaces what the reader has.
func agui() *reader {
	const body = `{"protocolVersion":"1.0","threadId":"` + session + "/" + thread + `","runId":"any","messages":[],"state":{},"tools":[],"context":[],"forwardedProps":{}}`
	return &reader{name: "AG-UI connect", follow: func(ctx context.Context, r *reader, url string) error {
		ended := false
		_, err := r.stream(request(ctx, http.MethodPost, url+"/agui/default/connect", body), func(f sse.Frame) error {
			ended = bytes.Contains(f.Data, []byte(`"type":"`+tapedeck.RunFinished)) || bytes.Contains(f.Data, []byte(`"type":"`+tapedeck.RunError))
			return r.agui(f.Data)
		})
		if err == nil && !ended {
			return errEnded
		}
		return err
	}}
}
