package deck_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// A fatal is a durable agent. With the task "die" it fills the stack, which ends its process.
// With other tasks it waits for people.
type fatal struct{}

func (fatal) Durable() {}

func (fatal) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		for ev, err := range in.Begun(ctx) {
			if err == nil && strings.Contains(string(ev.Data), `"die"`) {
				var overflow func(n int) int
				overflow = func(n int) int { return 1 + overflow(n+1) }
				overflow(0)
			}
		}
		in.Inbox.Rests()
		<-ctx.Done()
	}
}

// fatalProcess opens a deck, begins the runs of a first process, waits until the deadly one has
// ended, and prints how the sessions are.
func fatalProcess(where, sessions, do string) error {
	debug.SetMaxStack(1 << 20) // it dies sooner
	ctx := context.Background()
	o := deck.Options{
		Agents: []deck.Agent{{Name: "fatal", Runner: fatal{}}}, Logger: slog.New(slog.DiscardHandler), LeaveRuns: do == "list",
	}
	folder := where
	if strings.HasPrefix(where, "postgres") {
		folder, o.Postgres = ".", &postgres.Options{URL: where, Lease: time.Second, Standby: true}
	}
	d, err := deck.Open(ctx, folder, o)
	if err != nil {
		return err
	}
	for id := range strings.FieldsSeq(sessions) {
		if do == "begin" {
			_, err = d.Run(ctx, api.Task{Session: id, Create: true, Text: id})
		}
		if err != nil {
			return err
		}
	}
	for ev, err := range d.Follow(ctx, "die", 0) {
		if err != nil {
			return err
		}
		if ev.Type == tapedeck.RunError {
			fmt.Println(string(ev.Data))
			break
		}
	}
	for id := range strings.FieldsSeq(sessions) {
		s, err := d.Session(id).Info(ctx)
		if err != nil {
			return err
		}
		fmt.Println(id, s.Status)
	}
	return d.Close(ctx)
}

// TestFatalAgent: an agent ends each process that executes it. After two processes the next one
// ends the run of that agent instead, also if it only lists sessions. A run that waits beside
// it continues.
func TestFatalAgent(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sessions, last string
		deaths               int
	}{
		{"alone", "die", "serve", 2},
		{"alone, and a command", "die", "list", 2},
		{"beside one that waits", "wait die", "serve", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, where := range map[string]func() string{
				"sqlite": func() string { return t.TempDir() },
				"postgres": func() string {
					cluster := pgtest.Shared(t)
					db, err := cluster.Database()
					if err != nil {
						t.Fatal(err)
					}
					return cluster.URL(db)
				},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					place, folder, out := where(), t.TempDir(), []byte(nil)
					deaths := 0
					for err := errors.New("none"); err != nil; deaths++ {
						do := "serve"
						switch {
						case deaths == 0:
							do = "begin"
						case deaths >= 2:
							do = c.last
						}
						cmd := exec.Command(program)
						cmd.Dir = folder
						cmd.Env = append(os.Environ(), "TAPEDECK_FATAL="+place+"|"+c.sessions+"|"+do)
						out, err = cmd.CombinedOutput()
						if err != nil && !strings.Contains(string(out), "stack overflow") || deaths > 5 {
							t.Fatalf("process %d: %v\n%s", deaths+1, err, out)
						}
					}
					if deaths--; deaths > c.deaths {
						t.Errorf("%d processes died, want at most %d", deaths, c.deaths)
					}
					for want := range strings.SplitSeq("the server died twice in a row|die failed"+strings.Repeat("|wait running", strings.Count(c.sessions, "wait")), "|") {
						if !strings.Contains(string(out), want) {
							t.Errorf("the output lacks %q:\n%s", want, out)
						}
					}
				})
			}
		})
	}
}
