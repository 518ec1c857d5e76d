package task_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck/internal/apitest"
	"github.com/tapedeck/tapedeck/protocol/task"
)

// say appends a part of a message of an invocation.
func (l log) say(t *testing.T, invocation string) {
	t.Helper()
	e := do("TEXT_MESSAGE_CONTENT", `{~messageId~:~m~,~delta~:~b~}`)
	e.Invocation = invocation
	l.append(t, e)
}

// A page that opens the stream again without a cursor, and appends what it gets, has each
// event once, wherever its connection was lost.
func TestPageWithoutACursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		l.play(t, "a")
		l.play(t, "b", "TEXT_MESSAGE_END")
		var page apitest.Client
		want := "7 user_message, 8 agent_start, 10 message"
		for i := range 10 {
			page.Open(t, h, "s/events?format=task&token=x", "Accept", "text/event-stream")
			time.Sleep(time.Second)
			synctest.Wait()
			if i%2 > 0 { // it gets this before the connection is lost, and the others after that
				l.say(t, "b")
				synctest.Wait()
				want += fmt.Sprintf(", %d message", 11+i)
			}
			page.Disconnect()
			synctest.Wait()
			if i%2 == 0 {
				l.say(t, "b")
				want += fmt.Sprintf(", %d message", 11+i)
			}
		}
		l.finish(t, "b")
		page.Open(t, h, "s/events?format=task&token=x", "Accept", "text/event-stream")
		<-page.Done
		if got := received(t, &page); got != want+", 21 agent_complete" {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// What a stream without a cursor begins with.
func TestPlaces(t *testing.T) {
	const whole, rest = "7 user_message, 8 agent_start, 10 message, 11 message", "11 message"
	lose := func(t *testing.T, h http.Handler, target string, headers ...string) {
		c := watch(t, h, target, headers...)
		time.Sleep(time.Second)
		synctest.Wait()
		c.Disconnect()
		synctest.Wait()
	}
	stream := func(t *testing.T, h http.Handler) { lose(t, h, "s/stream?format=task") }
	for _, c := range []struct {
		name   string
		before func(*testing.T, http.Handler) // the client reads before the next event
		query  string
		agent  string // the User-Agent
		want   string
		ends   string // is also there if the task ends before the client comes back
	}{
		{"a new client", func(*testing.T, http.Handler) {}, "", "", whole, ", 12 agent_complete"},
		{"a client that comes back", stream, "", "", rest, ", 12 agent_complete"},
		{"another client", stream, "", "other", whole, ", 12 agent_complete"},
		{"a client that comes back with another token", stream, "&token=x", "", rest, ", 12 agent_complete"},
		{"it wants the whole task", stream, "&begin=task", "", whole, ", 12 agent_complete"},
		{"it names an offset", stream, "&from=10", "", "10 message, 11 message", ", 12 agent_complete"},
		{"it comes back after a long time", func(t *testing.T, h http.Handler) { stream(t, h); time.Sleep(2 * time.Minute) }, "", "", whole, ", 12 agent_complete"},
		{"a client that comes back at once", func(t *testing.T, h http.Handler) {
			c := watch(t, h, "s/stream?format=task")
			synctest.Wait()
			c.Disconnect()
			synctest.Wait()
		}, "", "", whole, ", 12 agent_complete"},
		{"two places are used one after the other", func(t *testing.T, h http.Handler) { stream(t, h); stream(t, h) }, "", "", rest, ", 12 agent_complete"},
		{"after the history", func(t *testing.T, h http.Handler) { readTasks(t, h, "s/events/history") }, "", "", "10 message, 11 message", ", 12 agent_complete"},
		{"after a page of the history", func(t *testing.T, h http.Handler) { readTasks(t, h, "s/events/history?limit=1") }, "", "", whole, ", 12 agent_complete"},
		{"after a stream of one thread", func(t *testing.T, h http.Handler) { lose(t, h, "s/stream?format=task&thread=main") }, "", "", whole, ", 12 agent_complete"},
		{"after the end of a stream", func(t *testing.T, h http.Handler) { <-watch(t, h, "s/stream?format=task&invocation=a").Done }, "", "", whole, ", 12 agent_complete"},
		{"a stream of one thread", stream, "&thread=main", "", whole, ", 12 agent_complete"},
		{"only new events", stream, "&begin=new", "", "", ""},
	} {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ended %t", c.name, ended), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, l := newHandler()
					l.create(t, created())
					l.play(t, "a")
					l.play(t, "b", "TEXT_MESSAGE_END")
					c.before(t, h)
					l.say(t, "b")
					want := c.want
					if ended {
						l.finish(t, "b")
						want += c.ends
					}
					s := watch(t, h, "s/stream?format=task"+c.query, "User-Agent", c.agent)
					synctest.Wait()
					if got := received(t, s); got != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
					if c.query == "&begin=new" && !ended {
						l.finish(t, "b")
						if <-s.Done; received(t, s) != "12 agent_complete" {
							t.Errorf("then got %s", received(t, s))
						}
					}
					s.Disconnect()
				})
			})
		}
	}
}

// The end of a task is sent again to a client that has lost its connection and has read the
// history meanwhile: it waits for it.
func TestTheEndIsSentInAnyCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, l := newHandler()
		l.create(t, created())
		l.play(t, "a")
		readTasks(t, h, "s/events/history")
		s := watch(t, h, "s/stream?format=task")
		<-s.Done
		if got := received(t, s); got != "6 agent_complete" {
			t.Errorf("got %s", got)
		}
	})
}

// A server that has just begun takes for granted that the pages have what the one before has
// stored of a task that was open then.
func TestPlacesAfterARestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		until string        // where the run was at the start
		later time.Duration // when the page comes
		want  string
	}{
		{"in the middle", "TEXT_MESSAGE_END", time.Second, "5 message, 6 agent_complete"},
		{"later than a page would", "TEXT_MESSAGE_END", 2 * time.Minute, "1 user_message, 2 agent_start, 4 message, 5 message, 6 agent_complete"},
		{"after the end", "none", time.Second, "1 user_message, 2 agent_start, 4 message, 5 message, 6 agent_complete"},
		{"before the task", "message.added", time.Second, "1 user_message, 2 agent_start, 4 message, 5 message, 6 agent_complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, l := newHandler()
				l.create(t, created())
				l.play(t, "a", c.until)
				time.Sleep(time.Second)
				h := l.handler(task.Options{Since: time.Now()})
				time.Sleep(time.Millisecond)
				head, err := l.Head(t.Context(), "s")
				if err != nil {
					t.Fatal(err)
				}
				switch head.Head {
				case 1:
					l.play(t, "a")
				case 5:
					end := do("TEXT_MESSAGE_END", `{~messageId~:~m~}`)
					end.Invocation = "a"
					l.append(t, end)
					l.finish(t, "a")
				}
				time.Sleep(c.later)
				s := watch(t, h, "s/stream?format=task")
				<-s.Done
				if got := received(t, s); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		})
	}
}
