package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// lists expects that all pages of a list have these ids.
func lists(f tapedeck.Filter, ids ...string) step {
	return step{fmt.Sprintf("list %+v", f), func(w *world) error {
		all, err := w.list(f)
		if err != nil {
			return err
		}
		if d := cmp.Diff(ids, idsOf(all)); d != "" {
			return fmt.Errorf("(-want +got)\n%s", d)
		}
		return nil
	}}
}

func idsOf(sessions []tapedeck.Session) []string {
	var out []string
	for _, s := range sessions {
		out = append(out, s.ID)
	}
	return out
}

// createdWith creates a session whose first event sets title, owner and agent.
func createdWith(id, title, owner, agent string) step {
	data := fmt.Sprintf(`{"title":%q,"owner":%q,"agent":%q}`, title, owner, agent)
	return create(id, feature{"titled " + title, func(_ *world, m *making) {
		m.Events = []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: []byte(data)}}
		m.texts = []string{""}
	}})
}

// runs appends an event of a run.
func runs(id, typ, invocation string) step {
	return write(id, 0, events(tapedeck.Event{Type: typ, Invocation: invocation}), accepting([]string{""}))
}

func testList(t *testing.T, open opener) {
	all := tapedeck.Filter{}
	play(t, open, "newest first", lists(all), create("b"), create("a"), create("c"), create("stream/s"),
		lists(all, "c", "a", "b"), write("b", 1), lists(all, "c", "a", "b"),
		lists(tapedeck.Filter{Kind: tapedeck.KindStream}, "stream/s"),
		remove("a"), lists(all, "c", "b"), create("a"), lists(all, "a", "c", "b"))
	play(t, open, "filters", createdWith("a", "Alpha", "ada", "coder"), createdWith("b", "Beta", "bob", "coder"), createdWith("c", "Gamma", "ada", "tester"),
		lists(tapedeck.Filter{Owner: "ada"}, "c", "a"), lists(tapedeck.Filter{Owner: "Ada"}),
		lists(tapedeck.Filter{Agent: "coder"}, "b", "a"),
		lists(tapedeck.Filter{Owner: "ada", Agent: "coder"}, "a"),
		runs("a", "RUN_STARTED", "i"), runs("b", "RUN_STARTED", "i"), runs("b", "RUN_FINISHED", "i"),
		lists(tapedeck.Filter{OpenRun: true}, "a"), lists(tapedeck.Filter{Status: tapedeck.StatusComplete}, "b"),
		lists(tapedeck.Filter{Status: tapedeck.StatusRunning}, "a"), lists(tapedeck.Filter{Status: tapedeck.StatusIdle}, "c"),
		runs("a", "RUN_STARTED", "j"), runs("a", "RUN_FINISHED", "i"), lists(tapedeck.Filter{OpenRun: true}, "a"),
		runs("a", "RUN_FINISHED", "j"), lists(tapedeck.Filter{OpenRun: true}),
		create("d", fromHead("a")), create("e", from("a", 0)), create("f", fromHead("d")),
		lists(tapedeck.Filter{Parent: "a"}, "e", "d"), lists(tapedeck.Filter{Parent: "d"}, "f"), lists(tapedeck.Filter{Parent: "b"}),
		lists(tapedeck.Filter{Owner: "ada' OR '1'='1"}))
	play(t, open, "inputs that wait", create("a"), create("b"), create("c"), lists(tapedeck.Filter{Inputs: true}),
		input("a", "input.queued", `{"id":"i","when":"steer"}`), input("a", "input.queued", `{"id":"j"}`),
		input("a", "input.queued", `{"id":"j"}`), input("b", "input.queued", `{"id":"k","before":"i"}`),
		input("a", "input.queued", `{"id":"k","before":"i"}`), input("a", "input.moved", `{"id":"i"}`), input("a", "input.moved", `{"id":"z"}`),
		lists(tapedeck.Filter{Inputs: true}, "b", "a"), lists(tapedeck.Filter{Inputs: true, OpenRun: true}),
		looks("a", "has k, j and i", waitingInputs("k", "j", "i")), create("f", fromHead("a")), looks("f", "has none", waitingInputs()),
		input("a", "input.started", `{"id":"k"}`), input("a", "input.steered", `{"id":"i"}`), looks("a", "has j", waitingInputs("j")),
		input("b", "input.withdrawn", `{"id":"k"}`), lists(tapedeck.Filter{Inputs: true}, "a"),
		input("a", "input.withdrawn", `{"id":"j"}`), looks("a", "has none", waitingInputs()), lists(tapedeck.Filter{Inputs: true}))
	testWaiting(t, open)
	play(t, open, "closed", create("a", closed()), create("b"), create("c", closed()),
		lists(tapedeck.Filter{Closed: true}, "c", "a"), lists(tapedeck.Filter{Closed: true, Status: tapedeck.StatusIdle}, "c", "a"),
		lists(tapedeck.Filter{Closed: true, Status: tapedeck.StatusComplete}))
	play(t, open, "query", createdWith("ses_One", "100% sure", "", ""), createdWith("ses_two", "Über den Wolken", "", ""), createdWith("x", "a_b\\c", "", ""),
		lists(tapedeck.Filter{Query: "SES_"}, "ses_two", "ses_One"), lists(tapedeck.Filter{Query: "one"}, "ses_One"),
		lists(tapedeck.Filter{Query: "SURE"}, "ses_One"), lists(tapedeck.Filter{Query: "%"}, "ses_One"),
		lists(tapedeck.Filter{Query: "_"}, "x", "ses_two", "ses_One"), lists(tapedeck.Filter{Query: "a_B\\"}, "x"),
		lists(tapedeck.Filter{Query: "über DEN"}, "ses_two"), lists(tapedeck.Filter{Query: "nothing"}), lists(tapedeck.Filter{Query: "sure", MatchIDs: []string{"x", "gone"}}, "x", "ses_One"), lists(tapedeck.Filter{MatchIDs: []string{"x"}}, "x", "ses_two", "ses_One"),
		lists(tapedeck.Filter{Query: "'"}),
		// The newest title counts.
		write("x", 0, events(tapedeck.Event{Type: tapedeck.SessionRenamed, Data: []byte(`{"title":"Quite new"}`)}), accepting([]string{""})),
		lists(tapedeck.Filter{Query: "quite"}, "x"), lists(tapedeck.Filter{Query: "a_b"}))
	play(t, open, "streams by query", create("stream/Logs/a"), create("stream/b"),
		lists(tapedeck.Filter{Kind: tapedeck.KindStream, Query: "logs/"}, "stream/Logs/a"))
	testCursors(t, open)
	testSort(t, open)
	t.Run("times", func(t *testing.T) { testTimes(t, start(t, open)) })
}

