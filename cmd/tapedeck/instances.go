package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
)

// contextOf returns a context. If the instance is not there, the hint has those that are.
func (c *connection) contextOf(ctx context.Context, session string, o client.ContextOptions) (api.Context, error) {
	v, err := c.Context(ctx, session, o)
	if o.Instance == "" || tapedeck.KindOf(err) != tapedeck.NotFound {
		return v, err
	}
	if _, gone := c.Session(ctx, session); gone != nil {
		return v, err
	}
	return v, tapedeck.Errorf(tapedeck.NotFound, "session %s has no instance %s", session, o.Instance).
		WithHint("%s", c.instancesHint(ctx, session)).Because(err)
}

// noContext returns the error for a context without events.
func (c *connection) noContext(ctx context.Context, session string, v *api.Context) error {
	if v.Instance != "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the context of instance %s is empty", v.Instance)
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there is no context in the thread %s of session %s", v.Thread, session).
		WithHint("%s", c.instancesHint(ctx, session))
}

// maxInstances is the number of instances that a hint names.
const maxInstances = 5

// instancesHint names the instances of a session. It is empty if there are none.
func (c *connection) instancesHint(ctx context.Context, session string) string {
	all, err := c.Instances(ctx, session, -1)
	if err != nil { // the error to which the hint belongs matters more
		return ""
	}
	var names []string
	for _, i := range all.Instances {
		if len(names) == maxInstances {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%s (%s, thread %s)", i.ID, cmp.Or(i.Name, "no agent"), i.Thread))
	}
	if len(names) == 0 {
		return ""
	}
	return "choose one with --instance: " + strings.Join(names, ", ")
}
