package procgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tapedeck/tapedeck"
)

// killLeftover kills those below the keeper, the keeper, and those who have its
// mark. While it lives, nobody leaves the tree below it.
func killLeftover(d tapedeck.AgentStartedData) (bool, error) {
	keeper := member{pid: d.PID, started: d.Started}
	found, err := killUntil(func() []member {
		if startOf(d.PID) != d.Started {
			return nil
		}
		if found := below(d.PID); len(found) > 0 {
			return found
		}
		return []member{keeper}
	})
	if err != nil {
		return found, err
	}
	marked, err := killMarked(d.Mark)
	return found || marked, err
}

// killMarked kills all who have a mark in their environment.
func killMarked(mark string) (bool, error) {
	if mark == "" {
		return false, nil
	}
	want := []byte("\x00" + Mark + "=" + mark + "\x00")
	return killUntil(func() []member {
		return slices.DeleteFunc(everybody(), func(m member) bool {
			env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(m.pid), "environ"))
			return err != nil || m.pid == os.Getpid() || !bytes.Contains(slices.Concat([]byte{0}, env), want)
		})
	})
}

// killUntil kills all whom find finds, until it finds nobody. It reports whether
// it found anybody.
func killUntil(find func() []member) (found bool, err error) {
	begin := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		all := find()
		if len(all) == 0 {
			return found, nil
		}
		found = true
		for _, m := range all {
			err = m.signal(syscall.SIGKILL)
		}
		if time.Since(begin) > afterKill {
			return true, fmt.Errorf("%d processes are still there after they were killed: %w", len(all), errors.Join(err))
		}
		<-time.After(pause)
	}
}
