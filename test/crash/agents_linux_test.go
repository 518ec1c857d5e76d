package crash

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

var kills = flag.Int("kills", 25, "how often a server is killed while agents start")

// spawner is an agent that starts processes in process sessions of their own, one of them
// without the environment of the others.
const spawner = `[[agent]]
name = "spawner"
kind = "process"
command = "sh"
args = ["-c", "setsid sleep 1000 & (setsid env -i /bin/sleep 1001 &); echo '{\"x\":\"working\"}'; touch begun; sleep 1002; wait"]
dialect = "lines"
cwd = %q
[agent.mapping.lines.x]
as = "text"
text = "/x"
`

// A fixture is a data folder with such an agent, and the folder in which its processes
// work.
type fixture struct {
	data, folder string
	args         []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	top := t.TempDir()
	n := &fixture{data: filepath.Join(top, "data"), folder: filepath.Join(top, "folder")}
	config := filepath.Join(top, "agents.toml")
	if err := os.Mkdir(n.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(fmt.Sprintf(spawner, n.folder)), 0o600); err != nil {
		t.Fatal(err)
	}
	n.args = []string{"--config", config}
	return n
}

func (n *fixture) start(t *testing.T) (*testserver.Server, *client.Client) {
	t.Helper()
	s := testserver.Start(t, n.data, n.args...)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// processes returns the processes that work in the folder: those of the agents and
// their keepers.
func (n *fixture) processes() (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if cwd, err := os.Readlink(filepath.Join(dir, "cwd")); err == nil && cwd == n.folder {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// empty waits until all processes have ended and returns how long that took.
func (n *fixture) empty(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		left := n.processes()
		if len(left) == 0 {
			return time.Since(begin)
		}
		if time.Since(begin) > 2*time.Minute {
			t.Fatalf("still running: %q", left)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// begun waits until an agent is working.
func (n *fixture) begun(t *testing.T) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; <-time.After(2 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(n.folder, "begun")); err == nil && len(n.processes()) >= 4 {
			return
		}
	}
	t.Fatal("no agent is working")
}

// run starts n runs at once. It ignores those that the server refuses.
func run(ctx context.Context, c *client.Client, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { _, _ = c.Run(ctx, api.Task{Text: "go", Agent: "spawner"}) })
	}
	all.Wait()
}

// TestKillWhileAgentsStart kills the server many times while it starts agents. Once the
// next server runs, no process of an agent is left.
func TestKillWhileAgentsStart(t *testing.T) {
	n := newFixture(t)
	rounds := *kills
	if testing.Short() {
		rounds = min(rounds, 5)
	}
	s, c := n.start(t)
	seen, longest := 0, time.Duration(0)
	for i := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); run(ctx, c, 4) }()
		if i == rounds-1 {
			n.begun(t) // at least once there is an agent, however slow the machine is
		} else {
			<-time.After(time.Duration(i%25) * 4 * time.Millisecond) // each time at another moment of their start
		}
		seen += len(n.processes())
		s.Kill()
		cancel()
		<-done
		s, c = n.start(t)
		longest = max(longest, n.empty(t))
	}
	if seen == 0 {
		t.Error("no agent was running when the server was killed")
	}
	t.Logf("%d kills, %d processes at that moment, all ended at most %v after the next start", rounds, seen, longest)
}

// TestSignals ends the server by a signal: the run gets its terminal event, and no
// process of the agent is left.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the signal is ignored, as nohup asks for; the program respects that")
			}
			n := newFixture(t)
			s, c := n.start(t)
			started, err := c.Run(t.Context(), api.Task{Text: "go", Agent: "spawner"})
			if err != nil {
				t.Fatal(err)
			}
			n.begun(t)
			if code := s.End(t, sig); code != 0 {
				t.Errorf("exit code %d\n%s", code, s.Log())
			}
			if left := n.processes(); len(left) > 0 {
				t.Errorf("still running: %q", left)
			}
			_, c = n.start(t)
			page, err := c.Page(t.Context(), started.Session, client.PageOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ends := 0
			for _, rec := range page.Records {
				if ev, err := rec.Event(); err == nil && ev.Type == tapedeck.RunError {
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("the run has %d terminal events", ends)
			}
		})
	}
}

// TestSignalsOfRun ends a command that follows a run of a server. Only Ctrl-C cancels
// the run.
func TestSignalsOfRun(t *testing.T) {
	for sig, want := range map[syscall.Signal]struct {
		code   int
		status tapedeck.Status
	}{
		syscall.SIGHUP:  {129, tapedeck.StatusRunning},
		syscall.SIGTERM: {143, tapedeck.StatusRunning},
		syscall.SIGINT:  {130, tapedeck.StatusCancelled},
	} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("the signal is ignored, as nohup asks for; the program respects that")
			}
			n := newFixture(t)
			_, c := n.start(t)
			cmd := exec.CommandContext(t.Context(), testserver.Binary(t), "run", "go", "--agent", "spawner", "--json", "--data", n.data)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			n.begun(t)
			if _, err := stdout.Read(make([]byte, 1)); err != nil { // it follows the run
				t.Fatal(err)
			}
			_ = cmd.Process.Signal(sig)
			_, _ = io.Copy(io.Discard, stdout)
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != want.code {
				t.Errorf("it ended with %v", err)
			}
			page, err := c.Sessions(t.Context(), tapedeck.Filter{})
			if err != nil || len(page.Sessions) != 1 || page.Sessions[0].Status != want.status {
				t.Errorf("the sessions are %+v, %v", page, err)
			}
		})
	}
}

// TestToolsEnd cancels a run, and kills its agent: the processes that the agent started
// end, too, in whatever process session they are.
func TestToolsEnd(t *testing.T) {
	for _, how := range []string{"cancel", "kill -9 of the agent"} {
		t.Run(how, func(t *testing.T) {
			n := newFixture(t)
			_, c := n.start(t)
			started, err := c.Run(t.Context(), api.Task{Text: "go", Agent: "spawner"})
			if err != nil {
				t.Fatal(err)
			}
			n.begun(t)
			begin := time.Now()
			if how == "cancel" {
				if _, err := c.Cancel(t.Context(), started.Session, started.Invocation); err != nil {
					t.Fatal(err)
				}
			} else {
				for _, p := range n.processes() {
					id, line, _ := strings.Cut(p, " ")
					if pid, _ := strconv.Atoi(id); strings.HasPrefix(line, "sh -c") {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			}
			n.empty(t)
			t.Logf("all processes ended after %v", time.Since(begin))
		})
	}
}
