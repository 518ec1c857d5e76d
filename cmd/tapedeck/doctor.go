package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newDoctor(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the folder, the disk, the clock and the agents",
		Long: `Doctor looks at the data folder, its permissions, its database and its disk, at the
clock, at the server that uses the folder, and at the configured agents. It says what to
do about each problem. It changes nothing, and a server may run meanwhile.

It exits with 1 if it finds a problem, and with 0 if it finds none, or only warnings.
Verify reads the whole log; doctor does not.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := e.onlyFolder("doctor works on a data folder, not through a server"); err != nil {
				return err
			}
			return e.doctor(c.Context())
		},
	}
}

// A finding is what doctor says about one thing.
type finding struct {
	About  string `json:"about"`
	State  string `json:"state"` // ok, warning or problem
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
}

func good(about, format string, args ...any) finding {
	return finding{About: about, State: "ok", Text: fmt.Sprintf(format, args...)}
}

func warning(about, advice, format string, args ...any) finding {
	return finding{about, "warning", fmt.Sprintf(format, args...), advice}
}

// bad returns the finding of an error, with its hint.
func bad(about string, err error) finding {
	f := finding{About: about, State: "problem", Text: err.Error()}
	var e *tapedeck.Error
	if errors.As(err, &e) {
		f.Text, f.Advice = e.Message, e.Hint
	}
	return f
}

func (e *env) doctor(ctx context.Context) error {
	dir, err := filepath.Abs(e.folder())
	if err != nil {
		return err
	}
	all := examineFolder(dir)
	all = append(all, e.examineServer(ctx))
	all = append(all, e.examineAgents(dir)...)
	problems := 0
	for i := range all {
		if all[i].State == "problem" {
			problems++
		}
		if err := e.printFinding(&all[i]); err != nil {
			return err
		}
	}
	if problems > 0 {
		return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Invalid, "%s found", terminal.Count(problems, "problem"))}
	}
	return nil
}

func (e *env) printFinding(f *finding) error {
	if e.json {
		return e.printJSON(f)
	}
	p := e.pen()
	colour := map[string]terminal.Style{"ok": terminal.Green, "warning": terminal.Yellow, "problem": terminal.Red}[f.State]
	if err := p.Printf("%s %-12s %s\n", p.Paint(colour, fmt.Sprintf("%-8s", f.State)), f.About, terminal.Clean(f.Text)); err != nil || f.Advice == "" {
		return err
	}
	return p.Printf("%21s → %s\n", "", terminal.Clean(f.Advice))
}

// examineFolder looks at a data folder with what is in it.
func examineFolder(dir string) []finding {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{warning("folder", "tapedeck serve creates it; another folder is chosen with --data", "there is no data folder %s", dir)}
	case err != nil:
		return []finding{bad("folder", err)}
	case !info.IsDir():
		return []finding{bad("folder", tapedeck.Errorf(tapedeck.Invalid, "%s is no folder", dir).WithHint("choose another one with --data"))}
	}
	all := []finding{good("folder", "%s", dir)}
	all = append(all, examinePermissions(dir, info), examineDatabase(dir))
	return append(all, examineDisk(dir), examineClock(dir, time.Now()))
}

// examinePermissions looks for files that others can read.
func examinePermissions(dir string, info fs.FileInfo) finding {
	if runtime.GOOS == "windows" {
		return good("permissions", "not looked at on this system")
	}
	open := []string{}
	if info.Mode().Perm()&0o077 != 0 {
		open = append(open, dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return bad("permissions", tapedeck.Errorf(tapedeck.Invalid, "the folder cannot be read: %w", err).WithHint("run doctor as the user that runs the server"))
	}
	for _, entry := range entries {
		if f, err := entry.Info(); err == nil && f.Mode().IsRegular() && f.Mode().Perm()&0o077 != 0 {
			open = append(open, filepath.Join(dir, entry.Name()))
		}
	}
	if len(open) == 0 {
		return good("permissions", "only the owner can read the folder and its files")
	}
	slices.Sort(open)
	return warning("permissions", fmt.Sprintf("take the rights of others away: chmod -R go= %s", dir),
		"other users may read or change %s, the first is %s", terminal.Count(len(open), "path"), open[0])
}

func examineDatabase(dir string) finding {
	if where := databaseOf(dir); where != "" {
		return good("database", "the sessions are in PostgreSQL: %s; tapedeck verify --postgres checks them", where)
	}
	c, err := sqlite.Inspect(dir)
	switch {
	case err != nil:
		return bad("database", err)
	case !c.Exists:
		return warning("database", "tapedeck serve creates it; with --postgres the folder has none", "there is no database yet")
	case c.Schema < c.Known:
		return warning("database", "make a backup; the next start brings it up to date", "its schema is number %d, this program has number %d", c.Schema, c.Known)
	case !c.Whole:
		return good("database", "%s, schema %d; too large to be checked here, tapedeck verify does", bytesOf(c.Bytes), c.Schema)
	}
	return good("database", "%s, schema %d, no damage found", bytesOf(c.Bytes), c.Schema)
}

const (
	scarce    = 1 << 30  // bytes of free space below which doctor warns
	exhausted = 64 << 20 // and below which it is a problem
	slowSync  = 20 * time.Millisecond
)

// examineDisk looks at the free space, and measures how long it takes to make a page
// durable.
func examineDisk(dir string) finding {
	free, known := freeSpace(dir)
	if known && free < exhausted {
		return bad("disk", tapedeck.Errorf(tapedeck.Unavailable, "%s are free", bytesOf(free)).WithHint("make space: without it nothing can be stored"))
	}
	took, err := syncTime(dir)
	switch {
	case err != nil:
		return bad("disk", tapedeck.Errorf(tapedeck.Unavailable, "a file cannot be written: %w", err).WithHint("look at the permissions of the folder, and at the disk"))
	case known && free < scarce:
		return warning("disk", "make space", "%s are free", bytesOf(free))
	case took > slowSync:
		return warning("disk", "choose a quicker disk: each commit waits for it", "a page takes %s to be durable", took.Round(time.Millisecond))
	}
	return good("disk", "%s are free; a page takes %s to be durable", bytesOf(free), took.Round(10*time.Microsecond))
}

// syncTime returns the median time in which a page is written and synced in a folder.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer func() { _ = f.Close() }()
	times := make([]time.Duration, 9)
	for i := range times {
		began := time.Now()
		if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// examineClock compares the clock with the times of files, which an earlier clock wrote.
func examineClock(dir string, now time.Time) finding {
	for _, name := range []string{"tapedeck.db", "tapedeck.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.ModTime().After(now.Add(time.Minute)) {
			return bad("clock", tapedeck.Errorf(tapedeck.Invalid, "it is %s, but %s was written at %s", now.Format(time.RFC3339), name, info.ModTime().Format(time.RFC3339)).
				WithHint("set the clock: times of events, expiry and tokens depend on it"))
		}
	}
	return good("clock", "%s", now.Format(time.RFC3339))
}

// examineServer looks at the process that holds the folder.
func (e *env) examineServer(ctx context.Context) finding {
	c := e.locate()
	if c == nil {
		return good("server", "none uses the folder; this program is %s", version())
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		return good("server", "none uses the folder; this program is %s", version())
	}
	if s, err := c.Stats(ctx); err == nil && s.Version != version() {
		return warning("server", "start it again to use the newer one", "it is %s, this program is %s", s.Version, version())
	}
	return good("server", "it answers; this program is %s", version())
}

// examineAgents looks at the configuration, and whether its agents can run here.
func (e *env) examineAgents(dir string) []finding {
	c, err := e.readConfig()
	if err != nil {
		return []finding{bad("agents", err)}
	}
	agents, err := buildAgents(&c, &folders{data: workPlace(dir)}, false)
	if err != nil {
		return []finding{bad("agents", err)}
	}
	var all []finding
	for _, a := range agents {
		if err := a.Available(); err != nil {
			all = append(all, bad("agent "+a.Name, err))
		}
	}
	return append(all, good("agents", "%s of %d can run here", terminal.Count(len(agents)-len(all), "agent"), len(agents)))
}
