package procgroup

import "time"

// A Ladder says how long a program gets at each step of its end before the next
// follows. The zero value skips every wait.
type Ladder struct {
	Soft func()        // asks the program to stop, in its own words; nil for nothing
	Wait time.Duration // for what Soft asks
	EOF  time.Duration // after the end of its input
	Term time.Duration // after SIGTERM to all of its processes; then comes SIGKILL
}

// Stop ends the program with all that it has started, and returns when nobody of
// it is left, or when nothing can be done about those who are. It is safe to call
// it more than once: the ladder of the first call counts, and all wait for it.
//
// All steps are skipped that find nobody left.
func (p *Process) Stop(l Ladder) {
	p.stopping.Do(func() {
		p.descend(l)
		closeAll(p.pipes) // a process that could not be killed may hold the other ends
		<-p.heard
		close(p.stopped)
	})
	<-p.stopped
}

func (p *Process) descend(l Ladder) {
	if l.Soft != nil && !p.left(0) {
		l.Soft()
		if p.left(l.Wait) {
			return
		}
	}
	if p.Stdin != nil {
		_ = p.Stdin.Close()
	}
	if p.ended(l.EOF) {
		l.Term = min(l.Term, TermWait) // the rest only keeps others waiting
	}
	if p.left(0) {
		return
	}
	p.terminate()
	if p.left(l.Term) {
		return
	}
	p.kill()
	p.left(afterKill)
}

// afterKill is how long the system gets to clear away processes that were killed:
// one in the middle of a disk operation does not go at once.
const afterKill = 10 * time.Second

// left waits until nobody of the program is left.
func (p *Process) left(within time.Duration) bool { return await(p.gone, within) }

// ended waits for the end of the program itself.
func (p *Process) ended(within time.Duration) bool { return await(p.done, within) }

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
