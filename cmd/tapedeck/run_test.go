package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/transcript"
)

// After a run that a crash ended, the program says how to resume it.
func TestInterruptedRunSaysHowToResume(t *testing.T) {
	for _, tt := range []struct{ event, want string }{
		{`{"offset":3,"type":"RUN_ERROR","data":{"message":"the server was restarted","code":"interrupted_by_restart"}}`, "resume with: tapedeck resume ses_1\n"},
		{`{"offset":3,"type":"RUN_ERROR","thread":"side","data":{"message":"x","code":"lease_expired"}}`, "resume with: tapedeck resume ses_1 --thread side\n"},
		{`{"offset":3,"type":"RUN_ERROR","data":{"message":"the agent failed"}}`, ""},
	} {
		var out, errs bytes.Buffer
		e := &env{stdout: &out, stderr: &errs}
		r := &running{env: e, started: api.Started{Session: "ses_1"}, transcript: transcript.New(e.pen()), desk: &desk{env: e, session: "ses_1"}}
		end, err := r.print(context.Background(), tapedeck.Record{Offset: 3, Data: []byte(tt.event)})
		var exit *exitError
		if !end || !errors.As(err, &exit) || exit.code != exitFailed || !strings.HasSuffix(errs.String(), tt.want) || tt.want == "" && errs.Len() > 0 {
			t.Errorf("%s: %v, %v, %q", tt.event, end, err, errs.String())
		}
	}
}
