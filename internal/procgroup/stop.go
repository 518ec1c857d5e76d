package procgroup

import "time"

// A Ladder gives the time limit of each step of stopping a program. If the program is
// still there after the limit, the next step follows. The zero value skips every wait.
type Ladder struct {
	Soft func()        // asks the program to stop by a message of its own protocol; nil to skip this step
	Wait time.Duration // time limit after Soft
	EOF  time.Duration // time limit after the end of its input
	Term time.Duration // time limit after SIGTERM to all of its processes; then SIGKILL follows
}

// Stop ends the program with all processes that it started. It returns when all of them
// have ended, or ten seconds after SIGKILL. It can be called several times, also
// concurrently: the ladder of the first call counts, and every call waits for the
// end.
//
// When no process is left, the remaining steps are skipped.
func (p *Process) Stop(l Ladder) {
	p.stopping.Do(func() {
		p.descend(l)
		closeAll(p.pipes) // ends our reads even if a process that could not be killed has the other ends open
		<-p.stderrEnded
		close(p.stopped)
	})
	<-p.stopped
}

func (p *Process) descend(l Ladder) {
	if l.Soft != nil && !p.allEnded(0) {
		l.Soft()
		if p.allEnded(l.Wait) {
			return
		}
	}
	if p.Stdin != nil {
		_ = p.Stdin.Close()
	}
	if p.programEnded(l.EOF) {
		l.Term = min(l.Term, TermWait) // only children are left, and they do no work for the run
	}
	if p.allEnded(0) {
		return
	}
	p.terminate()
	if p.allEnded(l.Term) {
		return
	}
	p.kill()
	p.allEnded(afterKill)
}

// afterKill is how long the system gets to remove processes that were killed. A process
// in the middle of a disk operation does not end at once.
const afterKill = 10 * time.Second

// allEnded waits until no process of the program is left, and reports whether that
// happened within the limit.
func (p *Process) allEnded(within time.Duration) bool { return await(p.gone, within) }

// programEnded does the same for the program itself.
func (p *Process) programEnded(within time.Duration) bool { return await(p.done, within) }

func await(c <-chan struct{}, within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-c:
		return true
	default:
	}
	select {
	case <-c:
		return true
	case <-limit.C:
		return false
	}
}