// testWaiting checks that the catalogue knows which sessions wait for a person, and for
// which questions. The model has the same fold, and the machine compares the rest.
func testWaiting(t *testing.T, open opener) {
	waiting := tapedeck.Filter{Status: tapedeck.StatusWaiting}
	ask := func(session, id string) step {
		return input(session, "permission.requested", fmt.Sprintf(`{"id":%q,"message":"May I?\u0000","action":{"tool":"Bash"}}`, id))
	}
	play(t, open, "questions", createdWith("a", "Alpha", "ada", "coder"), createdWith("b", "Beta", "bob", "coder"), create("c"), lists(waiting),
		ask("a", "p"), lists(waiting), runs("a", "RUN_STARTED", "i"), runs("b", "RUN_STARTED", "j"), ask("a", "p"), ask("a", "q"), ask("b", "r"),
		looks("a", "asks p and q", asks("p", "q")), lists(waiting, "b", "a"), lists(tapedeck.Filter{Status: tapedeck.StatusRunning}),
		lists(tapedeck.Filter{Status: tapedeck.StatusWaiting, Owner: "bob"}, "b"), lists(tapedeck.Filter{OpenRun: true}, "b", "a"), pagesOf(tapedeck.Filter{Status: tapedeck.StatusWaiting, Limit: 1}, 1, 1),
		create("f", fromHead("a")), looks("f", "asks nothing", asks()),
		reopen(), looks("a", "asks p and q", asks("p", "q")), looks("a", "has their words", func(s tapedeck.Session) bool {
			q := s.Waiting[0]
			return q.Message == "May I?\x00" && q.Tool == "Bash" && q.Offset == 3 && q.Invocation == "i" && !q.Asked.IsZero()
		}),
		input("a", "permission.answered", `{"id":"p","option":"yes"}`), looks("a", "asks q", asks("q")), lists(waiting, "b", "a"),
		runs("b", "RUN_FINISHED", "j"), looks("b", "asks nothing", asks()), lists(waiting, "a"),
		input("a", "permission.answered", `{"id":"q"}`), looks("a", "asks nothing", asks()), lists(waiting), lists(tapedeck.Filter{Status: tapedeck.StatusRunning}, "a"))
	play(t, open, "an erased question", create("a"), runs("a", "RUN_STARTED", "i"), ask("a", "p"), erase("a", 1, 2), looks("a", "asks p without its words", func(s tapedeck.Session) bool {
		return asks("p")(s) && s.Waiting[0].Message+s.Waiting[0].Tool == ""
	}))
}

// asks reports whether a session waits for the answers to these questions, and to no
// others.
func asks(ids ...string) func(tapedeck.Session) bool {
	return func(s tapedeck.Session) bool {
		var got []string
		for _, q := range s.Waiting {
			got = append(got, q.ID)
		}
		return slices.Equal(got, ids) && (s.Status == tapedeck.StatusWaiting) == (len(ids) > 0)
	}
}

