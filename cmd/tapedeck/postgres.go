package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cluster"
	"github.com/tapedeck/tapedeck/internal/keyfile"
	"github.com/tapedeck/tapedeck/internal/ownfile"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// postgresFlags say where the sessions are if they are in PostgreSQL.
type postgresFlags struct {
	urls     []string
	readers  int
	timeout  time.Duration
	lease    time.Duration
	standby  bool
	address  string
	declared *pflag.FlagSet
}

func (f *postgresFlags) declare(fl *pflag.FlagSet) {
	f.declared = fl
	fl.StringArrayVar(&f.urls, "postgres", nil, "keep the sessions in this PostgreSQL database, such as postgres://user@host/tapedeck; what the URL leaves out comes from PGHOST, PGPASSWORD and the other variables of libpq. Given several times: spread them over these databases, see docs/postgres.md")
	fl.IntVar(&f.readers, "postgres-readers", postgres.DefaultReaders, "number of connections to each database for reading; the server uses three more")
	fl.DurationVar(&f.timeout, "postgres-timeout", postgres.DefaultStatementTimeout, "how long PostgreSQL may work on one statement")
	fl.DurationVar(&f.lease, "postgres-lease", postgres.DefaultLease, "how long PostgreSQL keeps other servers away after this one has died or lost its connection")
	fl.BoolVar(&f.standby, "standby", false, "be one of several servers of the database: forward requests to the one that owns it, and take over when that one ends; needs --postgres")
	fl.StringVar(&f.address, "cluster-address", "", "where the other servers of the database reach this one, such as http://10.0.0.1:4747 (default: the address of --listen, unless that is every address of the machine)")
}

// options returns the options of each database, none if --postgres is not given.
func (f *postgresFlags) options(e *env) ([]postgres.Options, error) {
	given := f.declared.Changed("postgres")
	for _, name := range [...]string{"postgres-readers", "postgres-timeout", "postgres-lease", "standby", "cluster-address"} {
		if f.declared.Changed(name) && !given {
			return nil, usageError("--%s is for --postgres", name)
		}
	}
	switch {
	case !given:
		return nil, nil
	case e.ephemeral:
		return nil, usageError("--ephemeral keeps everything in memory, so --postgres cannot be used with it")
	case f.readers < 1 || f.readers > 1000:
		return nil, usageError("--postgres-readers takes a number from 1 to 1000, not %d", f.readers)
	case f.lease < time.Second || f.lease > time.Hour:
		return nil, usageError("--postgres-lease takes a duration from 1s to 1h, not %v", f.lease)
	case f.timeout < time.Second:
		return nil, usageError("--postgres-timeout takes a duration from 1s, not %v", f.timeout)
	}
	all := postgres.Options{URL: f.urls[0], Readers: f.readers, StatementTimeout: f.timeout, Lease: f.lease, Standby: f.standby}.With(f.urls[1:]...)
	if _, err := whereOf(all); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return all, nil
}

// setAddress sets where the other servers reach this one, which listens at an address.
func (f *postgresFlags) setAddress(all []postgres.Options, listens net.Addr) error {
	to := f.address
	if tcp, ok := listens.(*net.TCPAddr); to == "" && ok && !tcp.IP.IsUnspecified() {
		to = "http://" + tcp.String()
	}
	if to == "" && f.standby {
		return usageError("the other servers cannot know where to reach this one, which listens at every address: add --cluster-address http://HOST:PORT")
	}
	if to != "" {
		if _, err := cluster.ParseAddress(to); err != nil {
			return usageError("--cluster-address: %w", err)
		}
	}
	for i := range all {
		all[i].Address = to
	}
	return nil
}

// whereOf names databases for people, without users and passwords.
func whereOf(databases []postgres.Options) (string, error) {
	names := make([]string, len(databases))
	for i, o := range databases {
		where, err := o.Where()
		if err != nil {
			return "", err
		}
		if slices.Contains(names[:i], where) {
			return "", tapedeck.Errorf(tapedeck.Invalid, "%s was given twice", where).WithHint("give --postgres once for each database")
		}
		names[i] = where
	}
	return strings.Join(names, " and "), nil
}

// databases returns the options of the first database, and the addresses of the others.
func (o *appOptions) databases() (first *postgres.Options, more []string) {
	if len(o.postgres) == 0 {
		return nil, nil
	}
	for _, other := range o.postgres[1:] {
		more = append(more, other.URL)
	}
	return &o.postgres[0], more
}

// placeName is the file in a data folder that says that its sessions are in a database.
const placeName = "postgres.json"

// A placeNote names the database, without user and password.
type placeNote struct {
	Database string `json:"database"`
}

// databaseOf returns the database that has the sessions of a folder, "" if they are in the
// folder.
func databaseOf(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, placeName))
	if err != nil {
		return ""
	}
	return parsePlace(b)
}

func parsePlace(b []byte) string {
	var n placeNote
	if json.Unmarshal(b, &n) != nil {
		return ""
	}
	return n.Database
}

// checkPlace returns an error if the sessions of the folder are at another place: the
// server would start empty, and people would look for their sessions.
func (o *appOptions) checkPlace() error {
	if o.ephemeral {
		return nil
	}
	isNote := func(b []byte) bool { // beside a database it is ours, also if a disk has damaged it
		_, ok := parseNote(b)
		return ok || hasData(o.dir)
	}
	isPlace := func(b []byte) bool { return parsePlace(b) != "" }
	if err := errors.Join(ownfile.Check(notePath(o.dir), isNote), ownfile.Check(filepath.Join(o.dir, placeName), isPlace)); err != nil {
		return err
	}
	other := databaseOf(o.dir)
	if len(o.postgres) == 0 {
		if other == "" {
			return nil
		}
		return tapedeck.Errorf(tapedeck.Conflict, "the sessions of %s are in PostgreSQL: %s", o.dir, other).
			WithHint("start the server with --postgres, or name another folder with --data")
	}
	_, err := os.Stat(filepath.Join(o.dir, "tapedeck.db"))
	switch {
	case err == nil:
		return tapedeck.Errorf(tapedeck.Conflict, "the folder %s has sessions of its own, which --postgres would hide", o.dir).
			WithHint("name another folder with --data; it gets keys and the folders of agents")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// markPlace notes in the folder where its sessions are.
func (o *appOptions) markPlace() error {
	if len(o.postgres) == 0 {
		return nil
	}
	where, err := whereOf(o.postgres)
	if err != nil || where == databaseOf(o.dir) {
		return err
	}
	b, err := json.Marshal(placeNote{where})
	if err != nil {
		return err
	}
	return keyfile.Write(filepath.Join(o.dir, placeName), append(b, '\n'))
}
