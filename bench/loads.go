package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A result has the figures of one load on one server.
type result struct {
	rate     float64 // operations per second
	p50, p99 float64 // latency in milliseconds
	cores    float64 // processor cores that the server uses
	perUnit  float64 // memory of the server for each follower, in bytes
	cost     float64 // processor time of the server for an append, in microseconds
	load     float64 // processor time of the load generator for an append, in microseconds
	failed   int64   // requests or deliveries that failed
}

// A poster sends each request repeatedly on a connection of its own. It returns the
// latencies of successful requests, in milliseconds, and the number of failed ones.
type poster func(address string, requests []request, length time.Duration) (lat []float64, failed int64, err error)

// A request is an append to a stream.
type request struct {
	path string
	body []byte
}

// appends posts 256 bytes repeatedly on a number of connections. Each connection has a
// stream of its own.
func appends(p *process, by poster, connections int, length time.Duration) (result, error) {
	id := fmt.Sprintf("/v1/stream/a%d", time.Now().UnixNano())
	requests := make([]request, connections)
	for i := range requests {
		requests[i] = request{fmt.Sprint(id, "-", i), bytes.Repeat([]byte("x"), 256)}
		if err := sendAll(http.MethodPut, p.URL+requests[i].path, octets, nil); err != nil {
			return result{}, err
		}
	}
	used, own, begin := p.cpu(), cpu(), time.Now()
	lat, failed, err := by(p.URL, requests, length)
	if err != nil {
		return result{}, err
	}
	took := time.Since(begin).Seconds()
	used, n := p.cpu()-used, float64(len(lat))
	return result{
		rate: n / took, p50: quantile(lat, .5), p99: quantile(lat, .99), failed: failed,
		cores: used / took, cost: used / n * 1e6, load: (cpu() - own).Seconds() / n * 1e6,
	}, nil
}

const octets = "application/octet-stream"

// postWithClient is a poster with the client of the standard library, as a program that
// uses either server would have it.
func postWithClient(address string, requests []request, length time.Duration) ([]float64, int64, error) {
	lat := make([][]float64, len(requests))
	var failed atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i, r := range requests {
		wg.Go(func() {
			for time.Since(begin) < length {
				t := time.Now()
				if err := sendAll(http.MethodPost, address+r.path, octets, bytes.NewReader(r.body)); err != nil {
					failed.Add(1)
					continue
				}
				lat[i] = append(lat[i], ms(time.Since(t)))
			}
		})
	}
	wg.Wait()
	return slices.Concat(lat...), failed.Load(), nil
}

// A feed is what followers follow, and how an event is added that has the time when it was
// sent.
type feed struct {
	request func(ctx context.Context) (*http.Request, error) // the request of a follower
	send    func(at int64) error
	mark    string // stands before the time in an event
	end     byte   // stands behind it
}

// pad makes events larger.
var pad = strings.Repeat("x", 150)

// durableFeed returns a new stream of Durable Streams.
func durableFeed(p *process) (feed, error) {
	u := fmt.Sprintf("%s/v1/stream/f%d", p.URL, time.Now().UnixNano())
	return feed{
		request: func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodGet, u+"?offset=-1&live=sse", nil)
		},
		send: func(at int64) error {
			return sendAll(http.MethodPost, u, "application/json", strings.NewReader(fmt.Sprintf(`{"t":%d,"pad":"%s"}`, at, pad)))
		},
		mark: `{"t":`, end: ',',
	}, sendAll(http.MethodPut, u, "application/json", nil)
}

// fanOut has one writer and many SSE followers. rate is the number of appends per second.
// A latency begins before the append is sent and ends when a follower has the event.
func fanOut(ctx context.Context, p *process, to func(*process) (feed, error), followers, rate int, length time.Duration) (result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	memory := p.rss()
	g, err := follow(ctx, p, to, followers)
	if err != nil {
		return result{}, err
	}
	perUnit := (p.rss() - memory) / float64(followers)
	cpu, begin := p.cpu(), time.Now()
	sent, err := g.write(rate, length)
	if err != nil {
		return result{}, err
	}
	g.await(int64(sent * followers))
	took := time.Since(begin).Seconds()
	cores := (p.cpu() - cpu) / took
	stop()
	g.wg.Wait()
	all := slices.Concat(g.lat...)
	return result{
		rate: float64(len(all)) / took, p50: quantile(all, .5), p99: quantile(all, .99), cores: cores,
		perUnit: perUnit, failed: int64(sent*followers) - g.got.Load(),
	}, nil
}

// A group has the followers of a feed.
type group struct {
	feed
	wg    sync.WaitGroup
	ready atomic.Int64
	got   atomic.Int64
	lat   [][]float64
}

