package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newTerminal returns both ends of a terminal: the one in which users type, and the one
// that the program reads.
func newTerminal(t *testing.T) (people, program *os.File) {
	t.Helper()
	people, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	fd := int(people.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = people.Close(), program.Close() })
	return people, program
}

// write types a text and waits for its echo.
func write(t *testing.T, people *os.File, text string) {
	t.Helper()
	if _, err := people.WriteString(text); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	if _, err := people.Read(buf); err != nil {
		t.Fatal(err)
	}
}

// Input for one question does not answer the next one.
func TestTypedForAnotherQuestion(t *testing.T) {
	h := newFixture(t)
	people, program := newTerminal(t)
	stderr := &counted{changed: make(chan struct{}, 1)}
	var stdout bytes.Buffer
	done := make(chan int)
	go func() {
		done <- Main(context.Background(), []string{"--data", h.data, "--config", h.config, "run",
			`[tool write_file {"path":"x.txt","content":"y"}] [tool write_file {"path":"z.txt","content":"y"}]`}, program, &stdout, stderr)
	}()
	stderr.await(t, "press Enter", 1)
	write(t, people, "1")
	session := regexp.MustCompile(`session (\S+)`).FindStringSubmatch(stderr.String())[1]
	asks, _, _ := h.run("permissions", session)
	if _, errs, code := h.run("answer", session, strings.Fields(asks)[0], "allow_once"); code != exitDone {
		t.Fatal(errs)
	}
	stderr.await(t, "press Enter", 2)
	write(t, people, "\n")
	stderr.await(t, "y or n: ", 1) // a line that is no answer
	write(t, people, "n\n")
	if code := <-done; code != exitDone {
		t.Errorf("code %d", code)
	}
	for name, want := range map[string]bool{"x.txt": true, "z.txt": false} {
		if _, err := os.Stat(filepath.Join(workPlace(h.data), workName, session, name)); (err == nil) != want {
			t.Errorf("%s: %v\n%s\n%s", name, err, &stdout, stderr)
		}
	}
}

// A counted buffer waits until a text was written a number of times.
type counted struct {
	signalled
	changed chan struct{}
}

func (c *counted) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}()
	return c.text.Write(b)
}

func (c *counted) await(t *testing.T, text string, times int) {
	t.Helper()
	end := time.After(2 * time.Minute)
	for strings.Count(c.String(), text) < times {
		select {
		case <-c.changed:
		case <-end:
			t.Fatalf("%q was not written %d times: %s", text, times, c)
		}
	}
}
