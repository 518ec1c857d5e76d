package procgroup

import (
	"os/exec"
	"strconv"
	"syscall"
)

// Windows has no keeper: the program begins at once. taskkill ends the tree of
// processes, but not a process whose parent has ended.

type platform struct{ cmd *exec.Cmd }

func (p *Process) launch(cmd *exec.Cmd) error {
	cmd.Path, cmd.Args, cmd.Env = p.job.Path, p.job.Args, p.job.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	go func() {
		_ = cmd.Wait() // the result is in the ProcessState
		p.exit = exit{cmd.ProcessState.String(), cmd.ProcessState.Success()}
		close(p.done)
		close(p.gone) // Windows does not tell which other processes are left
	}()
	return nil
}

// PID returns the id of the program.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Release does nothing, because the program has already begun.
func (p *Process) Release() error { return nil }

// Interrupt terminates the program, because Windows cannot send SIGINT to another
// process.
func (p *Process) Interrupt() { p.terminate() }

func (p *Process) terminate() {
	_ = exec.Command("taskkill", "/T", "/PID", strconv.Itoa(p.PID())).Run()
}

func (p *Process) kill() {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.PID())).Run()
}
