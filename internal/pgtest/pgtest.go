// Package pgtest starts a PostgreSQL for tests: a cluster in a temporary folder that
// listens on a socket there and on no address, and that ends with the test binary.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Cluster is a running PostgreSQL.
type Cluster struct {
	folder string // has the socket and the data
	bin    string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	log    *lockedBuffer
	params []string
}

// port is part of the name of the socket; nothing listens on it.
const port = "5432"

// superuser is the user that owns everything in a cluster. It needs no password.
const superuser = "tester"

// ErrMissing means that PostgreSQL is not installed.
var ErrMissing = errors.New("initdb and postgres are not installed, so PostgreSQL cannot be tested here")

// Start starts a cluster. params are settings, such as "max_connections=50". Without
// fsync=on among them, the cluster does not wait for the disk, so that tests are quick.
func Start(params ...string) (*Cluster, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "pgtest") // short: the path of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	c := &Cluster{folder: folder, bin: bin, params: params, log: &lockedBuffer{}}
	err = c.prepare()
	if err == nil {
		err = c.launch()
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// findBin returns the folder of the programs of PostgreSQL. Debian has them in one for
// each version.
func findBin() (string, error) {
	if p, err := exec.LookPath("postgres"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), "initdb")); err == nil {
				return filepath.Dir(p), nil
			}
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is valid
	if len(found) == 0 {
		return "", ErrMissing
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

func (c *Cluster) data() string { return filepath.Join(c.folder, "data") }

// prepare creates the files of the cluster.
func (c *Cluster) prepare() error {
	if err := giveAway(c.folder); err != nil {
		return err
	}
	cmd := c.command("initdb", "-D", c.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// The user secured needs a password; a test creates it.
	rules := "local all secured scram-sha-256\nlocal all locked reject\nlocal all all trust\nlocal replication all trust\n"
	return os.WriteFile(filepath.Join(c.data(), "pg_hba.conf"), []byte(rules), 0o600)
}

func (c *Cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), filepath.Join(c.bin, program), args...)
	cmd.Dir = c.folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + c.folder}
	cmd.SysProcAttr = asOther()
	return cmd
}

// launch starts the server and waits until it accepts connections.
func (c *Cluster) launch() error {
	args := []string{"-D", c.data(), "-k", c.folder, "-p", port, "-h", ""}
	settings := append([]string{
		"fsync=off", "max_connections=200", "shared_buffers=64MB", "autovacuum_naptime=10s", "unix_socket_permissions=0777",
		"full_page_writes=off", "max_wal_size=2GB", "logging_collector=off", "log_min_messages=error",
	}, c.params...)
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	c.cmd, c.ended = c.command("postgres", args...), make(chan struct{})
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		cancel()
		if err == nil {
			return conn.Close(context.Background())
		}
		select {
		case <-c.ended:
			return fmt.Errorf("postgres has ended: %s", c.log)
		case <-time.After(20 * time.Millisecond): // nothing tells when it is ready
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %w\n%s", err, c.log)
		}
	}
}

// Folder returns the folder with the socket, whose name is that of libpq.
func (c *Cluster) Folder() string { return c.folder }

// URL returns the address of a database.
func (c *Cluster) URL(database string) string { return c.URLFor(superuser, database) }

// URLFor returns the address of a database for a user.
func (c *Cluster) URLFor(user, database string) string {
	q := url.Values{"host": {c.folder}, "port": {port}, "sslmode": {"disable"}}
	return "postgres://" + url.PathEscape(user) + "@/" + url.PathEscape(database) + "?" + q.Encode()
}

// Database creates an empty database and returns its name.
func (c *Cluster) Database() (string, error) {
	name := "db_" + rand.Text()
	return name, c.Exec("postgres", `CREATE DATABASE "`+name+`"`)
}

// Exec runs statements in a database, as its superuser.
func (c *Cluster) Exec(database string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// Kill ends the server as a crash does, with all its connections.
func (c *Cluster) Kill() {
	// SIGQUIT is the immediate shutdown: no checkpoint, so the next start recovers. SIGKILL
	// would leave the processes of connections, which keep their shared memory.
	c.end(syscallQuit)
}

// Restart starts the server again after Kill.
func (c *Cluster) Restart() error { return c.launch() }

func (c *Cluster) end(signal os.Signal) {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	_ = c.cmd.Process.Signal(signal) // it may have ended
	select {
	case <-c.ended:
	case <-time.After(2 * time.Minute):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// Stop ends the server and removes its files.
func (c *Cluster) Stop() {
	c.end(syscallQuit)
	_ = os.RemoveAll(c.folder)
}

// lockedBuffer keeps what the server says.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var shared struct {
	sync.Mutex
	cluster *Cluster
	err     error
	tried   bool
}

// Shared returns the cluster of this test binary, which the first call starts. The test
// is skipped if PostgreSQL is not installed. [Main] must run the tests.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.tried {
		shared.tried = true
		shared.cluster, shared.err = Start()
	}
	skipOrFail(t, shared.err)
	return shared.cluster
}

// New starts a cluster for one test.
func New(t testing.TB, params ...string) *Cluster {
	t.Helper()
	c, err := Start(params...)
	skipOrFail(t, err)
	t.Cleanup(c.Stop)
	return c
}

func skipOrFail(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrMissing):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// Main runs the tests of a binary and then stops the shared cluster: for TestMain.
func Main(m *testing.M) {
	status := m.Run()
	shared.Lock()
	if shared.cluster != nil {
		shared.cluster.Stop()
	}
	shared.Unlock()
	os.Exit(status)
}

// giveAway gives a folder to the user that runs the server: PostgreSQL refuses root.
func giveAway(folder string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid := otherUser()
	return errors.Join(os.Chmod(folder, 0o755), os.Chown(folder, uid, gid))
}

// otherUser returns the user postgres or, without one, nobody.
func otherUser() (uid, gid int) {
	for _, name := range [...]string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.Atoi(u.Uid)
			gid, err2 := strconv.Atoi(u.Gid)
			if err1 == nil && err2 == nil {
				return uid, gid
			}
		}
	}
	return 65534, 65534
}
