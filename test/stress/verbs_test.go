package stress

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/search"
)

// allVerbs returns the verbs of the program, over its own API and over Durable Streams.
func allVerbs() []verb {
	return slices.Concat(makingVerbs(), jumpVerbs(), removingVerbs(), readingVerbs(), streamVerbs())
}

func makingVerbs() []verb {
	return []verb{
		{name: "create", workers: 1, call: func(ctx context.Context, c *caller) error {
			s, err := c.Create(ctx, api.NewSession{Title: "about apples"})
			if err != nil {
				return err
			}
			return c.keep(ctx, s.ID)
		}},
		{name: "append", workers: 4, call: func(ctx context.Context, c *caller) error {
			_, err := c.Append(ctx, c.pick(), strings.NewReader(c.words()), client.AppendOptions{})
			return err
		}},
		{name: "run", workers: 1, call: func(ctx context.Context, c *caller) error {
			agent := []string{"hello", "coder", "slow", "fail"}[c.rng.IntN(4)]
			_, err := c.Run(ctx, api.Task{Session: c.pick(), Agent: agent, Text: "talk"})
			return err
		}},
		{name: "cancel", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Cancel(ctx, c.pick(), "")
			return err
		}},
		{name: "resume", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Resume(ctx, api.Resume{Session: c.pick()})
			return err
		}},
		{name: "rename", workers: 1, call: func(ctx context.Context, c *caller) error {
			title := fmt.Sprint("pears ", c.rng.IntN(100))
			_, err := c.Rename(ctx, api.Rename{Session: c.pick(), Title: &title})
			return err
		}},
		{name: "fork", workers: 1, call: func(ctx context.Context, c *caller) error { return c.fork(ctx, false) }},
		{name: "copy", workers: 1, call: func(ctx context.Context, c *caller) error { return c.fork(ctx, true) }},
		{name: "import", workers: 1, call: func(ctx context.Context, c *caller) error {
			done, err := c.Import(ctx, api.ImportRequest{Format: "auto"}, strings.NewReader(strings.Repeat(`{"role":"user","content":"about plums"}`+"\n", 20)))
			if err != nil {
				return err
			}
			return c.keep(ctx, done.Sessions...)
		}},
	}
}

// words returns some messages as events, one per line.
func (c *caller) words() string {
	var b strings.Builder
	for range 1 + c.rng.IntN(20) {
		fmt.Fprintf(&b, `{"type":"message.added","data":{"message":{"id":%q,"role":"user","content":"about cherries %s"}}}`+"\n",
			tapedeck.NewID("msg_"), strings.Repeat("x", c.rng.IntN(2000)))
	}
	return b.String()
}

func (c *caller) fork(ctx context.Context, copied bool) error {
	f := api.Fork{Parent: c.pick(), Copy: copied}
	if c.rng.IntN(2) == 0 {
		f.At = new(int64(1 + c.rng.IntN(20)))
	}
	s, err := c.Fork(ctx, f)
	if err != nil {
		return err
	}
	return c.keep(ctx, s.ID)
}

func jumpVerbs() []verb {
	return []verb{
		{name: "rewind", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Rewind(ctx, api.Rewind{Session: c.pick(), ToOffset: new(int64(1 + c.rng.IntN(30)))})
			return err
		}},
		{name: "undo", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Undo(ctx, api.Undo{Session: c.pick()})
			return err
		}},
		{name: "overwrite", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Overwrite(ctx, api.Overwrite{Session: c.pick(), FromOffset: int64(1 + c.rng.IntN(30))})
			return err
		}},
		{name: "clear", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Clear(ctx, api.Clear{Session: c.pick()})
			return err
		}},
	}
}

