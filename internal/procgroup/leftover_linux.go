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

	"github.com/tapedeck/tapedeck/payload"
)

// killLeftover kills the processes below the keeper, and all processes with its mark.
// It lets the keeper end by itself, which happens when no process is left below it:
// only the keeper knows that for certain. A list of processes can miss one that has
// just begun, and without the keeper that process would not be found again.
func killLeftover(d payload.AgentStarted) (found bool, err error) {
	keeper := member{pid: d.PID, started: d.Started}
	begin := time.Now()
	for pause := time.Millisecond; startOf(d.PID) == d.Started; pause = min(2*pause, 50*time.Millisecond) {
		found = true
		_ = keeper.signal(syscall.SIGCONT) // a stopped keeper cannot end
		for _, m := range below(d.PID) {
			err = m.signal(syscall.SIGKILL)
		}
		if time.Since(begin) > keeperPatience {
			err = keeper.signal(syscall.SIGKILL)
		}
		if time.Since(begin) > afterKill {
			return true, errors.Join(fmt.Errorf("process %d is still there after it was killed", d.PID), err)
		}
		<-time.After(pause)
	}
	marked, err := killMarked(d.Mark)
	return found || marked, err
}

// keeperPatience is how long a keeper without a server gets to end by itself.
const keeperPatience = 5 * time.Second

// killMarked kills all processes that have a mark in their environment.
func killMarked(mark string) (bool, error) {
	if mark == "" {
		return false, nil
	}
	want := []byte("\x00" + Mark + "=" + mark + "\x00")
	return killUntil(func() []member {
		return slices.DeleteFunc(livingProcesses(), func(m member) bool {
			env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(m.pid), "environ"))
			return err != nil || m.pid == os.Getpid() || !bytes.Contains(slices.Concat([]byte{0}, env), want)
		})
	})
}

// killUntil kills the processes that find returns, until find returns no more. It
// reports whether there were any.
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
			return true, errors.Join(fmt.Errorf("%d processes are still there after they were killed", len(all)), err)
		}
		<-time.After(pause)
	}
}
