package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// goalAGUI is how many times the processor time of followers of the native stream those of
// AG-UI may take.
const goalAGUI = 2.0

// measureAGUI compares followers that connect to an open run over AG-UI with followers of
// the native stream of the same run.
func measureAGUI(ctx context.Context, o options, r *report) error {
	const name = "AG-UI: 1,000 followers of a run at 20 events/s"
	if !r.wants(name) {
		return nil
	}
	var native, agui []result
	for range o.rounds {
		for _, x := range []struct {
			to  func(*process) (feed, error)
			all *[]result
		}{{nativeFeed, &native}, {aguiFeed, &agui}} {
			p, err := ours(ctx, o.bin)
			if err != nil {
				return err
			}
			one, err := fanOut(ctx, p, x.to, 1000, 20, o.length)
			p.stop()
			if err != nil {
				return err
			}
			if *x.all = append(*x.all, one); one.failed > 0 {
				r.note(fmt.Sprintf("%s: %d deliveries failed in one round", name, one.failed))
			}
			fmt.Fprintf(os.Stderr, "%s: %+v\n", name, one)
		}
	}
	figure := func(of func(result) float64) (ours, base float64) {
		return quantile(figures(agui, row{figure: of}), .5), quantile(figures(native, row{figure: of}), .5)
	}
	used, base := figure(cores)
	r.alone(name+", server CPU, compared with native SSE followers", fmt.Sprintf("%.2f× (%.2f and %.2f cores)", used/base, used, base),
		fmt.Sprintf("≤ %.0f×", goalAGUI), used <= goalAGUI*base)
	used, base = figure(p50)
	r.alone("… p50 latency, likewise", fmt.Sprintf("%.2f× (%.1f and %.1f ms)", used/base, used, base), "", true)
	return nil
}

// newRun begins a run with an open message in a new session, and returns the session and
// how to add a piece to the message.
func newRun(p *process) (session string, send func(at int64) error, err error) {
	session = fmt.Sprintf("g%d", time.Now().UnixNano())
	if err := sendAll(http.MethodPost, p.URL+"/api/v1/sessions", "application/json", strings.NewReader(`{"id":"`+session+`"}`)); err != nil {
		return "", nil, err
	}
	u := p.URL + "/api/v1/sessions/" + session + "/events"
	begin := `[{"type":"RUN_STARTED","invocation":"r","data":{"threadId":"main","runId":"r"}},{"type":"TEXT_MESSAGE_START","invocation":"r","data":{"messageId":"m"}}]`
	send = func(at int64) error {
		event := fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","invocation":"r","data":{"messageId":"m","delta":"t=%d; %s"}}`, at, pad)
		return sendAll(http.MethodPost, u, "application/json", strings.NewReader(event))
	}
	return session, send, sendAll(http.MethodPost, u, "application/json", strings.NewReader(begin))
}

func nativeFeed(p *process) (feed, error) {
	session, send, err := newRun(p)
	return feed{send: send, mark: "t=", end: ';', request: func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1/sessions/"+session+"/stream", nil)
	}}, err
}

func aguiFeed(p *process) (feed, error) {
	session, send, err := newRun(p)
	return feed{send: send, mark: "t=", end: ';', request: func(ctx context.Context) (*http.Request, error) {
		body := `{"protocolVersion":"1.0","threadId":"` + session + `","runId":"any","messages":[],"state":{},"tools":[],"context":[],"forwardedProps":{}}`
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/agui/default/connect", strings.NewReader(body))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, err
	}}, err
}
