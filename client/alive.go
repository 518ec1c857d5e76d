package client

import (
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// Lease is how long the program of a run may be silent, if it says so in its RUN_STARTED with
// [tapedeck.Meta].LeaseMS, as the clients in other languages do.
const Lease = 15 * time.Second

// KeepAlive renews the lease of a run that this program writes, whatever else it sends, until
// ctx ends; then it returns nil. Before that it returns when the run is not open any more, with
// a [tapedeck.Conflict], or when the server refuses for another reason. It waits for a server
// that is away. Call it in a goroutine of its own after RUN_STARTED was appended:
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
