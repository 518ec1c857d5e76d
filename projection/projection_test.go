package projection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// A deck is a store with one session, to which a test appends.
type deck struct {
	*memory.Store
	t    fataler
	id   string
	head int64
	last int64 // offset of the newest jump
	turn int
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newDeck(t fataler) *deck {
	d := &deck{Store: memory.New(memory.Options{}), t: t, id: "ses_1"}
	d.create(tapedeck.Spec{ID: d.id, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: []byte(`{"title":"One","state":{"n":0}}`)}}})
	d.head = 1
	return d
}

func (d *deck) create(s tapedeck.Spec) {
	d.t.Helper()
	if done, err := d.Create(context.Background(), s); err != nil || !done.New {
		d.t.Fatalf("create %s: %+v, %v", s.ID, done, err)
	}
}

func (d *deck) append(events ...tapedeck.Event) {
	d.t.Helper()
	for i := range events {
		events[i].Time = time.UnixMilli(1_700_000_000_000 + 1000*(d.head+int64(i)))
	}
	done, err := d.Append(context.Background(), tapedeck.Append{Session: d.id, Events: events})
	if err != nil {
		d.t.Fatal(err)
	}
	d.head = done.Next
}

func say(thread, run, typ, format string, args ...any) tapedeck.Event {
	return tapedeck.Event{Type: typ, Thread: thread, Invocation: run, Data: json.RawMessage(fmt.Sprintf(format, args...))}
}

// run appends a whole turn of a thread: 8 events.
func (d *deck) run(thread string) {
	d.t.Helper()
	d.turn++
	i := d.turn
	run := fmt.Sprint("i", i)
	d.append(
		say(thread, run, tapedeck.MessageAdded, `{"message":{"id":"u%d","role":"user","content":"question %d"}}`, i, i),
		say(thread, run, tapedeck.RunStarted, `{"threadId":"t","runId":"i%d"}`, i),
		say(thread, run, tapedeck.StateDelta, `{"delta":[{"op":"replace","path":"/n","value":%d}]}`, i),
		say(thread, run, tapedeck.TextMessageStart, `{"messageId":"m%d"}`, i),
		say(thread, run, tapedeck.TextMessageContent, `{"messageId":"m%d","delta":"answer %d"}`, i, i),
		say(thread, run, tapedeck.TextMessageEnd, `{"messageId":"m%d"}`, i),
		say(thread, run, tapedeck.UsageReported, `{"inputTokens":10,"outputTokens":1}`),
		say(thread, run, tapedeck.RunFinished, `{"threadId":"t","runId":"i%d"}`, i),
	)
}

func (d *deck) jump(to int64, thread string) {
	d.t.Helper()
	data := fmt.Sprintf(`{"marker":"m%d","toOffset":%d`, d.head, to)
	if thread != "" {
		data += fmt.Sprintf(`,"thread":%q`, thread)
	}
	if d.last > 0 {
		data += fmt.Sprintf(`,"previous":%d`, d.last)
	}
	d.last = d.head
	d.append(tapedeck.Event{Type: tapedeck.SessionRewound, Data: json.RawMessage(data + "}")})
}

