package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// TestKillVerbs kills the server with -9 in the middle of verbs. Afterwards each verb has
// happened completely or not at all, and every acknowledged verb has happened. The
// views, which start from checkpoints that were stored before the kill, equal a fold of
// the log.
func TestKillVerbs(t *testing.T) {
	n := *rounds
	if testing.Short() {
		n = min(n, 3)
	}
	seed := rand.Uint64()
	v := &verbs{world: &world{t: t, data: t.TempDir()}, rng: rand.New(rand.NewPCG(seed, 0))}
	t.Logf("%d rounds, seed %d", n, seed)
	v.server.Store(testserver.Start(t, v.data))
	c := v.client()
	if _, err := c.Create(t.Context(), api.NewSession{ID: "deck", Title: "Deck"}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for range n {
		v.round()
	}
	if v.done == 0 {
		t.Error("no verb was acknowledged; the test proves nothing")
	}
	t.Logf("%d verbs acknowledged, %d events, %d forks", v.done, len(v.events()), len(v.forks))
}

type verbs struct {
	*world
	rng   *rand.Rand
	turn  int
	done  int
	forks []string
	// The fields below are acknowledged and must exist after the kill.
	markers  []string
	receipts []api.Erased
	imports  []string
}

// round runs verbs until the server is killed.
func (v *verbs) round() {
	ctx, cancel := context.WithCancel(v.t.Context())
	c := v.client()
	defer c.Close()
	server := v.server.Load()
	if err := v.step(ctx, c); err != nil {
		v.t.Fatalf("before the kill: %v", err)
	}
	v.done++
	time.AfterFunc(time.Duration(v.rng.IntN(150))*time.Millisecond, func() { server.Kill(); cancel() })
	for ctx.Err() == nil && v.step(ctx, c) == nil {
		v.done++
	}
	server.Kill()
	v.server.Store(testserver.Start(v.t, v.data))
	v.checkVerbs()
}

// step runs a verb and records an acknowledgement.
func (v *verbs) step(ctx context.Context, c *client.Client) error {
	s, err := c.Session(ctx, "deck")
	if err != nil {
		return err
	}
	to := v.rng.Int64N(s.Head) + 1
	var r api.Rewound
	switch v.rng.IntN(9) {
	case 0:
		r, err = c.Rewind(ctx, api.Rewind{Session: "deck", ToOffset: &to})
	case 1:
		r, err = c.Overwrite(ctx, api.Overwrite{Session: "deck", FromOffset: to})
	case 2:
		r, err = c.Clear(ctx, api.Clear{Session: "deck", Thread: "side"})
		if tapedeck.KindOf(err) == tapedeck.NotFound { // the thread has no events yet
			return nil
		}
	case 3:
		if len(v.markers) > 0 {
			r, err = c.Undo(ctx, api.Undo{Session: "deck", Marker: v.markers[v.rng.IntN(len(v.markers))]})
		}
	case 4:
		id := fmt.Sprint("fork_", len(v.forks), "_", v.turn)
		if _, err = c.Fork(ctx, api.Fork{Parent: "deck", ID: id, At: &to}); err == nil {
			v.forks = append(v.forks, id)
		}
	case 5:
		return v.erase(ctx, c, s.Head)
	case 6:
		return v.importOne(ctx, c)
	default:
		return v.say(ctx, c)
	}
	if err == nil && r.Marker != "" {
		v.markers = append(v.markers, r.Marker)
	}
	if tapedeck.KindOf(err) == tapedeck.Conflict { // there was nothing to revert
		return nil
	}
	return err
}

func (v *verbs) say(ctx context.Context, c *client.Client) error {
	v.turn++
	thread := "main"
	if v.turn%3 == 0 {
		thread = "side"
	}
	var b strings.Builder
	for i := range 3 {
		fmt.Fprintf(&b, `{"type":"message.added","thread":%q,"data":{"message":{"id":"m%d_%d","role":"user","content":"secret %d"}}}`+"\n", thread, v.turn, i, v.turn)
	}
	_, err := c.Append(ctx, "deck", strings.NewReader(b.String()), client.AppendOptions{})
	return err
}

func (v *verbs) erase(ctx context.Context, c *client.Client, head int64) error {
	from := v.rng.Int64N(head)
	e, err := c.Erase(ctx, api.Erase{Session: "deck", Events: []tapedeck.OffsetRange{{From: from, To: min(from+5, head)}}, Reason: "test"})
	if err == nil {
		v.receipts = append(v.receipts, e)
	}
	return err
}

// importOne imports a conversation of a hundred messages.
func (v *verbs) importOne(ctx context.Context, c *client.Client) error {
	var messages []string
	for i := range 2500 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"line %d"},{"role":"assistant","content":"yes %d"}`, i, i))
	}
	out, err := c.Import(ctx, api.ImportRequest{Format: "openai-messages", Title: "import"}, strings.NewReader(`{"messages":[`+strings.Join(messages, ",")+`]}`))
	if err == nil {
		v.imports = append(v.imports, out.Sessions...)
	}
	return err
}

func (v *verbs) events() []tapedeck.Event {
	var out []tapedeck.Event
	for e := range v.read("deck") {
		out = append(out, e)
	}
	return out
}

func (v *verbs) checkVerbs() {
	v.t.Helper()
	c := v.client()
	defer c.Close()
	events := v.events()
	var jumps []tapedeck.Jump
	marked, previous := map[string]bool{}, int64(0)
	for i := range events {
		e := &events[i]
		if j, ok := e.Jump(); ok {
			if j.Previous != previous {
				v.t.Errorf("the jump at %d names %d as the offset of the previous jump; it is %d", e.Offset, j.Previous, previous)
			}
			previous, marked[j.Marker] = e.Offset, true
			jumps = append(jumps, j)
		}
		if e.Type == tapedeck.SessionRedacted {
			v.checkErased(events, e)
		}
	}
	for _, m := range v.markers {
		if !marked[m] {
			v.t.Errorf("the verb %s was acknowledged and is lost", m)
		}
	}
	for _, r := range v.receipts {
		if events[r.Receipt].Type != tapedeck.SessionRedacted {
			v.t.Errorf("the receipt at %d was acknowledged and is lost", r.Receipt)
		}
	}
	v.checkView(c, events, jumps)
	for _, id := range v.forks {
		if _, err := c.Snapshot(v.t.Context(), id, view.Query{}); err != nil {
			v.t.Errorf("fork %s: %v", id, err)
		}
	}
	v.checkImports(c)
}

// checkErased checks that the events of a receipt are erased.
func (v *verbs) checkErased(events []tapedeck.Event, receipt *tapedeck.Event) {
	d, err := payload.DecodeAs[payload.SessionRedacted](*receipt)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, r := range d.Offsets {
		for _, e := range events[r.From:r.To] {
			if strings.Contains(string(e.Data), "secret") {
				v.t.Errorf("offset %d was erased by %d and has %s", e.Offset, receipt.Offset, e.Data)
			}
		}
	}
}

// checkView compares the views of the server with a fold of the log.
func (v *verbs) checkView(c *client.Client, events []tapedeck.Event, jumps []tapedeck.Jump) {
	fold := func(yield func(tapedeck.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
	want, err := view.Fold(fold, view.NewTimeline(jumps), int64(len(events)))
	if err != nil {
		v.t.Fatal(err)
	}
	got, err := c.Snapshot(v.t.Context(), "deck", view.Query{})
	if err != nil {
		v.t.Fatal(err)
	}
	texts := func(messages []view.Message) []string {
		var out []string
		for _, m := range messages {
			out = append(out, fmt.Sprint(m.Offset, " ", m.Text))
		}
		return out
	}
	wanted := texts(want.Snapshot().Messages)
	if n := len(wanted) - len(got.Messages); n > 0 && got.Earlier == n {
		wanted = wanted[n:]
	}
	if d := cmp.Diff(wanted, texts(got.Messages)); d != "" {
		v.t.Errorf("the conversation (-fold +server): %s", d)
	}
}

// checkImports checks that all imports are complete: the acknowledged ones, and maybe
// one without an acknowledgement.
func (v *verbs) checkImports(c *client.Client) {
	found := map[string]bool{}
	for cursor := ""; ; {
		page, err := c.Sessions(v.t.Context(), tapedeck.Filter{Query: "import", Cursor: cursor})
		if err != nil {
			v.t.Fatal(err)
		}
		for _, s := range page.Sessions {
			if s.Title != "import" {
				continue
			}
			found[s.ID] = true
			var last tapedeck.Event
			for e := range v.read(s.ID) {
				last = e
			}
			if last.Type != tapedeck.SessionImported {
				v.t.Errorf("session %s is half an import: it ends with %s at %d", s.ID, last.Type, last.Offset)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for _, id := range v.imports {
		if !found[id] {
			v.t.Errorf("the import %s was acknowledged and is lost", id)
		}
	}
}
