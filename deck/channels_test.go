package deck_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/internal/decktest"
)

// A channelsClient knows only a base URL of the six channels.
type channelsClient struct{ *decktest.World }

func (c channelsClient) send(method, path, body string, into any) int {
	c.Helper()
	r := httptest.NewRequestWithContext(c.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.Handler.ServeHTTP(w, r)
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			c.Fatalf("%s %s: %d %s: %v", method, path, w.Code, w.Body, err)
		}
	}
	return w.Code
}

func (c channelsClient) must(method, path, body string, into any) {
	c.Helper()
	var answer json.RawMessage
	if code := c.send(method, path, body, &answer); code < 200 || code > 299 {
		c.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			c.Fatalf("%s %s: %s: %v", method, path, answer, err)
		}
	}
}

type channelsPage struct {
	Events []struct {
		ID        string          `json:"id"`
		SessionID string          `json:"session_id"`
		Offset    int64           `json:"offset"`
		Type      string          `json:"type"`
		Channel   string          `json:"channel"`
		Data      json.RawMessage `json:"data"`
		Timestamp int64           `json:"timestamp"`
	} `json:"events"`
	Next, Head int64
	Closed     bool
}

func (p *channelsPage) String() string {
	var b strings.Builder
	for _, e := range p.Events {
		fmt.Fprintf(&b, "%d %s %s\n", e.Offset, e.Channel, e.Data)
	}
	return b.String()
}

const channelsTurn = `[
	{"type":"started","channel":"agentState","data":{"agentId":"a","status":"running","turn":1}},
	{"channel":"chunks","id":"c1","agentId":"a","text":"I look.","turn":1,"timestamp":1705848000000},
	{"channel":"toolCalls","id":"t1","agentId":"a","tool":"Read","input":{"path":"a"},"output":{"lines":2},"status":"complete","duration":3},
	{"channel":"chunks","id":"c2","agentId":"b","text":"So do I.","turn":0}]`

// TestChannelsAtOnce: programs that publish without waiting for each other lose nothing,
// whichever of their events begins the run of an agent, or ends it.
func TestChannelsAtOnce(t *testing.T) {
	c := channelsClient{decktest.New(t)}
	const s = "/channels/api/sessions/s"
	c.must("POST", "/channels/api/sessions", `{"id":"s"}`, nil)
	var wg sync.WaitGroup
	n := 0
	for round := range 5 {
		for i := range 20 {
			body := fmt.Sprintf(`{"channel":"chunks","id":"c%d.%d","agentId":"a","text":"x","turn":%d}`, round, i, i%3)
			switch i {
			case 7:
				body = fmt.Sprintf(`{"channel":"agentState","agentId":"a","status":"running","taskId":"%d"}`, round)
			case 13:
				body = fmt.Sprintf(`{"channel":"agentState","agentId":"a","status":"completed","taskId":"%d"}`, round)
			case 17:
				body = fmt.Sprintf(`{"channel":"toolCalls","id":"t%d","agentId":"a","tool":"Read","output":"x","status":"complete"}`, round)
			}
			n++
			wg.Go(func() {
				if code := c.send("POST", s+"/events", body, nil); code != http.StatusOK {
					t.Errorf("%s is answered with %d", body, code)
				}
			})
		}
		wg.Wait()
	}
	var page channelsPage
	c.must("GET", s+"/events", "", &page)
	seen := map[string]bool{}
	for _, e := range page.Events {
		seen[string(e.Data)] = true
	}
	if len(page.Events) != n || len(seen) != n {
		t.Errorf("%d events were published, %d are read, %d of them different", n, len(page.Events), len(seen))
	}
}

