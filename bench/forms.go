package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// formEvents is the number of pieces of text in a session that is read in several forms.
const formEvents = 20_000

// A form is one in which a session is streamed, besides that of the log.
type form struct {
	name  string
	write func(p *process, id string) error // fills a session that ends, so that its streams end
	path  string                            // of its stream; %s is the session
}

var forms = []form{
	{"channels", publishPieces, "/channels/api/sessions/%s/stream?fromOffset=0"},
	{"tasks", sayPieces, "/sse/api/sessions/%s/events"},
}

// measureForms compares the streams of other forms with the stream of the log: how fast a
// client gets a long session that it does not have yet.
func measureForms(ctx context.Context, o options, r *report) error {
	if !r.wants("forms: ") {
		return nil
	}
	p, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer p.stop()
	for _, f := range forms {
		id := "f" + f.name
		if err := f.write(p, id); err != nil {
			return err
		}
		paths := [2]string{"/api/v1/sessions/" + id + "/stream?from=0", fmt.Sprintf(f.path, id)}
		for _, reader := range []struct {
			name string
			read func(io.Reader) (int, error)
			goal float64
		}{{"a client that decodes each event", decodeFrames, .9}, {"a client that reads only bytes", countFrames, 0}} {
			var rates, costs [2][]float64
			for i := range 2 * o.rounds {
				for k := range paths {
					k = (k + i) % 2 // neither is always the first
					rate, cost, err := readForm(p, paths[k], reader.read)
					if err != nil {
						return err
					}
					rates[k], costs[k] = append(rates[k], rate), append(costs[k], cost)
				}
			}
			ratio, goal := quantile(rates[1], .5)/quantile(rates[0], .5), ""
			if reader.goal > 0 {
				goal = fmt.Sprintf("≥ %.1f×", reader.goal)
			}
			r.alone(fmt.Sprintf("forms: catch-up of %d pieces of text as %s, compared with the stream of the log: %s", formEvents, f.name, reader.name),
				fmt.Sprintf("%.2f× (%s events/s), %.2f× the server CPU", ratio, number(quantile(rates[1], .5)), quantile(costs[1], .5)/quantile(costs[0], .5)), goal, ratio >= reader.goal)
		}
	}
	return nil
}

// readForm reads a stream to its end. It returns the events per second, and what the server
// needs for one, in microseconds.
func readForm(p *process, path string, read func(io.Reader) (int, error)) (rate, cost float64, err error) {
	used, begin := p.cpu(), time.Now()
	resp, err := send(http.MethodGet, p.URL+path, "", nil)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	n, err := read(resp.Body)
	if err == nil && n < formEvents {
		err = fmt.Errorf("%s: %d events were read, not %d", path, n, formEvents)
	}
	return float64(n) / time.Since(begin).Seconds(), (p.cpu() - used) / float64(n) * 1e6, err
}

// countFrames counts the frames of a stream by their ends.
func countFrames(r io.Reader) (n int, err error) {
	b := make([]byte, 64<<10)
	last := byte(0)
	for {
		m, err := r.Read(b)
		part := b[:m]
		if last == '\n' && m > 0 && part[0] == '\n' {
			n++
		}
		n += bytes.Count(part, []byte("\n\n"))
		if m > 0 {
			last = part[m-1]
		}
		if err != nil {
			return n, ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// decodeFrames decodes the data of each frame, as a program does that uses it.
func decodeFrames(r io.Reader) (n int, err error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), 1<<20)
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var event map[string]any
		if err := json.Unmarshal(data, &event); err != nil {
			return n, err
		}
		n++
	}
	return n, sc.Err()
}

// publishPieces publishes text in the form of the channels, and closes the session.
func publishPieces(p *process, id string) error {
	base := p.URL + "/channels/api/sessions"
	if err := sendAll(http.MethodPost, base, "application/json", strings.NewReader(`{"id":"`+id+`"}`)); err != nil {
		return err
	}
	err := inBatches(base+"/"+id+"/events", func(i int) string {
		return fmt.Sprintf(`{"id":"c%d","channel":"chunks","agentId":"coder","sessionId":"%s","text":"Some words of an agent, as many as usual. ","turn":%d,"timestamp":%d}`, i, id, i/100, 1705848000000+i)
	})
	if err != nil {
		return err
	}
	return sendAll(http.MethodPost, base+"/"+id+"/close", "application/json", nil)
}

// sayPieces appends the text of an agent in the form of the log, and ends its run.
func sayPieces(p *process, id string) error {
	base := p.URL + "/api/v1/sessions"
	if err := sendAll(http.MethodPost, base, "application/json", strings.NewReader(`{"id":"`+id+`"}`)); err != nil {
		return err
	}
	u := base + "/" + id + "/events"
	run := func(typ, data string) string { return `{"type":"` + typ + `","invocation":"r","data":` + data + `}` }
	if err := sendAll(http.MethodPost, u, "application/json", strings.NewReader(run("RUN_STARTED", `{"threadId":"main","runId":"r"}`))); err != nil {
		return err
	}
	const length = 100 // of a message, in pieces
	err := inBatches(u, func(i int) string {
		id := fmt.Sprintf(`{"messageId":"m%d"`, i/length)
		event := run("TEXT_MESSAGE_CONTENT", id+`,"delta":"Some words of an agent, as many as usual. "}`)
		switch i % length {
		case 0:
			event = run("TEXT_MESSAGE_START", id+`}`) + "," + event
		case length - 1:
			event += "," + run("TEXT_MESSAGE_END", id+`}`)
		}
		return event
	})
	if err != nil {
		return err
	}
	if err := sendAll(http.MethodPost, u, "application/json", strings.NewReader(run("RUN_FINISHED", `{"threadId":"main","runId":"r"}`))); err != nil {
		return err
	}
	return sendAll(http.MethodPost, base+"/"+id+"/close", "application/json", nil)
}

// inBatches posts events, 500 in a request.
func inBatches(u string, event func(i int) string) error {
	for i := 0; i < formEvents; i += 500 {
		var b strings.Builder
		for j := range 500 {
			b.WriteByte("[,"[min(j, 1)])
			b.WriteString(event(i + j))
		}
		b.WriteByte(']')
		if err := sendAll(http.MethodPost, u, "application/json", strings.NewReader(b.String())); err != nil {
			return err
		}
	}
	return nil
}
