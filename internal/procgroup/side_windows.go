package procgroup

import (
	"os/exec"
	"strconv"
	"syscall"
)

// Windows has no keeper: the program begins at once, and taskkill follows the
// tree as far as it is still connected.

type side struct{ cmd *exec.Cmd }

func (p *Process) launch(cmd *exec.Cmd) error {
	cmd.Path, cmd.Args, cmd.Env = p.job.Path, p.job.Args, p.job.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	go func() {
		_ = cmd.Wait() // how it ended is in the ProcessState
		p.exit = exit{cmd.ProcessState.String(), cmd.ProcessState.Success()}
		close(p.done)
		close(p.gone) // who else is left is not told
	}()
	return nil
}

// PID returns the id of the program.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Release does nothing: the program has begun.
func (p *Process) Release() error { return nil }

// Interrupt does what can be done: there is no SIGINT for another process.
func (p *Process) Interrupt() { p.terminate() }

func (p *Process) terminate() {
	_ = exec.Command("taskkill", "/T", "/PID", strconv.Itoa(p.PID())).Run()
}

func (p *Process) kill() {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.PID())).Run()
}
