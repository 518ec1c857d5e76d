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

// killLeftover kills those below the keeper, and those who have its mark. The
// keeper is left to end by itself, which it does when nobody is below it: only it
// knows for certain. A list of processes may miss one that has just begun, and
// with the keeper killed that one would be lost.
func killLeftover(d payload.AgentStarted) (found bool, err error) {
	keeper := member{pid: d.PID, started: d.Started}
	begin := time.Now()
	for pause := time.Millisecond; startOf(d.PID) == d.Started; pause = min(2*pause, 50*time.Millisecond) {
		found = true
		_ = keeper.signal(syscall.SIGCONT) // somebody may have stopped it
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

// keeperPatience is how long a keeper gets to end whose server is gone.
const keeperPatience = 5 * time.Second

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
			return true, errors.Join(fmt.Errorf("%d processes are still there after they were killed", len(all)), err)
		}
		<-time.After(pause)
	}
}
