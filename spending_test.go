package tapedeck_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
)

// randomSpending returns events of runs at random: of usage, questions, answers, ends and
// data that no agent should send.
func randomSpending(r *rand.Rand, n int) []tapedeck.Event {
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	events := make([]tapedeck.Event, n)
	for i := range events {
		at = at.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		run := fmt.Sprintf("i%d", r.IntN(3))
		e := tapedeck.Event{Offset: int64(i), Time: at, Invocation: run, Thread: run}
		switch r.IntN(8) {
		case 0:
			e.Type, e.Data = tapedeck.RunStarted, []byte(`{}`)
		case 1:
			e.Type, e.Data = tapedeck.RunFinished, []byte(`{}`)
		case 2:
			e.Type, e.Data = tapedeck.PermissionRequested, []byte(`{"id":"q"}`)
		case 3:
			e.Type, e.Data = tapedeck.PermissionAnswered, []byte(`{"id":"q"}`)
		case 4:
			e.Type, e.Data = tapedeck.UsageReported, fmt.Appendf(nil, `{"inputTokens":%d,"outputTokens":%d,"costUsd":%v}`, r.IntN(100), r.IntN(100), float64(r.IntN(1000))/1000)
		case 5:
			e.Type, e.Data = tapedeck.UsageReported, [][]byte{
				[]byte(`{"totalTokens":-5,"costUsd":-1}`), []byte(`{"totalTokens":"many"}`), []byte(`{"totalTokens":1e300,"costUsd":1e300}`),
				[]byte(`{"inputTokens":9007199254740991,"outputTokens":9007199254740991}`), nil, []byte(`[]`),
			}[r.IntN(6)]
		case 6:
			e.Type, e.Data = tapedeck.SessionRenamed, [][]byte{
				[]byte(`{"budget":{"tokens":5,"grants":2}}`), []byte(`{"budget":{}}`), []byte(`{"title":"t"}`), []byte(`{"budget":{"usd":-5}}`), []byte(`{"budget":7}`),
			}[r.IntN(5)]
		case 7:
			e.Type, e.Data = tapedeck.SessionRewound, []byte(`{"marker":"m","to":0}`)
		}
		events[i] = e
	}
	return events
}

// What a session has spent only grows, whatever comes, and stays valid. A fold that
// continues from the JSON of an entry has the same result, and a copy of the entry that was
// taken before does not change.
func TestSpending(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		events := randomSpending(r, 60)
		var whole tapedeck.Session
		var last tapedeck.Amount
		cut := r.IntN(len(events))
		var resumed tapedeck.Session
		for i := range events {
			if i == cut {
				b, err := json.Marshal(whole)
				if err == nil {
					err = json.Unmarshal(b, &resumed)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			before, copied := whole.Spent, tapedeck.Spending{}
			if before != nil {
				copied = *before
			}
			whole.Apply(&events[i])
			if i >= cut {
				resumed.Apply(&events[i])
			}
			if before != nil && *before != copied {
				t.Fatalf("round %d: %s at %d changed a copy", round, events[i].Type, i)
			}
			var now tapedeck.Amount
			if whole.Spent != nil {
				now = whole.Spent.Amount
				if working := whole.Status == tapedeck.StatusRunning; working == whole.Spent.Since.IsZero() {
					t.Fatalf("round %d: %s, since %v", round, whole.Status, whole.Spent.Since)
				}
			}
			if err := now.Check("it"); err != nil || now.Tokens < last.Tokens || now.USD < last.USD || now.Turns < last.Turns || now.Seconds < last.Seconds {
				t.Fatalf("round %d: %s at %d: %+v after %+v, %v", round, events[i].Type, i, now, last, err)
			}
			last = now
			if b := whole.Budget; b != nil && *b != (tapedeck.Budget{Amount: tapedeck.Amount{Tokens: 5}, Grants: 2}) {
				t.Fatalf("round %d: the budget is %+v", round, b)
			}
		}
		if a, b := asText(t, whole.Spent), asText(t, resumed.Spent); a != b {
			t.Fatalf("round %d: %s, and %s from an entry at %d", round, a, b, cut)
		}
	}
}

func asText(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
