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
	"syscall"
)

// A side is what we hold of a keeper.
type side struct {
	keeper   *exec.Cmd
	control  *os.File   // to the keeper: the job, then orders
	released bool       // the job was sent
	began    chan error // what became of the release; one element
}

// launch starts the keeper, with the pipes of the program.
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
	// The keeper can be read by the agent: it knows nothing of ours.
	cmd.Env = []string{Mark + "=" + p.mark, "GOMAXPROCS=1", "GOTRACEBACK=none"}
	cmd.ExtraFiles = []*os.File{theirs, report}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for us
	err = cmd.Start()
	closeAll(cmd.ExtraFiles)
	if err != nil {
		closeAll([]*os.File{control, status})
		return err
	}
	p.side = side{keeper: cmd, control: control, began: make(chan error, 1)}
	p.pipes = append(p.pipes, control)
	go p.attend(status)
	return nil
}

// PID returns the id of the keeper.
func (p *Process) PID() int { return p.keeper.Process.Pid }

// Release lets the program begin. It is called once.
func (p *Process) Release() error {
	b, err := json.Marshal(p.job)
	if err != nil {
		return err
	}
	p.released = true
	if _, err := p.control.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("its keeper is gone: %w", err)
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
		return errors.New("its keeper is gone")
	}
}

// attend listens to the keeper until that is gone.
func (p *Process) attend(status *os.File) {
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
		}
	}
	err := p.keeper.Wait()
	if err != nil { // somebody has killed it, so nobody has looked after the others
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

func (p *Process) order(b byte) { _, _ = p.control.Write([]byte{b}) } // a keeper that is gone has done it

// Interrupt sends SIGINT to the group of the program, as Ctrl-C in a terminal
// does.
func (p *Process) Interrupt() { p.order(orderInterrupt) }

func (p *Process) terminate() {
	if p.released { // else there is nobody but the keeper, which waits for the job
		p.order(orderTerminate)
	}
}

// kill lets go of the keeper, which then kills everybody and ends.
func (p *Process) kill() { _ = p.control.Close() }

var _ io.Writer = (*os.File)(nil)
