package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// A process is a server under load.
type process struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	cmd *exec.Cmd
	dir string // removed when the process stops; "" for no folder
}

// start starts a server that prints {"url","pid"} on a line of its own. Standard error of
// the server goes to ours.
func start(ctx context.Context, dir, name string, args ...string) (*process, error) {
	return startIn(ctx, nil, dir, name, args...)
}

// startIn is start with further variables of the environment.
func startIn(ctx context.Context, env []string, dir, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, name, args...), dir: dir}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if json.Unmarshal(lines.Bytes(), p) == nil && p.URL != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }() // drains later output
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s did not start: %w", name, cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// ours starts Tapedeck with a new data folder on disk, with fsync.
func ours(ctx context.Context, bin string) (*process, error) { return oursWith(ctx, bin, nil) }

// oursWith is ours with further variables of the environment and arguments.
func oursWith(ctx context.Context, bin string, env []string, args ...string) (*process, error) {
	dir, err := os.MkdirTemp("", "tapedeck-bench-")
	if err != nil {
		return nil, err
	}
	args = append([]string{"serve", "--json", "--data", dir, "--listen", "127.0.0.1:0", "--long-poll", "500ms"}, args...)
	return startIn(ctx, env, dir, bin, args...)
}

// rival starts the reference server in memory, or with a new folder.
func rival(ctx context.Context, file bool) (*process, error) {
	args := []string{"bench/rival/server.mjs"}
	dir := ""
	if file {
		var err error
		if dir, err = os.MkdirTemp("", "rival-bench-"); err != nil {
			return nil, err
		}
		args = append(args, dir)
	}
	return start(ctx, dir, "node", args...)
}

// cpu returns the seconds of processor time that the process has used.
func (p *process) cpu() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100 // the kernel's USER_HZ
}

// rss returns the anonymous resident memory of the process, in bytes. It does not count the
// pages of the program file.
func (p *process) rss() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024
		}
	}
	return 0
}
