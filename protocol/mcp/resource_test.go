package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/protocol/mcp"
	"github.com/tapedeck/tapedeck/store/memory"
)

// TestResources: the list has every session once, and each can be read.
func TestResources(t *testing.T) {
	both(t, func(t *testing.T, version string) {
		w := newWorld(t, deck.Options{})
		for i := range 120 {
			w.create(t, fmt.Sprintf("s:%d@x", i), "hi")
		}
		p := w.connect(t, version)
		var uris []string
		for r, err := range p.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			uris = append(uris, r.URI)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(uris)))) != 120 || uris[0] != "tapedeck://sessions/s:119@x" {
			t.Errorf("%d resources, %v", len(uris), uris[:min(3, len(uris))])
		}
		r, err := p.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uris[7]})
		var c page
		if err != nil || len(r.Contents) != 1 || json.Unmarshal([]byte(r.Contents[0].Text), &c) != nil || c.Messages[0].Text != "hi" {
			t.Errorf("%v %+v", err, r)
		}
		if templates, err := p.ListResourceTemplates(t.Context(), nil); err != nil || len(templates.ResourceTemplates) != 1 || !strings.Contains(templates.ResourceTemplates[0].Description, "not instruction") {
			t.Errorf("%v %+v", err, templates)
		}
		for _, uri := range []string{
			"tapedeck://sessions/nope", "tapedeck://sessions/", "tapedeck://sessions/../s", "tapedeck://sessions/s%2Fx", "tapedeck://sessions/" + strings.Repeat("s", 500),
			"file:///etc/passwd", "http://127.0.0.1/", "tapedeck://other/s", "",
		} {
			var e *jsonrpc.Error
			if r, err := p.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); !errors.As(err, &e) || strings.Contains(e.Message, "internal") {
				t.Errorf("%.60q: %v %+v", uri, err, r)
			}
			if err := p.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil && version == stateful {
				t.Errorf("%.60q: subscribed", uri)
			}
		}
		if _, err := p.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: "nope"}); err == nil {
			t.Error("a cursor that is none")
		}
	})
}

// TestSubscribe: a client learns over HTTP that a session has grown, until it does not want
// to know it any more; then nothing follows the session.
func TestSubscribe(t *testing.T) {
	both(t, func(t *testing.T, version string) {
		w := newWorld(t, deck.Options{})
		s, other := w.create(t, "s"), w.create(t, "other")
		p := w.connect(t, version)
		const uri = "tapedeck://sessions/s"
		if version == stateless { // the subscription lasts as long as this request
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = p.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}) }()
			await(t, func() bool { return w.Followers() == 1 })
		} else if err := p.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
		w.say(t, other, "not for it")
		w.say(t, s, "news")
		if got := <-p.updated; got != uri {
			t.Errorf("notified of %s", got)
		}
		if version == stateful {
			if err := p.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: uri}); err != nil {
				t.Error(err)
			}
		} else {
			_ = p.Close()
		}
		await(t, func() bool { return w.Followers() == 0 })
		if version == stateful { // the end of the client ends its subscriptions
			if err := p.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
				t.Error(err)
			}
			await(t, func() bool { return w.Followers() == 1 })
			_ = p.Close()
			await(t, func() bool { return w.Followers() == 0 })
		}
	})
}

// await waits until a condition holds, which no signal reports.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not happen")
		}
	}
}

// hubReader follows a hub. It has no views.
type hubReader struct {
	mcp.Catalogue
	mcp.Views
	*hub.Hub
}

func (r hubReader) Session(ctx context.Context, id string) (tapedeck.Session, error) {
	return r.Head(ctx, id)
}

func (hubReader) Events(context.Context, string, mcp.Query) (page tapedeck.Page, err error) {
	panic("a fault of the program")
}

// inBubble connects a client to a server without a network.
func inBubble(t *testing.T, h *hub.Hub) *peer {
	t.Helper()
	p := &peer{t: t, updated: make(chan string, 1000)}
	here, there := sdk.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = mcp.Serve(ctx, mcp.Options{Reader: hubReader{Hub: h}}, there)
	}()
	c := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { p.updated <- r.Params.URI },
	})
	var err error
	if p.ClientSession, err = c.Connect(ctx, here, &sdk.ClientSessionOptions{ProtocolVersion: stateful}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close()
		cancel()
		<-done
	})
	return p
}

func grow(t *testing.T, h *hub.Hub, session string) {
	t.Helper()
	e := payload.NewEvent(payload.Custom{Name: "x", Value: json.RawMessage("1")})
	if _, err := h.Append(t.Context(), tapedeck.Append{Session: session, Events: []tapedeck.Event{e}}); err != nil {
		t.Fatal(err)
	}
}

// TestNotificationsAreGathered: a session that grows all the time makes few notifications, one
// that does not grow makes none, and the last change is always notified.
func TestNotificationsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(memory.New(memory.Options{}))
		for _, id := range []string{"s", "idle"} {
			if _, err := h.Create(t.Context(), tapedeck.Spec{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		p := inBubble(t, h)
		for _, id := range []string{"s", "s", "idle"} { // twice is the same as once
			if err := p.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "tapedeck://sessions/" + id}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if len(p.updated) != 0 {
			t.Errorf("%d notifications without a change", len(p.updated))
		}
		for range 2000 { // for ten seconds
			grow(t, h, "s")
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := len(p.updated); n < 20 || n > 41 {
			t.Errorf("%d notifications", n)
		}
		for len(p.updated) > 0 {
			<-p.updated
		}
		grow(t, h, "s")
		time.Sleep(time.Second)
		if len(p.updated) != 1 || h.Followers() != 2 {
			t.Errorf("%d notifications, %d followers", len(p.updated), h.Followers())
		}
		if err := h.Delete(t.Context(), "s"); err != nil { // a subscriber reads again, and learns it
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(p.updated) != 2 || h.Followers() != 1 {
			t.Errorf("after the end of the session: %d notifications, %d followers", len(p.updated), h.Followers())
		}
		// It can be subscribed to again when it is recreated.
		if _, err := h.Create(t.Context(), tapedeck.Spec{ID: "s"}); err != nil {
			t.Fatal(err)
		}
		if err := p.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "tapedeck://sessions/s"}); err != nil {
			t.Fatal(err)
		}
		grow(t, h, "s")
		time.Sleep(time.Second)
		if len(p.updated) != 3 {
			t.Errorf("after the session was recreated: %d notifications", len(p.updated))
		}
	})
}

// TestManySubscriptions: a client cannot follow any number of sessions.
func TestManySubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(memory.New(memory.Options{}))
		p := inBubble(t, h)
		for i := range 101 {
			id := fmt.Sprintf("s%d", i)
			if _, err := h.Create(t.Context(), tapedeck.Spec{ID: id}); err != nil {
				t.Fatal(err)
			}
			if err := p.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "tapedeck://sessions/" + id}); (err != nil) != (i == 100) {
				t.Errorf("%d: %v", i, err)
			}
		}
		_ = p.Close()
		synctest.Wait()
		if h.Followers() != 0 {
			t.Errorf("%d followers of a client that has disconnected", h.Followers())
		}
	})
}

// TestPanic: a fault of the program ends one request, not the process.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inBubble(t, hub.New(memory.New(memory.Options{})))
		if r, err := p.CallTool(t.Context(), params("read_events", map[string]any{"session": "s"})); err == nil || !strings.Contains(err.Error(), "internal error") {
			t.Errorf("%v %+v", err, r)
		}
		if err := p.Ping(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}