// input appends an event of an input.
func input(session, typ, data string) step {
	return write(session, 0, events(tapedeck.Event{Type: typ, Data: []byte(data)}), accepting([]string{""}))
}

// waitingInputs reports whether these inputs wait in this order.
func waitingInputs(ids ...string) func(tapedeck.Session) bool {
	return func(s tapedeck.Session) bool {
		var got []string
		for _, in := range s.Inputs {
			got = append(got, in.ID)
		}
		return slices.Equal(got, ids)
	}
}

func testCursors(t *testing.T, open opener) {
	play(t, open, "pages", step{"create s0 to s9", func(w *world) error {
		for i := range 10 {
			if err := create(fmt.Sprint("s", i)).do(w); err != nil {
				return err
			}
		}
		return nil
	}},
		lists(tapedeck.Filter{Limit: 3}, "s9", "s8", "s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0"),
		lists(tapedeck.Filter{Limit: 1}, "s9", "s8", "s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0"),
		pagesOf(tapedeck.Filter{Limit: 5}, 5, 5), pagesOf(tapedeck.Filter{Limit: 10}, 10), pagesOf(tapedeck.Filter{Limit: 4}, 4, 4, 2),
		pagesOf(tapedeck.Filter{Limit: 2, Query: "s1"}, 1), pagesOf(tapedeck.Filter{Limit: 2, Query: "nothing"}, 0),
		step{"list while others create and delete", func(w *world) error {
			first, err := w.List(w.ctx, tapedeck.Filter{Limit: 4})
			if err != nil {
				return err
			}
			w.play(create("new"), remove("s6"), remove("s4"), remove("s9"))
			rest, err := w.list(tapedeck.Filter{Limit: 4, Cursor: first.Next})
			want := []string{"s9", "s8", "s7", "s6", "s5", "s3", "s2", "s1", "s0"}
			if got := idsOf(append(slices.Clone(first.Sessions), rest...)); !slices.Equal(got, want) {
				err = errors.Join(err, fmt.Errorf("got %v, want %v", got, want))
			}
			return err
		}})
	for _, cursor := range []string{"nonsense", "-1", " 1", "1x", "1.5", "99999999999999999999999", "' OR 1", "\x00", "é"} {
		play(t, open, fmt.Sprintf("a bad cursor/%q", cursor), create("a"), step{"list", func(w *world) error {
			_, err := w.List(w.ctx, tapedeck.Filter{Cursor: cursor})
			return isKind(err, tapedeck.Invalid)
		}})
	}
	play(t, open, "limits", step{"create 1101 sessions", func(w *world) error {
		for i := range 1101 {
			if _, err := w.Create(w.ctx, tapedeck.Spec{ID: fmt.Sprint("s", i), Kind: tapedeck.KindSession}); err != nil {
				return err
			}
		}
		return nil
	}},
		pagesOf(tapedeck.Filter{Query: "s10"}, 100, 11), pagesOf(tapedeck.Filter{Limit: 1000}, 1000, 101), pagesOf(tapedeck.Filter{Limit: 5000}, 1000, 101))
}

// pagesOf expects pages of a list with these lengths.
func pagesOf(f tapedeck.Filter, sizes ...int) step {
	return step{fmt.Sprintf("list %+v", f), func(w *world) error {
		var got []int
		for more := true; more; more = f.Cursor != "" {
			page, err := w.List(w.ctx, f)
			if err != nil {
				return err
			}
			got = append(got, len(page.Sessions))
			f.Cursor = page.Next
		}
		if !slices.Equal(got, sizes) {
			return fmt.Errorf("pages of %v, want %v", got, sizes)
		}
		return nil
	}}
}

// testTimes checks the filter by time of creation: from is included, to is not.
func testTimes(t *testing.T, w *world) {
	if w.Clock == nil {
		t.Skip("the store has no clock to move")
	}
	at := w.now()
	for _, id := range strings.Fields("a b c") {
		w.play(create(id), advance(time.Minute))
	}
	minute := func(n float64) time.Time { return at.Add(time.Duration(n * float64(time.Minute))) }
	w.play(
		lists(tapedeck.Filter{From: minute(1)}, "c", "b"), lists(tapedeck.Filter{From: minute(1.1)}, "c"),
		lists(tapedeck.Filter{From: minute(3)}),
		lists(tapedeck.Filter{To: minute(1)}, "a"), lists(tapedeck.Filter{To: minute(1.1)}, "b", "a"),
		lists(tapedeck.Filter{To: minute(0)}),
		lists(tapedeck.Filter{From: minute(0), To: minute(2)}, "b", "a"), lists(tapedeck.Filter{From: minute(2), To: minute(1)}),
		lists(tapedeck.Filter{From: minute(1).In(time.FixedZone("", -7200)), To: minute(2).In(time.FixedZone("", 7200))}, "b"))
}
