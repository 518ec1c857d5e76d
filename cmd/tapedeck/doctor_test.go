package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
)

// TestAgentsThatCannotRun: what would stop a start is known before it, and no longer said when it
// is mended.
func TestAgentsThatCannotRun(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	script := []byte("#!/bin/sh\n")
	beside := filepath.Join(dir, "agent")
	if err := os.WriteFile(beside, script, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // where a relative program is not looked for
	for _, tt := range []struct{ name, settings, want string }{
		{"a folder that is missing", `kind = "acp"
command = "sh"
cwd = "work"`, "the working folder of the agent does not exist"},
		{"of a model", `preset = "ollama"
model = "m"
cwd = "work"`, "the working folder of the agent does not exist"},
		{"a program in the folder", `kind = "process"
command = "./agent"
dialect = "claude"
cwd = "work"`, "does not exist"},
		{"a program in no folder", `kind = "acp"
command = "./agent"`, "the program ./agent would begin in the folder of each session, which is empty at first"},
		{"a script", `kind = "script"
script = "absent"`, "there is no script \"absent\""},
		{"of an MCP server", `preset = "ollama"
model = "m"
[[agent.mcp]]
name = "x"
command = "no-such-server"`, "the program no-such-server is not installed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, agentconfig.FileName)
			if err := os.WriteFile(path, []byte("[[agent]]\nname = \"a\"\n"+tt.settings+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := agentconfig.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			agents, err := buildAgents(&c, &folders{data: filepath.Join(dir, "data")}, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := agents[0].Available(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if !strings.Contains(tt.settings, "cwd") {
				return
			}
			defer os.RemoveAll(work)
			if err := os.Mkdir(work, 0o700); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(tt.settings, "./agent") {
				if err := agents[0].Available(); err == nil || !strings.Contains(err.Error(), "there is no such file") {
					t.Errorf("%v", err)
				}
				if err := os.WriteFile(filepath.Join(work, "agent"), script, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := agents[0].Available(); err != nil {
				t.Errorf("it is mended: %v", err)
			}
		})
	}
}

// TestClockThatWasSetBack: a database that was written in the future is a problem.
func TestClockThatWasSetBack(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	file := filepath.Join(dir, "tapedeck.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]string{0: "ok", 30 * time.Second: "ok", time.Hour: "problem", -time.Hour: "ok"} {
		if err := os.Chtimes(file, now, now.Add(after)); err != nil {
			t.Fatal(err)
		}
		if got := examineClock(dir, now); got.State != want {
			t.Errorf("%s: %+v", after, got)
		}
	}
}
