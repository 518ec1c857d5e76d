package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tapedeck/tapedeck"
)

// A target is a database and the schema in it that has our tables.
type target struct {
	pool    *pgxpool.Config
	schema  string
	timeout time.Duration
}

// DefaultSchema is the schema for the tables if the URL has no search_path.
const DefaultSchema = "tapedeck"

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// parse reads the URL. What it does not say comes from the variables PGHOST, PGUSER and
// so on, and from ~/.pgpass and ~/.pg_service.conf, as for psql.
func parse(o *Options) (*target, error) {
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the address of PostgreSQL cannot be read: %s", cause(err)).
			WithHint("write it as postgres://user:password@host:5432/database, or leave parts to PGHOST, PGUSER, PGPASSWORD and PGDATABASE")
	}
	t := &target{pool: c, timeout: o.StatementTimeout}
	params := c.ConnConfig.RuntimeParams
	t.schema = cmp.Or(params["search_path"], DefaultSchema)
	if !plainName.MatchString(t.schema) {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the search_path %q is not the name of one schema", t.schema).
			WithHint("use small letters, digits and underscores, such as search_path=tapedeck")
	}
	for name, value := range map[string]string{
		"search_path": t.schema, "client_encoding": "UTF8", "default_transaction_isolation": "read committed",
		"statement_timeout": strconv.FormatInt(o.StatementTimeout.Milliseconds(), 10),
		// A server that is stopped in the middle of a transaction must not hold its locks
		// for ever, and one whose network is cut must not either.
		"idle_in_transaction_session_timeout": strconv.FormatInt(o.Lease.Milliseconds(), 10),
		"tcp_keepalives_idle":                 "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	} {
		params[name] = value
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectTimeout
	}
	c.MaxConns, c.MinConns = int32(o.Readers), 0
	return t, nil
}

// Where names the database and the schema for people, without the user and the password.
// It is [tapedeck.Invalid] if the URL is.
func (o Options) Where() (string, error) {
	o = o.withDefaults()
	t, err := parse(&o)
	if err != nil {
		return "", err
	}
	if t.schema != DefaultSchema {
		return t.where() + ", schema " + t.schema, nil
	}
	return t.where(), nil
}

const connectTimeout = 5 * time.Second

// cause returns the text of a connection error without the address and the password,
// which the driver's own sentence begins with.
func cause(err error) string {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if inner := errors.Unwrap(err); inner != nil {
			return firstLine(inner.Error())
		}
		return "it is not a URL"
	}
	return firstLine(err.Error())
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// settings returns a copy of the configuration for connections with a role in this
// server, which pg_stat_activity shows.
func (t *target) settings(role string, more map[string]string) *pgx.ConnConfig {
	c := t.pool.ConnConfig.Copy()
	c.RuntimeParams["application_name"] = "tapedeck " + role
	for name, value := range more {
		c.RuntimeParams[name] = value
	}
	return c
}

// connect opens a connection.
func (t *target) connect(ctx context.Context, role string) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, t.settings(role, nil))
	if err != nil {
		return nil, t.unreached(ctx, err)
	}
	return c, nil
}

// readers returns a pool of connections that cannot write.
func (t *target) readers(ctx context.Context) (*pgxpool.Pool, error) {
	c := t.pool.Copy()
	c.ConnConfig = t.settings("reader", map[string]string{"default_transaction_read_only": "on"})
	return pgxpool.NewWithConfig(ctx, c)
}

// watch looks, from the time on that one statement may take, whether the database answers at
// all, and calls cancel if it does not: one that is stopped keeps its connections open. Call
// stop at the end.
func (t *target) watch(cancel func()) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	wait := time.AfterFunc(t.timeout, func() {
		for t.answers(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(askTimeout):
			}
		}
		cancel()
	})
	return func() { wait.Stop(); end() }
}

// answers reports whether the database answers a new connection soon, also with an error.
func (t *target) answers(ctx context.Context) bool {
	soon, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := t.connect(soon, "watch")
	if err != nil {
		return code(err) != "" || ctx.Err() != nil
	}
	_ = c.Close(soon)
	return true
}

// where names the database for people, without the password.
func (t *target) where() string {
	c := t.pool.ConnConfig
	if strings.HasPrefix(c.Host, "/") {
		return fmt.Sprintf("database %q at %s", c.Database, c.Host)
	}
	return fmt.Sprintf("database %q at %s", c.Database, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
}

// unreached returns the error for users when a connection cannot be opened. It is
// [tapedeck.Unavailable] also for a wrong password: callers of a running server are not to
// blame, and must not take it for an answer about their own rights.
func (t *target) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return &dbError{t.explain(err)}
}

// explain returns the sentence for an operator when a connection cannot be opened. Callers
// of a running server get less, see [unwritten].
func (t *target) explain(err error) error {
	user := t.pool.ConnConfig.User
	switch code(err) {
	case codePassword:
		return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL refuses the password of user %q for %s", user, t.where()).
			WithHint("set PGPASSWORD, write it to ~/.pgpass, or put it into the URL").Because(err)
	case codeAuthorization:
		return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL does not let user %q into %s: %s", user, t.where(), message(err)).
			WithHint("look at the name of the user and at pg_hba.conf of the database").Because(err)
	case codeNoDatabase:
		return tapedeck.Errorf(tapedeck.Unavailable, "there is no %s", t.where()).
			WithHint("create it: createdb %s", t.pool.ConnConfig.Database).Because(err)
	case codeConnections:
		return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL has no connection left for %s", t.where()).
			WithHint("raise its max_connections, or lower --postgres-readers").Because(err)
	case "":
		return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL cannot be reached: %s does not answer", t.where()).
			WithHint("look whether it runs, and at host and port in the URL").Because(err)
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "PostgreSQL does not accept a connection to %s: %s", t.where(), message(err)).
		WithHint("try again, or look at the log of PostgreSQL").Because(err)
}

// message returns what PostgreSQL has answered.
func message(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Message
	}
	return firstLine(err.Error())
}

// A querier runs queries: a connection or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// queryRows calls row with each row of the answer.
func queryRows(ctx context.Context, q querier, row func(pgx.Rows) error, statement string, args ...any) error {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return &dbError{err}
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return &dbError{err}
	}
	return nil
}
