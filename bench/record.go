package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
)

// The recording has this many concurrent sessions, each with a model that sends this many
// tokens per second.
const (
	recordedSessions = 200
	tokensPerSecond  = 200
)

// measureRecording measures the cost of recording models. Every token is durable before a
// follower gets it, and every session has a follower.
func measureRecording(ctx context.Context, length time.Duration, r *report) error {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m := &model{length: length}
	d, err := deck.Open(ctx, dir, deck.Options{Agents: []deck.Agent{{Name: "model", Kind: "bench", Runner: m}}})
	if err != nil {
		return err
	}
	before, began := cpu(), time.Now()
	var followers sync.WaitGroup
	var latencies [recordedSessions][]float64
	for i := range recordedSessions {
		started, err := d.Run(ctx, api.Task{Text: strconv.Itoa(i)})
		if err != nil {
			return err
		}
		followers.Go(func() { latencies[i] = m.follow(ctx, d, started, i) })
	}
	followers.Wait()
	used, took := cpu()-before, time.Since(began)
	if err := d.Close(ctx); err != nil {
		return err
	}
	var all []float64
	for _, l := range latencies {
		all = append(all, l...)
	}
	if said := m.said.Load(); int64(len(all)) != said {
		return fmt.Errorf("the model sent %d tokens, but followers received %d", said, len(all))
	}
	size, err := sizeOf(dir)
	if err != nil {
		return err
	}
	perToken := float64(size) / float64(len(all))
	what := fmt.Sprintf("recording: %d sessions, each %d tokens/s, all durable, each with a follower: ", recordedSessions, tokensPerSecond)
	r.alone(what+"tokens/s", fmt.Sprintf("%.0f", float64(len(all))/took.Seconds()), "", true)
	r.alone(what+"CPU of two cores", fmt.Sprintf("%.0f %% (%.1f µs per token)", 100*used.Seconds()/took.Seconds()/2, used.Seconds()*1e6/float64(len(all))), "", true)
	r.alone(what+"from token to follower, p50 and p99", fmt.Sprintf("%.0f ms, %.0f ms", quantile(all, .5), quantile(all, .99)), "", true)
	r.alone(what+"bytes per token on disk", fmt.Sprintf("%.0f", perToken), "≤ 40", perToken <= 40)
	return nil
}

// A model sends tokens at a constant rate.
type model struct {
	length time.Duration
	said   atomic.Int64
	times  [recordedSessions]sync.Map // by number of the token: when it was sent
}

// Run implements [tapedeck.Runner].
func (m *model) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		session, _ := strconv.Atoi(in.Task)
		id := tapedeck.NewID("msg_")
		say := func(typ, data string) bool {
			return yield(tapedeck.Event{Type: typ, Data: json.RawMessage(data)}, nil)
		}
		if !say(tapedeck.TextMessageStart, fmt.Sprintf(`{"messageId":%q}`, id)) {
			return
		}
		tick := time.NewTicker(time.Second / tokensPerSecond)
		defer tick.Stop()
		for n := range int(m.length.Seconds() * tokensPerSecond) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			m.times[session].Store(n, time.Now())
			m.said.Add(1)
			if !say(tapedeck.TextMessageContent, fmt.Sprintf(`{"messageId":%q,"delta":"w%d "}`, id, n)) {
				return
			}
		}
		say(tapedeck.TextMessageEnd, fmt.Sprintf(`{"messageId":%q}`, id))
	}
}

// follow follows a session and returns the latency of each token from the model to the
// follower, in milliseconds.
func (m *model) follow(ctx context.Context, d *deck.Deck, s api.Started, session int) (took []float64) {
	for e, err := range d.Follow(ctx, s.Session, s.Offset) {
		if err != nil || e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError {
			return took
		}
		if e.Type != tapedeck.TextMessageContent {
			continue
		}
		now := time.Now()
		var data struct{ Delta string }
		if json.Unmarshal(e.Data, &data) != nil {
			return took
		}
		for word := range strings.FieldsSeq(data.Delta) {
			n, _ := strconv.Atoi(word[1:])
			if said, ok := m.times[session].Load(n); ok {
				took = append(took, ms(now.Sub(said.(time.Time))))
			}
		}
	}
	return took
}

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sizeOf returns the size of all files in a folder, in bytes.
func sizeOf(dir string) (int64, error) {
	var n int64
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
