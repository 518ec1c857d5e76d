package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// deltas pushes events into a queue, 10 ms after one another, and returns the data
// of the drained events.
func deltas(events ...tapedeck.Event) string {
	q := newQueue()
	at := time.UnixMilli(0)
	for _, ev := range events {
		ev.Time, at = at, at.Add(10*time.Millisecond)
		q.push(ev)
	}
	var out []string
	for _, ev := range q.drain() {
		out = append(out, string(ev.Data))
	}
	return strings.Join(out, " ")
}

func content(data string) tapedeck.Event {
	return tapedeck.Event{Type: tapedeck.TextMessageContent, Data: json.RawMessage(data)}
}

func TestJoin(t *testing.T) {
	a, b := content(`{"messageId":"m","delta":"a"}`), content(`{"delta":"b","messageId":"m"}`)
	other := func(change func(*tapedeck.Event)) tapedeck.Event {
		ev := b
		change(&ev)
		return ev
	}
	args := tapedeck.Event{Type: tapedeck.ToolCallArgs, Data: json.RawMessage(`{"toolCallId":"c","delta":"{"}`)}
	think := tapedeck.Event{Type: tapedeck.ReasoningMessageContent, Data: b.Data}
	for _, tt := range []struct {
		name   string
		events []tapedeck.Event
		want   string
	}{
		{"one is as it was", []tapedeck.Event{b}, `{"delta":"b","messageId":"m"}`},
		{"two", []tapedeck.Event{a, b}, `{"messageId":"m","delta":"ab","cuts":[[1,0],[1,10]]}`},
		{"three", []tapedeck.Event{a, b, a}, `{"messageId":"m","delta":"aba","cuts":[[1,0],[1,10],[1,20]]}`},
		{"arguments", []tapedeck.Event{args, args}, `{"toolCallId":"c","delta":"{{","cuts":[[1,0],[1,10]]}`},
		{"reasoning", []tapedeck.Event{think, think}, `{"messageId":"m","delta":"bb","cuts":[[1,0],[1,10]]}`},
		{"another type", []tapedeck.Event{a, think}, `{"messageId":"m","delta":"a"} {"delta":"b","messageId":"m"}`},
		{"another message", []tapedeck.Event{a, content(`{"messageId":"n","delta":"b"}`)}, `{"messageId":"m","delta":"a"} {"messageId":"n","delta":"b"}`},
		{"another turn", []tapedeck.Event{a, other(func(e *tapedeck.Event) { e.Turn = 2 })}, `{"messageId":"m","delta":"a"} {"delta":"b","messageId":"m"}`},
		{"another instance", []tapedeck.Event{a, other(func(e *tapedeck.Event) { e.Instance = "i" })}, `{"messageId":"m","delta":"a"} {"delta":"b","messageId":"m"}`},
		{"another actor", []tapedeck.Event{a, other(func(e *tapedeck.Event) { e.Actor = "x" })}, `{"messageId":"m","delta":"a"} {"delta":"b","messageId":"m"}`},
		{"a member more", []tapedeck.Event{a, content(`{"messageId":"m","delta":"b","x":1}`)}, `{"messageId":"m","delta":"a"} {"messageId":"m","delta":"b","x":1}`},
		{"something between", []tapedeck.Event{a, args, b}, `{"messageId":"m","delta":"a"} {"toolCallId":"c","delta":"{"} {"delta":"b","messageId":"m"}`},
		{"half a surrogate pair", []tapedeck.Event{content(`{"messageId":"m","delta":"\ud834"}`), content(`{"messageId":"m","delta":"\udd1e"}`)},
			`{"messageId":"m","delta":"\ud834"} {"messageId":"m","delta":"\udd1e"}`},
		{"no UTF-8", []tapedeck.Event{a, content("{\"messageId\":\"m\",\"delta\":\"\xff\"}")}, "{\"messageId\":\"m\",\"delta\":\"a\"} {\"messageId\":\"m\",\"delta\":\"\xff\"}"},
		{"no text", []tapedeck.Event{a, content(`{"messageId":"m","delta":null}`)}, `{"messageId":"m","delta":"a"} {"messageId":"m","delta":null}`},
		{"no JSON", []tapedeck.Event{a, content(`{`), content(``)}, `{"messageId":"m","delta":"a"} { `},
	} {
		if got := deltas(tt.events...); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// If the clock is set back, the times of cuts must not go back.
func TestJoinClock(t *testing.T) {
	q := newQueue()
	for _, ms := range []int64{1000, 1500, 200, 1700} {
		ev := content(`{"messageId":"m","delta":"a"}`)
		ev.Time = time.UnixMilli(ms)
		q.push(ev)
	}
	if got := string(q.drain()[0].Data); got != `{"messageId":"m","delta":"aaaa","cuts":[[1,0],[1,500],[1,500],[1,700]]}` {
		t.Error(got)
	}
}

// An event has a bounded number of cuts. The next delta begins another event.
func TestJoinMany(t *testing.T) {
	q := newQueue()
	for range maxCuts + 2 {
		q.push(content(`{"messageId":"m","delta":"a"}`))
	}
	events := q.drain()
	if len(events) != 2 || strings.Count(string(events[0].Data), "[1,") != maxCuts {
		t.Errorf("there are %d events", len(events))
	}
	for i := range events {
		if err := payload.CheckData(&events[i]); err != nil {
			t.Error(err)
		}
	}
}

func TestLedgersAreBounded(t *testing.T) {
	var m ledgers
	if m.find("none") != nil || m.byID.Len() > 0 {
		t.Error("looking makes a ledger")
	}
	first := m.get("s0")
	for i := range 2 * maxLedgers {
		m.get(fmt.Sprintf("s%d", i))
		if m.find("s0") != first {
			t.Fatal("the one in use was dropped")
		}
	}
	if m.byID.Len() != maxLedgers {
		t.Errorf("%d are kept", m.byID.Len())
	}
}

// An older read of a session does not set a ledger back.
func TestLedgerSet(t *testing.T) {
	var l ledger
	old, young := order.NewVerifier(), order.NewVerifier()
	l.restore(&tapedeck.Session{Gen: 1, Head: 5}, young)
	if l.restore(&tapedeck.Session{Gen: 1, Head: 4}, old) != young || l.restore(&tapedeck.Session{Gen: 2, Head: 1}, old) != old {
		t.Error("it has the wrong verifier")
	}
}