func follow(ctx context.Context, p *process, to func(*process) (feed, error), n int) (*group, error) {
	f, err := to(p)
	if err != nil {
		return nil, err
	}
	g := &group{feed: f, lat: make([][]float64, n)}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: -1}
	for i := range n {
		g.wg.Go(func() {
			req, err := f.request(ctx)
			if err != nil {
				return
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			g.read(i, resp.Body)
		})
	}
	for begin := time.Now(); g.ready.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 30*time.Second || ctx.Err() != nil {
			return nil, fmt.Errorf("only %d of %d followers are connected", g.ready.Load(), n)
		}
	}
	return g, nil
}

// read reads the events of a follower. Each event has the time when it was sent.
func (g *group) read(i int, r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 4096), 1<<20)
	first := true
	for sc.Scan() {
		if first {
			first = false
			g.ready.Add(1)
		}
		line := sc.Bytes()
		for {
			_, after, found := bytes.Cut(line, []byte(g.mark))
			if !found {
				break
			}
			line = after
			end := bytes.IndexByte(line, g.end)
			t, _ := strconv.ParseInt(string(line[:max(0, end)]), 10, 64)
			g.lat[i] = append(g.lat[i], float64(time.Now().UnixNano()-t)/1e6)
			g.got.Add(1)
		}
	}
}

func (g *group) write(rate int, length time.Duration) (int, error) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	sent := 0
	for begin := time.Now(); time.Since(begin) < length; sent++ {
		<-tick.C
		if err := g.send(time.Now().UnixNano()); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// await waits until n events have arrived, or until none has arrived for five seconds.
func (g *group) await(n int64) {
	last, at := g.got.Load(), time.Now()
	for g.got.Load() < n && time.Since(at) < 5*time.Second {
		time.Sleep(5 * time.Millisecond)
		if now := g.got.Load(); now != last {
			last, at = now, time.Now()
		}
	}
}

// catchUp reads a whole stream of events repeatedly.
func catchUp(p *process, events, connections int, length time.Duration) (result, error) {
	u := fmt.Sprintf("%s/v1/stream/c%d", p.URL, time.Now().UnixNano())
	if err := fill(u, events); err != nil {
		return result{}, err
	}
	lat := make([][]float64, connections)
	errs := make(chan error, connections)
	var wg sync.WaitGroup
	cpu, begin := p.cpu(), time.Now()
	for i := range connections {
		wg.Go(func() {
			for time.Since(begin) < length {
				t := time.Now()
				if err := readAll(u); err != nil {
					errs <- err
					return
				}
				lat[i] = append(lat[i], ms(time.Since(t)))
			}
		})
	}
	wg.Wait()
	took := time.Since(begin).Seconds()
	select {
	case err := <-errs:
		return result{}, err
	default:
	}
	all := slices.Concat(lat...)
	return result{rate: float64(len(all)) / took, p50: quantile(all, .5), p99: quantile(all, .99), cores: (p.cpu() - cpu) / took}, nil
}

func fill(u string, events int) error {
	if err := sendAll(http.MethodPut, u, "application/json", nil); err != nil {
		return err
	}
	for i := 0; i < events; i += 500 {
		var b strings.Builder
		for j := range 500 {
			b.WriteByte("[,"[min(j, 1)])
			fmt.Fprintf(&b, `{"i":%d,"pad":"%s"}`, i+j, pad)
		}
		b.WriteByte(']')
		if err := sendAll(http.MethodPost, u, "application/json", strings.NewReader(b.String())); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads a stream page by page until it is up to date.
func readAll(u string) error {
	for offset := "-1"; ; {
		resp, err := send(http.MethodGet, u+"?offset="+offset, "", nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.Header.Get("Stream-Up-To-Date") != "" {
			return err
		}
		offset = resp.Header.Get("Stream-Next-Offset")
	}
}

// idle connects followers, waits until the server is quiet, and measures their cost while
// no event arrives.
func idle(ctx context.Context, p *process, followers int, length time.Duration) (result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	memory := p.rss()
	g, err := follow(ctx, p, durableFeed, followers)
	if err != nil {
		return result{}, err
	}
	time.Sleep(15 * time.Second) // until the server is quiet
	perUnit := (p.rss() - memory) / float64(followers)
	cpu := p.cpu()
	time.Sleep(length)
	cores := (p.cpu() - cpu) / length.Seconds()
	stop()
	g.wg.Wait()
	return result{cores: cores, perUnit: perUnit}, nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[min(len(x)-1, int(float64(len(x))*q))]
}
