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

// keeperName is the name under which this binary is executed as a keeper.
const keeperName = "tapedeck-keeper"

// What a keeper says, and what it is told after its job.
const (
	saysBegun  = "begun"
	saysFailed = "failed %d" // an errno
	saysEnded  = "ended %d"  // the wait status of the program

	orderInterrupt = 'i'
	orderTerminate = 't'
)

// The files of a keeper beside the three that it hands to the program.
const (
	controlFile = 3
	reportFile  = 4
)

// Any program that uses this package can be its own keeper, tests too: a keeper
// never comes as far as main. The goroutine of init stays on the first thread of
// the process, as the signal on the death of a parent demands.
func init() {
	if len(os.Args) == 1 && os.Args[0] == keeperName {
		keep()
		syscall.Exit(0) // not os.Exit: the race detector would make that wait
	}
}

// A keeper stands between us and a program.
type keeper struct {
	control *bufio.Reader
	report  *os.File
	front   int         // the program
	killing atomic.Bool // all are being killed
}

func keep() {
	syscall.CloseOnExec(controlFile)
	syscall.CloseOnExec(reportFile)
	k := &keeper{control: bufio.NewReader(os.NewFile(controlFile, "control")), report: os.NewFile(reportFile, "report")}
	adopt()
	// The keeper outlives the signals that end others: it is told what to do. They
	// are caught, for what is ignored the program would ignore, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	line, err := k.control.ReadBytes('\n')
	var j job
	if err != nil || json.Unmarshal(line, &j) != nil {
		return // it was not released
	}
	if err := k.begin(j); err != nil {
		errno, _ := err.(syscall.Errno) //nolint:errorlint // it is what ForkExec returns
		fmt.Fprintf(k.report, saysFailed+"\n", uint32(errno))
		return
	}
	fmt.Fprintln(k.report, saysBegun)
	go k.obey()
	k.reap()
}

// begin executes the program, and gives up its input and outputs, so that they
// end with those who use them.
func (k *keeper) begin(j job) (err error) {
	k.front, err = syscall.ForkExec(j.Path, j.Args, &syscall.ProcAttr{Env: j.Env, Files: []uintptr{0, 1, 2}, Sys: frontAttr()})
	if err != nil {
		return err
	}
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

// obey does what it is told. When we are gone it kills everybody.
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

// reap fetches the dead until nobody is left.
func (k *keeper) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR: // system calls return it as it is
		case err != nil: // there are no more
			k.awaitGroup()
			return
		case pid == k.front:
			fmt.Fprintf(k.report, saysEnded+"\n", uint32(status))
			go k.windDown()
		}
	}
}

// What the others get when the program has ended.
const (
	orphanWait = 300 * time.Millisecond // to end by themselves
	orphanTerm = 500 * time.Millisecond // after SIGTERM
)

// windDown ends what the program has left. The process ends in [keeper.reap].
func (k *keeper) windDown() {
	<-time.After(orphanWait)
	k.signal(syscall.SIGTERM, false)
	<-time.After(orphanTerm)
	k.killAll()
}

// killAll kills until the process ends in [keeper.reap]: a process may start
// another before it dies.
func (k *keeper) killAll() {
	if k.killing.Swap(true) {
		return
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		k.signal(syscall.SIGKILL, false)
		<-time.After(pause)
	}
}

var _ io.Reader = (*bufio.Reader)(nil)
