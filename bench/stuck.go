package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// A stuck reader takes so little of its answer: the system's buffers are small,
// and it reads one byte.
const stuckBuffer = 4 << 10

// stuck connects readers that ask for a stream of many events and read nothing,
// and measures what each costs the server. They are measured before the server
// would give them up.
func stuck(ctx context.Context, p *process, readers int) (float64, error) {
	u := fmt.Sprintf("/v1/stream/k%d", time.Now().UnixNano())
	if err := fill(p.URL+u, 10_000); err != nil {
		return 0, err
	}
	time.Sleep(15 * time.Second) // until what was written costs nothing more
	memory := p.rss()
	for range readers {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.Close() }()
		_ = c.(*net.TCPConn).SetReadBuffer(stuckBuffer)
		if _, err := fmt.Fprintf(c, "GET %s?offset=-1&live=sse HTTP/1.1\r\nHost: localhost\r\n\r\n", u); err != nil {
			return 0, err
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return 0, err
		}
	}
	time.Sleep(15 * time.Second) // until they are settled
	return (p.rss() - memory) / float64(readers), nil
}

func measureStuck(ctx context.Context, o options, r *report) error {
	const name = "300 stuck followers, server memory per follower"
	if !r.wants(name) {
		return nil
	}
	p, err := ours(ctx, o.bin)
	if err != nil {
		return err
	}
	defer p.stop()
	each, err := stuck(ctx, p, 300)
	if err != nil {
		return err
	}
	r.alone(name, fmt.Sprintf("%.1f KB", each/1024), "≤ 64", each <= 64*1024)
	return nil
}
