package crash

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/pgtest"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// proxied starts HAProxy with the configuration of the documentation, in front of two
// ports, and returns its URL.
func proxied(t *testing.T, ports []string) string {
	t.Helper()
	bin, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("haproxy is not installed")
	}
	config, err := os.ReadFile("../../docs/operate/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	front := freePort(t)
	text := strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:"+front, "127.0.0.1:4747", "127.0.0.1:"+ports[0], "127.0.0.1:4748", "127.0.0.1:"+ports[1]).Replace(string(config))
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c := exec.Command(bin, "-db", "-f", file)
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return "http://127.0.0.1:" + front
}

// freePort returns a port that nobody uses. Somebody else may take it meanwhile; then the
// program that wants it says so.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// inCluster returns the arguments of a server that is one of several of a database.
func inCluster(url, port string) []string {
	return []string{"--postgres", url, "--postgres-lease", "2s", "--standby", "--listen", "127.0.0.1:" + port}
}

// TestProxy stops and kills two servers behind a proxy, in turn, always the one that owns the
// database, while a client appends and another one follows, both through the proxy.
// Everything that was acknowledged is in the session once, and the follower gets every event,
// in order. While servers are stopped, no request fails twice.
func TestProxy(t *testing.T) {
	c := pgtest.New(t, "fsync=on")
	ports := []string{freePort(t), freePort(t)}
	var data [2]string
	var servers [2]*testserver.Server
	start := func(i int) {
		servers[i] = testserver.Start(t, data[i], inCluster(c.URL("postgres"), ports[i])...)
	}
	for i := range servers {
		data[i] = t.TempDir() + "/data"
		start(i)
	}
	cl := clientOf(t, proxied(t, ports))
	w := &steadyWriter{client: cl}
	w.patiently(t, t.Context(), func() error {
		_, err := cl.Create(t.Context(), api.NewSession{ID: "a"})
		return err
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	followed := make(chan int64, 1)
	go func() { followed <- follow(t, ctx, cl, w) }()
	const turns = 6
	for turn := range turns {
		w.run(t, ctx, 20)
		done := make(chan struct{})
		writing := make(chan struct{})
		go func() { // through the take-over
			defer close(writing)
			for w.run(t, ctx, 20); ctx.Err() == nil; w.run(t, ctx, 1) {
				select {
				case <-done:
					return
				default:
				}
			}
		}()
		w.worst.Store(0)
		owner := servers[turn%2]
		if turn%3 == 2 {
			owner.Kill()
		} else if code := owner.End(t, syscall.SIGTERM); code != 0 {
			t.Errorf("the server ended with %d\n%s", code, owner.Log())
		}
		start(turn % 2)
		close(done)
		<-writing
		if worst := w.worst.Load(); turn%3 != 2 && worst > 1 {
			t.Errorf("a request failed %d times while a server was stopped and started", worst)
		}
	}
	w.last.Store(w.acked + 20)
	w.run(t, ctx, 20)
	if got := <-followed; got != w.acked {
		t.Errorf("the follower got %d of %d appends", got, w.acked)
	}
	head, err := cl.Session(t.Context(), "a")
	if err != nil || head.Head != w.acked+1 { // and session.created
		t.Errorf("the session is at %d, and %d appends were acknowledged (%v)", head.Head, w.acked, err)
	}
	t.Logf("%d appends and %d take-overs; %d requests were sent again", w.acked, turns, w.again)
}

// A steadyWriter appends one event after the other, with a producer, and sends each again
// until it is acknowledged.
type steadyWriter struct {
	client *client.Client
	acked  int64
	again  int
	worst  atomic.Int64 // how often one request failed
	last   atomic.Int64 // the number of all appends, once it is known
}

func (w *steadyWriter) run(t *testing.T, ctx context.Context, n int) {
	for range n {
		var done tapedeck.Appended
		body := fmt.Sprintf(`{"type":"test.note","data":{"value":%d}}`, w.acked)
		w.patiently(t, ctx, func() (err error) {
			done, err = w.client.Append(ctx, "a", strings.NewReader(body), client.AppendOptions{Producer: &tapedeck.Producer{ID: "w", Seq: w.acked}})
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if w.acked++; done.Head != w.acked+1 {
			t.Errorf("after append %d the head is %d", w.acked, done.Head)
		}
	}
}

// patiently calls f until it succeeds, ten times a second, as long as no server can be
// reached. Another error ends the test.
func (w *steadyWriter) patiently(t *testing.T, ctx context.Context, f func() error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for failed := int64(1); ; failed++ {
		err := f()
		if err == nil {
			return
		}
		if kind := tapedeck.KindOf(err); kind != tapedeck.Unavailable && kind != tapedeck.Internal && ctx.Err() == nil {
			t.Errorf("it is refused: %v", err)
			return
		}
		w.again++
		w.worst.Store(max(w.worst.Load(), failed))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// follow returns how many appends a follower gets, up to the last one of a writer.
func follow(t *testing.T, ctx context.Context, c *client.Client, w *steadyWriter) (n int64) {
	for r, err := range c.Follow(ctx, "a", client.FollowOptions{PageOptions: client.PageOptions{From: 1}}) {
		if err != nil {
			t.Error(err)
			return n
		}
		if want := fmt.Sprintf(`"value":%d}`, n); r.Offset != n+1 || !strings.Contains(string(r.Data), want) {
			t.Errorf("at %d, where %s is expected, the follower got %s", n+1, want, r.Data)
		}
		if n++; n == w.last.Load() {
			return n
		}
	}
	return n
}
