package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// postLean is the poster that measures the servers. It has one thread, prebuilt requests
// and just enough HTTP/1.1 to check every answer, as wrk, oha and autocannon do. A client
// that needs as much processor time as the server would distort the result.
func postLean(address string, requests []request, length time.Duration) (lat []float64, failed int64, err error) {
	host := strings.TrimPrefix(address, "http://")
	poll, err := syscall.EpollCreate1(0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = syscall.Close(poll) }()
	conns := make([]*conn, len(requests))
	for i, r := range requests {
		fd, err := dial(host)
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = syscall.Close(fd) }()
		conns[i] = &conn{fd: fd, request: r.bytes(host)}
		event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLOUT | syscall.EPOLLRDHUP | edgeTriggered, Fd: int32(i)}
		if err := syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
			return nil, 0, err
		}
	}
	if err := loop(poll, conns, length); err != nil {
		return nil, 0, err
	}
	for _, c := range conns {
		lat, failed = append(lat, c.lat...), failed+c.failed
	}
	return lat, failed, nil
}

func (r *request) bytes(host string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", r.path, host, octets, len(r.body), r.body)
}

// A conn sends its request again when it has read the answer.
type conn struct {
	fd      int
	request []byte
	unsent  []byte // the rest of the request, which the kernel has not accepted yet
	answer  answer
	begun   time.Time
	lat     []float64
	failed  int64
}

const edgeTriggered = 1 << 31 // EPOLLET; the constant of package syscall is negative

// loop serves the connections until length is over and all answers have arrived.
func loop(poll int, conns []*conn, length time.Duration) error {
	begin := time.Now()
	for _, c := range conns {
		if err := c.send(); err != nil {
			return err
		}
	}
	buf, events := make([]byte, 64<<10), make([]syscall.EpollEvent, len(conns))
	for waiting := len(conns); waiting > 0; {
		n, err := syscall.EpollWait(poll, events, 10_000)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting: %w", err)
		}
		if n == 0 {
			return errors.New("no answer for ten seconds")
		}
		for _, e := range events[:n] {
			c := conns[e.Fd]
			done, err := c.serve(buf)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			if time.Since(begin) >= length {
				waiting--
			} else if err := c.send(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conn) send() error {
	c.begun, c.unsent = time.Now(), c.request
	return c.flush()
}

func (c *conn) flush() error {
	for len(c.unsent) > 0 {
		n, err := syscall.Write(c.fd, c.unsent)
		if err == syscall.EAGAIN {
			return nil
		}
		if err != nil {
			return fmt.Errorf("sending: %w", err)
		}
		c.unsent = c.unsent[n:]
	}
	return nil
}

// serve reads the available bytes and reports whether the answer is complete.
func (c *conn) serve(buf []byte) (bool, error) {
	if err := c.flush(); err != nil {
		return false, err
	}
	for done := false; !done; {
		n, err := syscall.Read(c.fd, buf)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("receiving: %w", err)
		case n == 0:
			return false, errors.New("the server closed a connection")
		}
		if done, err = c.answer.add(buf[:n]); err != nil {
			return false, err
		}
	}
	if s := c.answer.status; s < 200 || s > 299 {
		c.failed++
	} else {
		c.lat = append(c.lat, ms(time.Since(c.begun)))
	}
	c.answer.reset()
	return true, nil
}

func dial(host string) (int, error) {
	a, err := net.ResolveTCPAddr("tcp4", host)
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	to := &syscall.SockaddrInet4{Port: a.Port}
	copy(to.Addr[:], a.IP.To4())
	err = errors.Join(syscall.Connect(fd, to), syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), syscall.SetNonblock(fd, true))
	if err != nil {
		_ = syscall.Close(fd)
	}
	return fd, err
}
