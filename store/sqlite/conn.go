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
	codes "modernc.org/sqlite/lib"
)

// writerPragmas and readerPragmas are set on every connection. Some are defaults of
// SQLite, but drivers and builds have different defaults.
var (
	writerPragmas = []string{
		"busy_timeout(10000)", // another program may read the file and lock it for a moment
		"journal_mode(wal)",
		"synchronous(full)", // an acknowledged append is fsynced
		"fullfsync(1)",      // the same on macOS, where fsync alone does not reach the disk
		"checkpoint_fullfsync(1)",
		"wal_autocheckpoint(0)",        // see checkpoint.go
		"journal_size_limit(67108864)", // the log becomes small again after a huge append
		"cache_size(-32768)",
		"mmap_size(0)",
		"trusted_schema(0)",
		"secure_delete(1)", // deleted rows are overwritten; for the copies that remain see clean.go
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

// dataSource returns the name of the database file for the driver. It escapes the
// path, which may contain any character.
func dataSource(file, mode string, pragmas []string) string {
	return source(file, mode, pragmas, "1")
}

// source is dataSource with a choice: a connection with defensive "0" may write raw
// pages.
func source(file, mode string, pragmas []string, defensive string) string {
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_dqs": {"0"}, "_defensive": {defensive}, "_error_rc": {"1"}}
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// A conn is a connection to the database, for one goroutine at a time. It calls the
// driver directly: through database/sql, every row would cost twice as much.
type conn struct {
	raw   driver.Conn
	stmts map[string]*stmt
	// ctx interrupts statements. It is context.Background except for connections
	// whose statements may run for minutes, because with any other context the
	// driver starts a goroutine for each statement.
	ctx context.Context
}

// A stmt is a prepared statement with memory for its arguments.
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

// prepare returns the statement for a text. It prepares each text once.
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

// release drops the arguments, because some are large.
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

// query calls row for every row of the result until row returns an error. The slice
// of values is reused for the next row; the values are not.
func (c *conn) query(row func([]driver.Value) error, text string, args ...driver.Value) error {
	rows, err := c.begin(text, args)
	for try := 1; code(err) == codes.SQLITE_SCHEMA && try < schemaTries; try++ {
		rows, err = c.begin(text, args)
	}
	if err != nil {
		return err
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

// schemaTries is how often a query begins that finds another version of the schema. A
// VACUUM changes the version. SQLite prepares a statement again by itself, but not if a
// virtual table of the statement, such as those of FTS5, finds the next version meanwhile.
const schemaTries = 50

// begin executes a query up to its first row. It copies the arguments to SQLite.
func (c *conn) begin(text string, args []driver.Value) (driver.Rows, error) {
	s, err := c.prepare(text, args)
	if err != nil {
		return nil, err
	}
	defer s.release()
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(c.ctx, s.args)
	if err != nil {
		return nil, &dbError{err}
	}
	return rows, nil
}

// number returns the integer that a query results in, 0 for null.
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
