package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	modernc "modernc.org/sqlite"
)

// writerPragmas and readerPragmas are set on every connection, also where they
// are the default: drivers and builds differ in what that is.
var (
	writerPragmas = []string{
		"busy_timeout(10000)", // another program may look into the file and hold it for a moment
		"journal_mode(wal)",
		"synchronous(full)", // an acknowledged append has been fsynced
		"fullfsync(1)",      // the same on macOS, where fsync alone does not reach the disk
		"checkpoint_fullfsync(1)",
		"wal_autocheckpoint(4000)",
		"journal_size_limit(67108864)", // a log that one huge append made is cut off again
		"cache_size(-32768)",
		"mmap_size(0)",
		"trusted_schema(0)",
		"secure_delete(1)", // what is deleted is overwritten; see clean.go for what that leaves
	}
	readerPragmas = []string{
		"busy_timeout(10000)",
		"query_only(1)",
		"synchronous(full)",
		"cache_size(-8192)",
		"mmap_size(0)",
		"trusted_schema(0)",
	}
)

// dataSource names the database file for the driver. The path is escaped, as it
// may contain anything that a path can.
func dataSource(file, mode string, pragmas []string) string {
	return source(file, mode, pragmas, "1")
}

// source is dataSource of a connection that may, if defensive is "0", write
// pages as they are.
func source(file, mode string, pragmas []string, defensive string) string {
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_dqs": {"0"}, "_defensive": {defensive}, "_error_rc": {"1"}}
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// A conn is one connection to the database. It is used by one goroutine at a
// time. It speaks to the driver itself, as database/sql would cost as much
// again for every row.
type conn struct {
	raw   driver.Conn
	stmts map[string]*stmt
	// ctx interrupts statements. It is the background except for what may run
	// for minutes: with any other the driver starts a goroutine per statement.
	ctx context.Context
}

// A stmt is a prepared statement with room for its arguments.
type stmt struct {
	driver.Stmt
	args []driver.NamedValue
}

// dial opens a connection.
func dial(source string) (*conn, error) {
	raw, err := new(modernc.Driver).Open(source)
	if err != nil {
		return nil, &dbError{err}
	}
	return &conn{raw: raw, stmts: make(map[string]*stmt), ctx: context.Background()}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	c.stmts = nil
	return c.raw.Close()
}

// prepare returns the statement for a text, which it prepares once.
func (c *conn) prepare(text string, args []driver.Value) (*stmt, error) {
	s := c.stmts[text]
	if s == nil {
		prepared, err := c.raw.Prepare(text)
		if err != nil {
			return nil, &dbError{err}
		}
		s = &stmt{Stmt: prepared}
		c.stmts[text] = s
	}
	for len(s.args) < len(args) {
		s.args = append(s.args, driver.NamedValue{Ordinal: len(s.args) + 1})
	}
	for i, v := range args {
		s.args[i].Value = v
	}
	return s, nil
}

// release lets go of the arguments, of which some are large.
func (s *stmt) release() {
	for i := range s.args {
		s.args[i].Value = nil
	}
}

// exec runs a statement. Integers among the arguments must be of type int64.
func (c *conn) exec(text string, args ...driver.Value) error {
	s, err := c.prepare(text, args)
	if err != nil {
		return err
	}
	defer s.release()
	if _, err := s.Stmt.(driver.StmtExecContext).ExecContext(c.ctx, s.args); err != nil {
		return &dbError{err}
	}
	return nil
}

// errStop ends a query early.
var errStop = errors.New("stop")

// query calls row for every row of the result until it returns an error. The
// slice that row gets is used again for the next one; the values are not.
func (c *conn) query(row func([]driver.Value) error, text string, args ...driver.Value) error {
	s, err := c.prepare(text, args)
	if err != nil {
		return err
	}
	defer s.release()
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(c.ctx, s.args)
	if err != nil {
		return &dbError{err}
	}
	defer func() { _ = rows.Close() }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &dbError{err}
		}
		if err := row(values); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// number returns the one integer that a query results in, 0 for null.
func (c *conn) number(text string, args ...driver.Value) (int64, error) {
	var n int64
	err := c.query(func(v []driver.Value) error {
		n = integer(v[0])
		return nil
	}, text, args...)
	return n, err
}

// integer and text read a column, the zero value for null.
func integer(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

func text(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}
