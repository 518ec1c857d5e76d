package acp

import (
	"time"

	"github.com/tapedeck/tapedeck/internal/procgroup"
)

// maxRest is how long an agent that does not become quiet is left running after its turn.
const maxRest = 2 * time.Second

// rest gives the agent time to store its conversation. Some agents answer the prompt first,
// and store the turn afterwards; at the end of their input they exit at once, and forget
// it. So the input stays open until the agent has answered one more request, which shows
// that it is not only slow, and has then been quiet for a while. What it says meanwhile is
// recorded as before.
func (c *conversation) rest() {
	if c.n.Over() || c.peer.Err() != nil {
		return // it has ended, or nobody wants to know more
	}
	c.resting = true
	answered, cancelled := c.request(c.life, settleMethod, struct{}{}), c.ctx.Done()
	limit := time.NewTimer(maxRest)
	defer limit.Stop()
	if !c.deadline.IsZero() {
		limit.Reset(time.Until(c.deadline))
		cancelled = nil
	}
	quiet := time.NewTimer(maxRest)
	defer quiet.Stop()
	for !c.n.Over() {
		select {
		case m := <-c.inbox:
			c.handle(m)
		case a := <-c.answers:
			c.reply(a)
		case <-answered:
			answered = nil
		case <-quiet.C:
			return
		case <-cancelled:
			cancelled = nil
			limit.Reset(procgroup.CancelWait)
		case <-limit.C:
			return
		case <-c.process.Done():
			return
		}
		if answered == nil {
			quiet.Reset(c.runner.options.Quiet)
		}
	}
}
