package aisdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/decktest"
)

// said returns a message of a page.
func said(id, role, words string) map[string]any {
	return map[string]any{"id": id, "role": role, "parts": []map[string]string{{"type": "text", "text": words}}}
}

// sends sends the messages of a page, and returns the answer.
func (w *world) sends(path, more string, list ...map[string]any) (int, string) {
	w.Helper()
	messages, err := json.Marshal(list)
	if err != nil {
		w.Fatal(err)
	}
	got := w.send(path, `{"id":"c","messages":`+string(messages)+more+`}`)
	return got.Code, got.Body.String()
}

// shows returns the ids of the messages of the chat. Those of the runs are by number, since the oldest.
func (w *world) shows(runs ...string) string {
	w.Helper()
	var out []string
	for _, m := range w.loaded("c") {
		out = append(out, m["id"].(string))
	}
	list := strings.Join(out, " ")
	for i, id := range runs {
		list = strings.ReplaceAll(list, id, fmt.Sprint("a", i+1))
	}
	return list
}

// A page that has not seen that its chat was reverted does not bring the reverted messages
// back: its message is refused, at each endpoint, and nothing is stored.
func TestStalePage(t *testing.T) {
	u1, u2, u3, edited := said("u1", "user", decktest.Say("m", "one")), said("u2", "user", decktest.Say("m", "two")), said("u3", "user", "three"), said("u2", "user", decktest.Say("m", "other"))
	for name, back := range map[string]func(w *world, a1, a2 map[string]any) (left, want string){
		"another answer": func(w *world, a1, _ map[string]any) (string, string) {
			w.sends("/aisdk/steps", `,"trigger":"regenerate-message"`, u1)
			return "u1", a1["id"].(string)
		},
		"an edit": func(w *world, a1, a2 map[string]any) (string, string) {
			w.sends("/aisdk/steps", "", u1, a1, edited)
			return "u1 a1 u2", a2["id"].(string)
		},
		"a rewind": func(w *world, _, a2 map[string]any) (string, string) {
			if _, err := w.Session("c").Rewind(t.Context(), api.Rewind{BeforeInvocation: a2["id"].(string)}); err != nil {
				t.Fatal(err)
			}
			return "u1 a1", "u2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sends("/aisdk/steps", "", u1)
			a1 := said(w.loaded("c")[1]["id"].(string), "assistant", "one")
			w.sends("/aisdk/steps", "", u1, a1, u2)
			a2 := said(w.loaded("c")[3]["id"].(string), "assistant", "two")
			left, want := back(w, a1, a2)
			head, now := w.headOf("c"), w.shows(a1["id"].(string), a2["id"].(string))
			if !strings.HasPrefix(now, left) {
				t.Fatal(now)
			}
			for _, to := range [][2]string{{"/aisdk/steps", ""}, {"/aisdk/web/c/messages", ""}, {"/aisdk/web/c/messages", `,"run":"run_1"`}} {
				code, body := w.sends(to[0], to[1], u1, a1, u2, a2, u3)
				if code != http.StatusConflict || !strings.Contains(body, fmt.Sprintf("has reverted the message %q", want)) || !strings.Contains(body, "load the messages") {
					t.Errorf("%s%s: %d %s", to[0], to[1], code, body)
				}
				if got := w.headOf("c"); got != head {
					t.Errorf("%s%s: the head was %d and is %d: %s", to[0], to[1], head, got, w.shows(a1["id"].(string), a2["id"].(string)))
					head = got
				}
			}
		})
	}
}

// What a request wants may have been in the chat before: a message that is sent again after
// a rewind, and an edit. A page that knows of the rewind is refused nothing.
func TestSentAgainAfterARewind(t *testing.T) {
	for _, text := range []string{"two", "other"} {
		w := newWorld(t)
		u1 := said("u1", "user", decktest.Say("m", "one"))
		w.sends("/aisdk/steps", "", u1)
		a1 := said(w.loaded("c")[1]["id"].(string), "assistant", "one")
		w.sends("/aisdk/steps", "", u1, a1, said("u2", "user", decktest.Say("m", "two")))
		if _, err := w.Session("c").Rewind(t.Context(), api.Rewind{BeforeInvocation: w.loaded("c")[3]["id"].(string)}); err != nil {
			t.Fatal(err)
		}
		if code, body := w.sends("/aisdk/steps", "", u1, a1, said("u2", "user", decktest.Say("m", text))); code != http.StatusOK || !strings.Contains(body, text) {
			t.Errorf("sent again with %q: %d %s", text, code, body)
		}
		a2 := said(w.loaded("c")[3]["id"].(string), "assistant", text)
		if code, body := w.sends("/aisdk/steps", "", u1, a1, said("u2", "user", ""), a2, said("own", "system", "Be brief."), said("u3", "user", "three")); code != http.StatusOK {
			t.Errorf("the next message: %d %s", code, body)
		}
		if got := w.shows(); !strings.HasPrefix(got, "u1 "+a1["id"].(string)+" u2 "+a2["id"].(string)+" own u3") {
			t.Error(got)
		}
	}
}

// A page keeps what an earlier attempt of a step said. It is left out of its next request.
func TestPageWithAnEarlierAttempt(t *testing.T) {
	w := newWorld(t)
	u1 := said("u1", "user", strings.ReplaceAll(decktest.Say("s1", "lost"), `"messageId":"s1"}`, `"messageId":"s1","role":"system"}`)+"\nattempt.superseded {}\n"+decktest.Say("m", "one"))
	w.sends("/aisdk/steps", "", u1)
	list := w.loaded("c")
	a1 := said(list[len(list)-1]["id"].(string), "assistant", "one")
	if code, body := w.sends("/aisdk/steps", "", u1, a1, said("s1", "system", "lost"), said("u2", "user", "two")); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	if got := w.shows(a1["id"].(string)); !strings.HasPrefix(got, "u1 a1 u2") {
		t.Error(got)
	}
}
