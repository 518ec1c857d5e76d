package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/postgres"
)

// postgresFlags say where the sessions are if they are in PostgreSQL.
type postgresFlags struct {
	url      string
	readers  int
	timeout  time.Duration
	lease    time.Duration
	standby  bool
	declared *pflag.FlagSet
}

func (f *postgresFlags) declare(fl *pflag.FlagSet) {
	f.declared = fl
	fl.StringVar(&f.url, "postgres", "", "keep the sessions in this PostgreSQL database, such as postgres://user@host/tapedeck; what the URL leaves out comes from PGHOST, PGPASSWORD and the other variables of libpq")
	fl.IntVar(&f.readers, "postgres-readers", postgres.DefaultReaders, "number of connections to PostgreSQL for reading; the server uses three more")
	fl.DurationVar(&f.timeout, "postgres-timeout", postgres.DefaultStatementTimeout, "how long PostgreSQL may work on one statement")
	fl.DurationVar(&f.lease, "postgres-lease", postgres.DefaultLease, "how long PostgreSQL keeps other servers away after this one has died or lost its connection")
	fl.BoolVar(&f.standby, "standby", false, "wait while another server uses the database, and take over when it ends; needs --postgres")
}

// options returns the options of the store, nil if --postgres is not given.
func (f *postgresFlags) options(e *env) (*postgres.Options, error) {
	given := f.declared.Changed("postgres")
	for _, name := range [...]string{"postgres-readers", "postgres-timeout", "postgres-lease", "standby"} {
		if f.declared.Changed(name) && !given {
			return nil, usageError("--%s is for --postgres", name)
		}
	}
	switch {
	case !given:
		return nil, nil
	case e.ephemeral:
		return nil, usageError("--ephemeral keeps everything in memory, so --postgres cannot be used with it")
	case f.url == "":
		return nil, usageError("--postgres takes a URL; postgres:// alone stands for PGHOST, PGDATABASE and the other variables of libpq")
	case f.readers < 1 || f.readers > 1000:
		return nil, usageError("--postgres-readers takes a number from 1 to 1000, not %d", f.readers)
	case f.lease < time.Second || f.lease > time.Hour:
		return nil, usageError("--postgres-lease takes a duration from 1s to 1h, not %v", f.lease)
	case f.timeout < time.Second:
		return nil, usageError("--postgres-timeout takes a duration from 1s, not %v", f.timeout)
	}
	o := &postgres.Options{URL: f.url, Readers: f.readers, StatementTimeout: f.timeout, Lease: f.lease, Standby: f.standby}
	if _, err := o.Where(); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return o, nil
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
	var n placeNote
	b, err := os.ReadFile(filepath.Join(dir, placeName))
	if err != nil || json.Unmarshal(b, &n) != nil {
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
	other := databaseOf(o.dir)
	if o.postgres == nil {
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
	if o.postgres == nil {
		return nil
	}
	where, err := o.postgres.Where()
	if err != nil || where == databaseOf(o.dir) {
		return err
	}
	b, err := json.Marshal(placeNote{where})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.dir, placeName), append(b, '\n'), 0o600)
}