func removingVerbs() []verb {
	return []verb{
		{name: "erase", workers: 3, call: func(ctx context.Context, c *caller) error {
			from := int64(1 + c.rng.IntN(10))
			_, err := c.Erase(ctx, api.Erase{Session: c.pick(), Events: []tapedeck.OffsetRange{{From: from, To: from + 1 + int64(c.rng.IntN(10))}}, Reason: "stress"})
			return err
		}},
		{name: "erase all", workers: 1, call: func(ctx context.Context, c *caller) error {
			_, err := c.Erase(ctx, api.Erase{Session: c.pick(), All: true, Reason: "stress"})
			return err
		}},
		{name: "close", workers: 1, call: func(ctx context.Context, c *caller) error {
			id := c.pick()
			_, err := c.CloseSession(ctx, id)
			if err == nil {
				c.forget(id)
				err = c.Delete(ctx, id)
			}
			return err
		}},
		{name: "delete", workers: 1, call: func(ctx context.Context, c *caller) error {
			id := c.pick()
			c.forget(id)
			return c.Delete(ctx, id)
		}},
	}
}

func readingVerbs() []verb {
	read := func(name string, call func(ctx context.Context, c *caller, id string) error) verb {
		return verb{name: name, workers: 1, call: func(ctx context.Context, c *caller) error { return call(ctx, c, c.pick()) }}
	}
	view := func(name string) verb {
		return read(name, func(ctx context.Context, c *caller, id string) error {
			return c.get(ctx, "/api/v1/sessions/"+id+"/"+name)
		})
	}
	return []verb{
		view("snapshot"), view("summary"), view("tasks"), view("branches"), view("replay-index"), view("context"), view("threads"), view("messages"), view("events"),
		read("follow", func(ctx context.Context, c *caller, id string) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			n := 0
			for _, err := range c.Follow(ctx, id, client.FollowOptions{}) {
				if n++; err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		}),
		read("list", func(ctx context.Context, c *caller, _ string) error {
			_, err := c.Sessions(ctx, tapedeck.Filter{Query: "pears"})
			return err
		}),
		{name: "search", workers: 3, call: func(ctx context.Context, c *caller) error {
			_, err := c.Search(ctx, search.Query{Text: "cherries"})
			return err
		}},
		read("export", func(ctx context.Context, c *caller, id string) error {
			format := []string{"json", "ndjson", "markdown", "csv", "html", "asciicast"}[c.rng.IntN(6)]
			r, err := c.Export(ctx, api.ExportRequest{Session: id, Format: format})
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, r) // the export breaks off if the session is deleted meanwhile
			return r.Close()
		}),
		read("diff", func(ctx context.Context, c *caller, id string) error {
			_, err := c.Diff(ctx, id, c.pick(), -1, -1)
			return err
		}),
		read("presence", func(ctx context.Context, c *caller, id string) error {
			_, err := c.Presence(ctx, api.PresenceNote{Session: id, Action: api.PresenceJoin, User: "ada"})
			return err
		}),
		read("readyz", func(ctx context.Context, c *caller, _ string) error { return c.get(ctx, "/readyz") }),
		read("agents", func(ctx context.Context, c *caller, _ string) error { return c.get(ctx, "/api/v1/agents") }),
	}
}

// streamVerbs returns the verbs of Durable Streams.
func streamVerbs() []verb {
	const streams = 5
	return []verb{
		{name: "put stream", workers: 1, call: func(ctx context.Context, c *caller) error {
			return c.do(ctx, "PUT", fmt.Sprint("/v1/stream/x", c.rng.IntN(streams)), "application/json", "")
		}},
		{name: "post stream", workers: 1, call: func(ctx context.Context, c *caller) error {
			return c.do(ctx, "POST", fmt.Sprint("/v1/stream/x", c.rng.IntN(streams)), "application/json", `[{"about":"figs"}]`)
		}},
		{name: "get stream", workers: 1, call: func(ctx context.Context, c *caller) error {
			return c.get(ctx, fmt.Sprint("/v1/stream/x", c.rng.IntN(streams), "?offset=-1"))
		}},
		{name: "delete stream", workers: 1, call: func(ctx context.Context, c *caller) error {
			return c.do(ctx, "DELETE", fmt.Sprint("/v1/stream/x", c.rng.IntN(streams)), "", "")
		}},
		{name: "session stream", workers: 1, call: func(ctx context.Context, c *caller) error {
			return c.get(ctx, "/v1/stream/sessions/"+c.pick()+"/views/messages?offset=-1")
		}},
	}
}
