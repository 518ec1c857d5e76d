//go:build unix

package procgroup

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperName is the only argument of this binary when it is executed as a keeper.
const keeperName = "tapedeck-keeper"

// These are the messages of a keeper to the server, and the orders of the server
// after the job.
const (
	saysBegun  = "begun"
	saysFailed = "failed %d" // with an errno
	saysEnded  = "ended %d"  // with the wait status of the program

	saysExceeded       = saysExceededPrefix + "%s" // with what it exceeded
	saysExceededPrefix = "exceeded "

	orderInterrupt = 'i'
	orderTerminate = 't'
)

// These are the file descriptors of a keeper, besides the three that it hands to the
// program.
const (
	controlFile = 3
	reportFile  = 4
)

// init turns the process into a keeper if it was executed as one. So every program that
// uses this package can be its own keeper, tests included: a keeper never reaches
// main. The goroutine of init stays on the first thread of the process. The signal on
// the death of a parent requires that, because it is sent when the thread ends.
func init() {
	if len(os.Args) == 1 && os.Args[0] == keeperName {
		keep()
		syscall.Exit(0) // not os.Exit, because the race detector would delay it
	}
}

// A keeper is the state of the keeper process.
type keeper struct {
	control *bufio.Reader
	report  *os.File
	program int         // the process id of the program
	apart   bool        // see [Spec.Apart]
	sandbox int         // a handle of the program if it is apart; 0 for none
	killing atomic.Bool // killAll has begun
}

func keep() {
	syscall.CloseOnExec(controlFile)
	syscall.CloseOnExec(reportFile)
	k := &keeper{control: bufio.NewReader(os.NewFile(controlFile, "control")), report: os.NewFile(reportFile, "report")}
	adopt()
	// The keeper must survive these signals and wait for orders. It catches them
	// because the program would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	line, err := k.control.ReadBytes('\n')
	var j job
	if err != nil || json.Unmarshal(line, &j) != nil {
		return // the server has ended before the release
	}
	if err := k.begin(j); err != nil {
		errno, _ := err.(syscall.Errno) //nolint:errorlint // ForkExec returns it unwrapped
		fmt.Fprintf(k.report, saysFailed+"\n", uint32(errno))
		return
	}
	fmt.Fprintln(k.report, saysBegun)
	go k.obey()
	go k.watch(j.Limits)
	k.reap()
}

// begin executes the program. It then replaces the keeper's own input and outputs, so
// that the pipes end when the program and its children close them.
func (k *keeper) begin(j job) (err error) {
	k.apart = j.Apart
	k.program, err = syscall.ForkExec(j.Path, j.Args, &syscall.ProcAttr{Env: j.Env, Files: []uintptr{0, 1, 2}, Sys: programAttr(j.Apart)})
	if err != nil {
		return err
	}
	k.hold()
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range 3 {
		if err == nil {
			err = dup(null, fd)
		}
		if err != nil {
			_ = syscall.Close(fd)
		}
	}
	return nil
}

// obey executes the orders of the server. When the server has ended, it kills all
// processes.
func (k *keeper) obey() {
	for {
		order, err := k.control.ReadByte()
		switch {
		case err != nil:
			k.killAll()
			return
		case order == orderInterrupt:
			k.signal(syscall.SIGINT, true)
		case order == orderTerminate:
			k.signal(syscall.SIGTERM, false)
		}
	}
}

// reap waits for processes that have ended, until no process is left. It reports the
// end of the program.
func (k *keeper) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR: // syscall returns it unwrapped
		case err != nil: // there are no more
			k.awaitGroup()
			return
		case pid == k.program:
			fmt.Fprintf(k.report, saysEnded+"\n", uint32(status))
			go k.windDown()
		}
	}
}

// Time limits for the remaining processes when the program has ended.
const (
	orphanWait = 300 * time.Millisecond // to end by themselves
	orphanTerm = 500 * time.Millisecond // after SIGTERM
)

// windDown ends the processes that the program has left. The keeper itself ends after
// [keeper.reap].
func (k *keeper) windDown() {
	<-time.After(orphanWait)
	k.signal(syscall.SIGTERM, false)
	<-time.After(orphanTerm)
	k.killAll()
}

// killAll sends SIGKILL again and again, because a process may start another one before
// it dies. It runs until the keeper ends after [keeper.reap].
func (k *keeper) killAll() {
	if k.killing.Swap(true) {
		return
	}
	k.killSandbox()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		k.signal(syscall.SIGKILL, false)
		<-time.After(pause)
	}
}

var _ io.Reader = (*bufio.Reader)(nil)