// TestChannels: what is published in the form of the six channels is read back in it, from
// each number on, as pages and as a stream.
func TestChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := channelsClient{decktest.New(t)}
		const s = "/channels/api/sessions/s"
		c.must("POST", "/channels/api/sessions", `{"id":"s","title":"One"}`, nil)
		c.must("POST", s+"/events", channelsTurn, nil)
		live := apitest.Watch(t, c.Handler, "s/stream?format=channels&fromOffset=1")
		synctest.Wait()
		c.must("POST", s+"/presence", `{"userId":"ada","action":"join"}`, nil)
		synctest.Wait()

		const all = `0 agentState {"agentId":"a","status":"running","turn":1}
1 chunks {"id":"c1","agentId":"a","text":"I look.","turn":1,"timestamp":1705848000000}
2 toolCalls {"id":"t1","agentId":"a","tool":"Read","input":{"path":"a"},"output":{"lines":2},"status":"complete","duration":3}
3 chunks {"id":"c2","agentId":"b","text":"So do I.","turn":0}
`
		var p channelsPage
		c.must("GET", s+"/events?limit=4", "", &p)
		if p.String() != all || p.Next != 4 || p.Head != 5 || p.Events[0].Type != "started" || p.Events[1].Timestamp != 1_705_848_000_000 {
			t.Errorf("%+v", p)
		}
		for from := range 6 {
			var rest channelsPage
			c.must("GET", fmt.Sprintf("/api/v1/sessions/s/events?format=channels&fromOffset=%d", from), "", &rest)
			if len(rest.Events) != 5-from || from < 5 && rest.Events[0].Offset != int64(from) || rest.Next != 5 {
				t.Errorf("from %d: %+v", from, rest)
			}
		}
		for query, want := range map[string]int{"agent=a": 3, "agent=b": 1, "agent=a,b": 4, "agent=x": 0, "channel=chunks": 2, "channel=presence": 1, "agent=b&channel=toolCalls": 0, "thread=a": 3} {
			var some channelsPage
			if c.must("GET", s+"/events?"+query, "", &some); len(some.Events) != want || some.Next != 5 {
				t.Errorf("%s: %+v", query, some)
			}
		}
		var ids []string
		for _, f := range live.Frames(t) {
			if f.Event != "" {
				continue
			}
			number, _, _ := strings.Cut(f.ID, "@")
			if ids = append(ids, number); !strings.Contains(string(f.Data), `"offset":`+number+`,`) {
				t.Errorf("%s: %s", f.ID, f.Data)
			}
		}
		if got := strings.Join(ids, " "); got != "1 2 3 4" {
			t.Errorf("the stream sends %s", got)
		}
		again := apitest.Watch(t, c.Handler, "s/stream?format=channels", "Last-Event-ID", live.LastID(t))
		synctest.Wait()
		c.must("POST", s+"/close", "", nil) // the agents have never said that they are done
		synctest.Wait()
		if text := again.Text(); !strings.Contains(text, `"reason":"closed"`) || strings.Contains(text, `"session_id"`) {
			t.Errorf("after the last event: %s", text)
		}
		if code := c.send("GET", s+"/stream?lastEventId=4", "", nil); code != http.StatusNoContent {
			t.Errorf("a client that has everything gets %d", code)
		}
		var summary struct {
			SessionID string `json:"session_id"`
			Turns     int    `json:"turns_count"`
			Status    string `json:"final_status"`
		}
		if c.must("GET", s+"/summary", "", &summary); summary.SessionID != "s" || summary.Turns != 2 || summary.Status != "complete" {
			t.Errorf("%+v", summary)
		}
		live.Disconnect()
		again.Disconnect()
		synctest.Wait()
	})
}

// TestChannelsRefuseQueries: what the form does not have is refused with a reason.
func TestChannelsRefuseQueries(t *testing.T) {
	c := channelsClient{decktest.New(t)}
	c.must("POST", "/channels/api/sessions", `{"id":"s"}`, nil)
	for _, query := range []string{
		"events?fromOffset=1", "events?fromOffset=-1", "events?fromOffset=x", "events?reverse=true", "events?type=RUN_STARTED", "events?view=effective", "events?format=task&from=0&format=native",
		"events?format=native", "events?channel=agent", "events?lastEventId=1", "stream?until=terminal", "stream?presence=live", "stream?limit=1", "stream?lastEventId=x", "stream?lastEventId=7", "summary?format=x",
	} {
		var e struct{ Error struct{ Message string } }
		if code := c.send("GET", "/channels/api/sessions/s/"+query, "", &e); code != http.StatusBadRequest || e.Error.Message == "" {
			t.Errorf("%s: %d %q", query, code, e.Error.Message)
		}
	}
	if code := c.send("GET", "/channels/api/sessions/none/events", "", nil); code != http.StatusNotFound {
		t.Errorf("a session that is not there: %d", code)
	}
}

// TestAgentsFromOutsideAreFound: lists know the agent of a program that only publishes events.
func TestAgentsFromOutsideAreFound(t *testing.T) {
	c := channelsClient{decktest.New(t)}
	for _, agent := range []string{"mason", "joiner"} {
		c.must("POST", "/channels/api/sessions", `{"id":"`+agent+`"}`, nil)
		c.must("POST", "/channels/api/sessions/"+agent+"/events", `{"channel":"chunks","id":"c","agentId":"`+agent+`","text":"x"}`, nil)
		var list struct{ Sessions []struct{ ID string } }
		if c.must("GET", "/channels/api/sessions?agent="+agent, "", &list); len(list.Sessions) != 1 || list.Sessions[0].ID != agent {
			t.Errorf("%s: %+v", agent, list)
		}
	}
}
