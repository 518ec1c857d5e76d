package client

import (
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Lease is the lease that the clients in other languages ask for. A program in Go asks for it
// with [tapedeck.Meta].LeaseMS in its RUN_STARTED, see [Client.KeepAlive].
const Lease = 15 * time.Second

// KeepAlive renews the lease of a run that this program writes. It returns nil when ctx ends,
// a [tapedeck.Conflict] when the run is not open any more, and every other refusal of the
// server. It waits for a server that is away. Call it in a goroutine of its own, after
// RUN_STARTED was appended:
//
//	begin := payload.RunStarted{ThreadID: "main", RunID: run}
//	begin.Metadata = tapedeck.Meta{LeaseMS: client.Lease.Milliseconds()}.In(nil)
//
// If the program dies, the server ends the run as interrupted when its lease is over, and the
// thread takes the next run.
func (c *Client) KeepAlive(ctx context.Context, session, run string) error {
	for attempt := 0; ctx.Err() == nil; {
		wait := Lease / 3
		done, err := c.renewOnce(ctx, session, run)
		switch {
		case err == nil:
			attempt = 0
			wait = min(wait, time.Duration(done.LeaseMS)*time.Millisecond/3)
		case passing(err):
			attempt++
			wait = min(wait, backOff(attempt))
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return nil
}

// renewOnce renews a lease. A server that hangs is asked again.
func (c *Client) renewOnce(ctx context.Context, session, run string) (api.Renewed, error) {
	ctx, cancel := context.WithTimeout(ctx, Lease/3)
	defer cancel()
	done, err := c.Renew(ctx, api.Renewal{Session: session, Invocation: run})
	if ctx.Err() != nil {
		err = tapedeck.Errorf(tapedeck.Unavailable, "the server did not answer in time").Because(err)
	}
	return done, err
}
