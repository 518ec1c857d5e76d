//go:build unix

package procgroup

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A platform is the server's side of a keeper.
type platform struct {
	keeper   *exec.Cmd
	control  *os.File   // carries the job to the keeper, then orders
	released bool       // whether the job was sent
	began    chan error // the result of the release; buffered
}

// launch starts the keeper. cmd has the pipes of the program.
func (p *Process) launch(cmd *exec.Cmd) error {
	theirs, control, err := os.Pipe()
	if err != nil {
		return err
	}
	status, report, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{theirs, control})
		return err
	}
	cmd.Path, cmd.Args = self()
	// An agent can read the environment of its keeper, so the keeper gets none of ours.
	cmd.Env = []string{Mark + "=" + p.mark, "GOMAXPROCS=1", "GOTRACEBACK=none"}
	cmd.ExtraFiles = []*os.File{theirs, report}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so Ctrl-C in a terminal reaches only the server
	err = cmd.Start()
	closeAll(cmd.ExtraFiles)
	if err != nil {
		closeAll([]*os.File{control, status})
		return err
	}
	p.platform = platform{keeper: cmd, control: control, began: make(chan error, 1)}
	p.pipes = append(p.pipes, control)
	go p.readReports(status)
	return nil
}

// PID returns the id of the keeper.
func (p *Process) PID() int { return p.keeper.Process.Pid }

// Release lets the program begin, and waits until it has begun or failed. Call it once.
func (p *Process) Release() error {
	b, err := json.Marshal(p.job)
	if err != nil {
		return err
	}
	p.released = true
	if _, err := p.control.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("the keeper process has ended: %w", err)
	}
	select {
	case err := <-p.began:
		return err
	case <-p.gone:
	}
	select {
	case err := <-p.began:
		return err
	default:
		return errors.New("the keeper process has ended")
	}
}

// readReports reads the messages of the keeper until it has ended.
func (p *Process) readReports(status *os.File) {
	defer status.Close()
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		var n uint32
		switch word := lines.Text(); {
		case word == saysBegun:
			p.began <- nil
		case scan(word, saysFailed, &n):
			p.began <- syscall.Errno(n)
		case scan(word, saysEnded, &n):
			p.finish(syscall.WaitStatus(n))
		case strings.HasPrefix(word, saysExceededPrefix):
			p.breach.set(strings.TrimPrefix(word, saysExceededPrefix))
		}
	}
	err := p.keeper.Wait()
	if err != nil { // the keeper was killed, so its processes may still run
		_, _ = killMarked(p.mark)
	}
	select {
	case <-p.done:
	default:
		p.exit.text = p.keeper.ProcessState.String()
		close(p.done)
	}
	close(p.gone)
}

func scan(word, format string, n *uint32) bool {
	_, err := fmt.Sscanf(word, format, n)
	return err == nil
}

func (p *Process) finish(w syscall.WaitStatus) {
	p.exit = exit{text: fmt.Sprintf("exit status %d", w.ExitStatus()), success: w.ExitStatus() == 0}
	if w.Signaled() {
		p.exit.text = "signal: " + w.Signal().String()
		if w.CoreDump() {
			p.exit.text += " (core dumped)"
		}
	}
	close(p.done)
}

func (p *Process) order(b byte) { _, _ = p.control.Write([]byte{b}) } // a keeper that has ended has killed all processes

// Interrupt sends SIGINT to the process group of the program, as Ctrl-C in a terminal
// does.
func (p *Process) Interrupt() { p.order(orderInterrupt) }

func (p *Process) terminate() {
	if p.released { // otherwise there is only the keeper, which waits for the job
		p.order(orderTerminate)
	}
}

// kill closes the control pipe. The keeper then kills all processes and ends.
func (p *Process) kill() { _ = p.control.Close() }

var _ io.Writer = (*os.File)(nil)
