package replay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/internal/testserver"
)

// A pane is a shell in a terminal that tmux emulates.
type pane struct {
	t      *testing.T
	dir    string
	socket string
}

// open starts a shell in a terminal of 100 columns and 20 rows. Its data folder has one
// session, with the id $S: half a minute of the work of an agent, with recorded times.
func open(t *testing.T) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("tmux is not installed; .ci/run installs it")
		}
		t.Skip("tmux is not installed: the player is not tested in a real terminal")
	}
	p := &pane{t: t, dir: t.TempDir()}
	p.socket = filepath.Join(p.dir, "tmux")
	bin := testserver.Binary(t)
	recording, err := filepath.Abs("testdata/session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), bin, "--data", p.dir, "import", "--format", "claude-code", recording).Output()
	if err != nil {
		t.Fatal(err)
	}
	p.tmux("-f", os.DevNull, "new-session", "-d", "-x", "100", "-y", "20",
		"env", "PS1=ready$ ", "TAPEDECK_DATA="+p.dir, "TAPEDECK_WORK="+p.dir+".work", "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"), "S="+strings.TrimSpace(string(out)),
		"ENV=", "sh")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = exec.CommandContext(ctx, "tmux", "-S", p.socket, "kill-server").Run()
	})
	p.await("a prompt", "ready$")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// press presses keys, with the names that tmux uses.
func (p *pane) press(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }

// run types a command.
func (p *pane) run(command string) {
	p.tmux("send-keys", "-l", command)
	p.press("Enter")
}

func (p *pane) screen() string { return p.tmux("capture-pane", "-p") }

// await waits until the screen shows all of want.
func (p *pane) await(step string, want ...string) string {
	p.t.Helper()
	return p.awaitScreen(step, func(s string) string {
		for _, w := range want {
			if !strings.Contains(s, w) {
				return "it does not show " + w
			}
		}
		return ""
	})
}

// awaitScreen waits until wrong finds no problem with the screen, and returns the
// screen.
func (p *pane) awaitScreen(step string, wrong func(screen string) string) string {
	p.t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	end := time.After(2 * time.Minute)
	for {
		s := p.screen()
		problem := wrong(s)
		if problem == "" {
			return s
		}
		select {
		case <-ticks.C:
		case <-end:
			p.t.Fatalf("%s: %s:\n%s", step, problem, s)
		}
	}
}

// restored waits until the shell has its terminal back in the earlier state.
func (p *pane) restored(exit string) {
	p.t.Helper()
	s := p.await("the shell after the player", "exit="+exit, "before")
	if strings.Contains(s, "Playback") {
		p.t.Errorf("the player is still on the screen:\n%s", s)
	}
	if got := p.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}"); got != "0 1 1" {
		p.t.Errorf("the other screen, cursor and line wrap are %s, want 0 1 1", got)
	}
	p.run("stty -a | tr ';' '\\n' | grep -c -w -e icanon -e echo | sed s/^/modes=/")
	p.await("a terminal that echoes and has lines", "modes=1")
}

const notCalled = "Playback (the agent is not called)"

func TestReplayInATerminal(t *testing.T) {
	p := open(t)
	p.run("echo before; tapedeck replay $S; echo exit=$?")
	p.await("the first frame", "› what is here?", "▶ playing 0:0", "/ 0:30.0", notCalled, "●")

	p.press("Space")
	p.await("pause", "‖ paused")
	p.press("g")
	p.await("the beginning", "0:00.0 / 0:30.0")
	p.press("t")
	p.await("the next tool", "0:10.0 / 0:30.0", "I shall look.")
	p.press("]")
	p.await("the next mark", "0:20.0 / 0:30.0", "README.md")
	p.press("[")
	p.await("the mark before", "0:10.0 / 0:30.0")
	p.press("5")
	p.await("half of it", "0:15.0 / 0:30.0", "README.md")
	p.press(">", ">")
	p.await("faster", "· 4× ·")
	p.press("s")
	p.await("skipping idle time", "idle skipped")
	p.press("g", "?")
	p.await("help", "play or pause", "skip idle time", "0:00.0 / 0:30.0")
	p.press("Space")
	p.await("the recording again", "› what is here?")
	p.press("Space", "?")
	p.await("help that stays while it plays", "play or pause", "■ end")
	p.press("?")
	p.await("the end, by itself", "■ end 0:30.0 / 0:30.0", "cancelled")
	p.press("Home")
	p.await("the beginning, still playing", "▶ playing 0:0")
	p.press("q")
	p.restored("0")
}

// After a resize the terminal shows one frame of the new size, and no part of the old
// one.
func TestReplayWhileResizing(t *testing.T) {
	p := open(t)
	p.run("echo before; tapedeck replay $S --speed 16; echo exit=$?")
	p.await("the end", "■ end")
	for _, size := range [][2]int{{40, 8}, {120, 30}, {15, 3}, {100, 20}, {33, 12}, {2, 2}, {80, 24}} {
		p.tmux("resize-window", "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]))
		p.awaitScreen(fmt.Sprintf("after a resize to %dx%d", size[0], size[1]), func(s string) string {
			return garbage(s, size[0], size[1])
		})
	}
	p.press("C-c")
	p.restored("0")
}

// garbage returns what is wrong with a screen that should show the end of a recording:
// as many rows as the terminal, the status in the last one, and above it a bar of the
// full width.
func garbage(s string, width, height int) string {
	rows := strings.Split(s, "\n")
	status := string([]rune("■ end 0:30.0 / 0:30.0")[:min(width, 21)])
	switch last := rows[len(rows)-1]; {
	case len(rows) != height:
		return fmt.Sprintf("there are %d rows", len(rows))
	case !strings.HasPrefix(last, strings.TrimSpace(status)) || strings.Count(s, "■") != 1:
		return "the status is not in the last row alone"
	case height < 5:
		return "" // no room for a bar
	}
	bar := rows[len(rows)-2]
	if strings.Count(s, "●") != 1 || !strings.HasSuffix(bar, "●") || utf8.RuneCountInString(bar) != width {
		return "the bar is not as wide as the terminal"
	}
	return ""
}

// However the player ends, the terminal is restored.
func TestReplayIsTerminated(t *testing.T) {
	p := open(t)
	pid := filepath.Join(p.dir, "pid")
	p.run("echo before; sh -c 'echo $$ > " + pid + "; exec tapedeck replay $S'; echo exit=$?")
	p.await("the first frame", notCalled)
	number, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "kill", "-TERM", strings.TrimSpace(string(number))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.restored("130")
}

func TestReplayNeedsATerminal(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), testserver.Binary(t), "replay", "s", "--data", t.TempDir())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "replay needs a terminal") || !strings.Contains(string(out), "tapedeck show s") {
		t.Errorf("%v\n%s", err, out)
	}
}
