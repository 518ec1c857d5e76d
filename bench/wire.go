package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A conn is an HTTP/1.1 connection that costs the load generator as little as
// possible: it shares the machine with the server that it measures.
type conn struct {
	net.Conn
	r    *bufio.Reader
	host string
}

func dial(base string) (*conn, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10), host: u.Host}, nil
}

// request encodes a request once, to be sent many times.
func (c *conn) request(method, path, contentType string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", method, path, c.host, len(body))
	if contentType != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", contentType)
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// do sends an encoded request and returns the status.
func (c *conn) do(req []byte) (int, error) {
	if _, err := c.Write(req); err != nil {
		return 0, err
	}
	return c.response()
}

func (c *conn) response() (int, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil || len(line) < 12 {
		return 0, fmt.Errorf("bad response %q: %w", line, err)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length, chunked := 0, false
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		}
	}
	if chunked {
		return status, c.skipChunks()
	}
	_, err = c.r.Discard(length)
	return status, err
}

func (c *conn) skipChunks() error {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return err
		}
		if _, err := c.r.Discard(int(n) + 2); err != nil || n == 0 {
			return err
		}
	}
}

var plain = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, Timeout: time.Minute}

// send sends one request of the set-up.
func send(method, u, contentType string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequest(method, u, body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := plain.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s %s", method, u, resp.Status, strings.TrimSpace(string(text)))
	}
	return resp, nil
}

// sendAll sends one request of the set-up and drops the answer.
func sendAll(method, u, contentType string, body io.Reader) error {
	resp, err := send(method, u, contentType, body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}
