package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// stuckBuffer is the size of a stuck reader's receive buffer, in bytes. The reader reads
// only one byte.
const stuckBuffer = 4 << 10

// stuck connects readers that request a stream of many events and do not read it. It
// returns the memory of the server for each reader. It measures before the server would
// close the connections.
func stuck(ctx context.Context, p *process, readers int) (float64, error) {
	u := fmt.Sprintf("/v1/stream/k%d", time.Now().UnixNano())
	if err := fill(p.URL+u, 10_000); err != nil {
		return 0, err
	}
	time.Sleep(15 * time.Second) // until the server is quiet after the appends
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
	time.Sleep(15 * time.Second) // until the server is quiet
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