// want folds all events of a session, from the first one on.
func want(t fataler, l tapedeck.Log, session string, at int64) view.Snapshot {
	t.Helper()
	s := wantFold(t, l, session, at).Snapshot()
	head, err := l.Head(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	s.Session.ID, s.Session.Title = session, head.Title
	return s
}

func jumpsOf(t fataler, l tapedeck.Log, session string) (jumps []tapedeck.Jump) {
	t.Helper()
	for e, err := range tapedeck.Events(context.Background(), l, session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := e.Jump(); ok {
			jumps = append(jumps, j)
		}
	}
	return jumps
}

func wantFold(t fataler, l tapedeck.Log, session string, at int64) *view.Conversation {
	t.Helper()
	c, err := view.Fold(tapedeck.Events(context.Background(), l, session, 0), view.NewTimeline(jumpsOf(t, l, session)), at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t fataler, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (d *deck) check(p *projection.Projections, session string, at int64) {
	d.t.Helper()
	got, err := p.Snapshot(context.Background(), session, view.Query{At: new(at), Limit: 10_000})
	if err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(encode(d.t, want(d.t, d, session, at)), encode(d.t, got)); diff != "" {
		d.t.Fatalf("%s as of %d: %s", session, at, diff)
	}
	d.checkWorkflow(p, session, at)
}

func options(s tapedeck.Store) projection.Options {
	return projection.Options{Store: s, Every: 10, Kept: 2}
}

// A view is always the fold of the log, whatever was appended, reverted, read and
// removed before.
func TestSnapshotIsTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDeck(t)
		p := projection.New(options(d))
		thread := rapid.SampledFrom([]string{"", "", "side"})
		forks := []string{d.id}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 3:
				d.workflow(thread.Draw(t, "thread"), rapid.IntRange(1, 12).Draw(t, "elements"))
			case 0, 1, 2:
				d.run(thread.Draw(t, "thread"))
			case 4, 5:
				d.jump(rapid.Int64Range(0, d.head).Draw(t, "to"), rapid.SampledFrom([]string{"", "side", "main"}).Draw(t, "whose"))
			case 6:
				p = projection.New(options(d)) // a restart
			case 7:
				if err := p.Forget(context.Background(), d.id); err != nil {
					t.Fatal(err)
				}
			case 8:
				forks = append(forks, d.fork(t, rapid.Int64Range(1, d.head).Draw(t, "fork at"), len(forks)))
			default:
				d.check(p, d.id, rapid.Int64Range(0, d.head).Draw(t, "at"))
			}
		}
		for _, session := range forks {
			s, err := d.Head(context.Background(), session)
			if err != nil {
				t.Fatal(err)
			}
			d.check(p, session, s.Head)
			d.check(p, session, rapid.Int64Range(0, s.Head).Draw(t, "at"))
		}
	})
}

// fork makes a fork with a turn of its own.
func (d *deck) fork(t *rapid.T, at int64, n int) string {
	var previous int64
	for e, err := range tapedeck.Events(context.Background(), d, d.id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := e.Jump(); ok && e.Offset < at {
			previous = j.Offset
		}
	}
	fork := *d
	fork.id = fmt.Sprint("ses_fork_", n)
	data := fmt.Sprintf(`{"parent":%q,"at":%d`, d.id, at)
	if previous > 0 {
		data += fmt.Sprintf(`,"previous":%d`, previous)
	}
	fork.create(tapedeck.Spec{ID: fork.id, Parent: d.id, ForkAt: &at, Events: []tapedeck.Event{{Type: tapedeck.SessionForked, Data: json.RawMessage(data + "}")}}})
	fork.head, fork.last = at+1, previous
	for range rapid.IntRange(0, 3).Draw(t, "own turns") {
		fork.run("")
		if rapid.Bool().Draw(t, "rewind") {
			fork.jump(rapid.Int64Range(0, fork.head).Draw(t, "to"), "")
		}
	}
	return fork.id
}

