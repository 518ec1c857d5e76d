package deck

import (
	"context"
	"time"
)

const (
	// handoverTime is how long a server that stops waits for the next owner, to forward to it
	// what has come meanwhile.
	handoverTime = 5 * time.Second

	// answerTime is how long it waits for the answers to requests that it has forwarded.
	answerTime = 5 * time.Second
)

// Close ends this server. If it owns the database, its runs stop, each with its terminal
// event, it gives the lease back, and the next owner takes over at once. With Standby,
// requests that come meanwhile wait and are forwarded to that one.
func (m *Member) Close(ctx context.Context) (err error) {
	m.closing.Do(func() { err = m.close(ctx) })
	return err
}

func (m *Member) close(ctx context.Context) (err error) {
	m.node.Stop()
	m.stop()
	<-m.ended
	if d := m.Deck(); d != nil {
		err = m.handOver(ctx, d)
	}
	m.node.CutStreams()
	m.shutdown(ctx)
	m.node.Close()
	m.unwatch()
	m.watched.Wait()
	m.watcher.Close()
	m.options.Lock.Release()
	return err
}

// handOver closes the deck of an owner, and waits for the next one if there is one.
func (m *Member) handOver(ctx context.Context, d *Deck) (err error) {
	if !m.options.Postgres.Standby {
		d.closing.Do(func() {
			err = d.close(ctx, func() {}, func(ctx context.Context) error { m.shutdown(ctx); return nil })
		})
		return err
	}
	m.node.Yield()
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	select {
	case m.lookNow <- struct{}{}:
	default:
	}
	d.closing.Do(func() { err = d.close(ctx, m.node.NoOwner, m.node.Idle) })
	m.disown()
	if m.others.Load() == 0 {
		return err
	}
	timer := time.NewTimer(handoverTime)
	defer timer.Stop()
	select {
	case <-m.followed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return err
}

// shutdown ends the server when its requests are answered.
func (m *Member) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if m.http.Shutdown(ctx) != nil {
		_ = m.http.Close()
	}
}