// A reader can page back through a long conversation from the newest message to
// the first. Every page is the right part of the whole.
func TestPages(t *testing.T) {
	d := newDeck(t)
	for i := range 2*view.Window + 50 {
		if i%7 == 0 {
			d.run("side")
		}
		d.run("")
		if i%100 == 99 {
			d.jump(d.head-20, "")
		}
	}
	whole := want(t, d, d.id, d.head)
	p := projection.New(projection.Options{Store: d, Every: 500})
	var pages []view.Message
	before, earlier := int64(0), len(whole.Messages)
	for range 100 {
		s, err := p.Snapshot(context.Background(), d.id, view.Query{Limit: 37, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		if earlier -= len(s.Messages); s.Earlier != earlier {
			t.Fatalf("before %d: %d messages are earlier, want %d", before, s.Earlier, earlier)
		}
		pages = append(s.Messages[:len(s.Messages):len(s.Messages)], pages...)
		if s.Earlier == 0 {
			break
		}
		before = s.Messages[0].Offset
	}
	if diff := cmp.Diff(encode(t, whole.Messages), encode(t, pages)); diff != "" {
		t.Error(diff)
	}
	s, err := p.Snapshot(context.Background(), d.id, view.Query{Limit: 10_000, Thread: "side"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Messages {
		if m.Thread != "side" {
			t.Fatalf("a message of %s", m.Thread)
		}
	}
	if s.Earlier != 0 || len(s.Messages) != s.Threads[0].Messages {
		t.Errorf("%d messages and %d earlier of %d", len(s.Messages), s.Earlier, s.Threads[0].Messages)
	}
}

// After a restart the newest view is folded from the newest checkpoint. How much is
// read does not depend on the length of the session.
func TestCheckpointsBoundWhatIsRead(t *testing.T) {
	d := newDeck(t)
	for range 200 {
		d.run("")
	}
	if err := projection.New(projection.Options{Store: d, Every: 100}).Advance(context.Background(), d.id); err != nil {
		t.Fatal(err)
	}
	c := &counting{Store: d.Store}
	p := projection.New(projection.Options{Store: c, Every: 100})
	if _, err := p.Snapshot(context.Background(), d.id, view.Query{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Summary(context.Background(), d.id, -1); err != nil {
		t.Fatal(err)
	}
	if c.records > 2*100+10 {
		t.Errorf("%d records were read of %d", c.records, d.head)
	}
}

// A view at an earlier offset reads the same amount, whatever the offset.
func TestCheckpointsBoundALookBack(t *testing.T) {
	d := newDeck(t)
	for range 200 {
		d.run("")
	}
	if err := projection.New(projection.Options{Store: d, Every: 100}).Advance(context.Background(), d.id); err != nil {
		t.Fatal(err)
	}
	through := d.head / 100 * 100
	for at := through - 95; at <= d.head; at += 7 {
		c := &counting{Store: d.Store}
		s, err := projection.New(projection.Options{Store: c, Every: 100}).Snapshot(context.Background(), d.id, view.Query{At: new(at)})
		if err != nil {
			t.Fatal(err)
		}
		whole := want(t, d, d.id, at)
		if diff := cmp.Diff(encode(t, whole.Messages[len(whole.Messages)-5:]), encode(t, s.Messages[len(s.Messages)-5:])); diff != "" {
			t.Errorf("at %d: %s", at, diff)
		}
		most := int(at % 20) // events since the checkpoint
		if at > through {
			most = int(at - through)
		}
		if c.records > most+2 { // the checkpoint itself, and the first event
			t.Errorf("at %d: %d records were read, at most %d were wanted", at, c.records, most+2)
		}
	}
}

type counting struct {
	*memory.Store
	records int
}

func (c *counting) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	p, err := c.Store.Read(ctx, session, r)
	c.records += len(p.Records)
	return p, err
}

func TestSummaryAndIndex(t *testing.T) {
	d := newDeck(t)
	for range 20 {
		d.run("")
	}
	for _, p := range []*projection.Projections{projection.New(options(d)), projection.New(options(d))} {
		for _, at := range []int64{d.head, 77, 0, -1} {
			s, err := p.Summary(context.Background(), d.id, at)
			if err != nil {
				t.Fatal(err)
			}
			x, err := p.Index(context.Background(), d.id, at)
			if err != nil {
				t.Fatal(err)
			}
			if at < 0 {
				at = d.head
			}
			fold, index := view.NewSummaryFold(0), view.Index{}
			for e := range tapedeck.Events(context.Background(), d, d.id, 0) {
				if e.Offset < at {
					fold.Apply(&e)
					index.Apply(&e)
				}
			}
			for k := int64(10); k <= at; k += 10 {
				index.Keyframes = append(index.Keyframes, k)
			}
			if diff := cmp.Diff(encode(t, fold.Summary()), encode(t, s)); diff != "" {
				t.Errorf("summary as of %d: %s", at, diff)
			}
			if diff := cmp.Diff(encode(t, index), encode(t, x)); diff != "" {
				t.Errorf("index as of %d: %s", at, diff)
			}
		}
	}
}

func TestEffective(t *testing.T) {
	d := newDeck(t)
	d.run("")
	second := d.head
	d.run("")
	d.append(tapedeck.Event{Type: tapedeck.SessionRenamed, Data: []byte(`{"title":"Two"}`)})
	d.jump(second, "")
	d.run("")
	var got []string
	for e, err := range projection.New(options(d)).Effective(context.Background(), d.id, 0, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == tapedeck.MessageAdded || e.Channel == tapedeck.ChannelSession {
			got = append(got, fmt.Sprint(e.Offset, e.Type))
		}
	}
	want := []string{"0session.created", "1message.added", "18session.rewound", "19message.added"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	d := newDeck(t)
	d.create(tapedeck.Spec{ID: "stream/x", Kind: tapedeck.KindStream})
	p := projection.New(options(d))
	for name, test := range map[string]struct {
		session string
		at      int64
		kind    tapedeck.Kind
	}{
		"unknown":         {"ses_2", -1, tapedeck.NotFound},
		"a stream":        {"stream/x", -1, tapedeck.NotFound},
		"beyond the head": {d.id, 2, tapedeck.Invalid},
	} {
		_, err := p.Snapshot(context.Background(), test.session, view.Query{At: new(test.at)})
		_, errSummary := p.Summary(context.Background(), test.session, test.at)
		_, errIndex := p.Index(context.Background(), test.session, test.at)
		_, errTimeline := p.Timeline(context.Background(), test.session, test.at)
		for _, err := range []error{err, errSummary, errIndex, errTimeline} {
			if tapedeck.KindOf(err) != test.kind {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Forget leaves no checkpoint of a session behind. The deletion of a session leaves
// none either.
func TestForget(t *testing.T) {
	d := newDeck(t)
	for range 10 {
		d.run("")
	}
	p := projection.New(options(d))
	views := func() int {
		page, err := d.List(context.Background(), tapedeck.Filter{Kind: tapedeck.KindView})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Sessions)
	}
	if err := p.Advance(context.Background(), d.id); err != nil || views() == 0 {
		t.Fatalf("%d checkpoints, %v", views(), err)
	}
	if err := p.Forget(context.Background(), d.id); err != nil || views() != 0 {
		t.Fatalf("%d checkpoints are left, %v", views(), err)
	}
	d.check(p, d.id, d.head)
	s, err := d.Head(context.Background(), d.id)
	if err != nil || views() == 0 {
		t.Fatal(err, views())
	}
	if err := d.Delete(context.Background(), d.id); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	p.Watch([]tapedeck.Commit{{Session: s, Gone: true}})
	for views() > 0 {
		select {
		case <-done:
			t.Fatal("it has stopped")
		default:
		}
	}
	stop()
	<-done
}

// A rewind of one thread does not change the others, nor how much is read for them.
func TestJumpOfOneThread(t *testing.T) {
	d := newDeck(t)
	d.run("side")
	d.jump(0, "main")
	d.jump(0, "main")
	p := projection.New(options(d))
	d.check(p, d.id, d.head)
	if s, err := p.Snapshot(context.Background(), d.id, view.Query{Limit: 1}); err != nil || len(s.Messages) != 1 || len(s.Runs) != 1 {
		t.Errorf("%d messages, %d runs, %v", len(s.Messages), len(s.Runs), err)
	}
}

// At its start, the program removes the checkpoints of sessions that were deleted
// before. Other checkpoints stay.
func TestSweep(t *testing.T) {
	d := newDeck(t)
	for range 10 {
		d.run("")
	}
	other := *d
	other.id, other.head = "ses_2", 1
	other.create(tapedeck.Spec{ID: other.id, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}})
	for range 10 {
		other.run("")
	}
	p := projection.New(options(d))
	for _, id := range []string{d.id, other.id} {
		if err := p.Advance(context.Background(), id); err != nil {
			t.Fatal(err)
		}
	}
	views := func() (mine, others int) {
		page, err := d.List(context.Background(), tapedeck.Filter{Kind: tapedeck.KindView})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Sessions {
			if strings.Contains(v.ID, "/"+other.id+"/") {
				others++
			} else {
				mine++
			}
		}
		return mine, others
	}
	mine, others := views()
	if mine == 0 || others == 0 {
		t.Fatalf("%d and %d checkpoints", mine, others)
	}
	if err := d.Delete(context.Background(), d.id); err != nil {
		t.Fatal(err)
	}
	d.create(tapedeck.Spec{ID: d.id}) // a recreated session is another one
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { projection.New(options(d)).Run(ctx); close(done) }()
	for left := mine; left > 0; left, _ = views() {
		select {
		case <-done:
			t.Fatal("it has stopped")
		default:
		}
	}
	stop()
	<-done
	if _, now := views(); now != others {
		t.Errorf("%d of %d checkpoints of the other session are left", now, others)
	}
}

// An ETag from before an erasure does not match any more.
func TestEpoch(t *testing.T) {
	d := newDeck(t)
	p := projection.New(options(d))
	before := p.Epoch()
	if before != p.Epoch() || before == projection.New(options(d)).Epoch() {
		t.Error("the epoch is not that of a life")
	}
	if err := p.Forget(context.Background(), d.id); err != nil || before == p.Epoch() {
		t.Errorf("it is the same after something was removed, %v", err)
	}
}
