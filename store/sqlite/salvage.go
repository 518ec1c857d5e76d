package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/store"
)

// Salvage reads what can be read of the damaged data folder from, and writes it into the
// folder to, which must not have a database yet. Each session has its events up to the first
// one that is missing or damaged, under the same offsets. It reads a copy, which it removes
// at the end, so from stays as it is; only its lock is taken.
//
// The checkpoints of views and the search index are not copied, because servers create them
// again, and neither are producers, subscriptions, push notification configs and the money
// that owners have spent.
//
// If from has encrypted sessions, key is its master key. Those in the folder to are encrypted
// again, with new keys and the same master key. Sessions whose keys were erased are left out.
func Salvage(ctx context.Context, from, to string, key []byte) (_ store.Salvage, err error) {
	source := filepath.Join(from, databaseName)
	if err := Find(from); err != nil {
		return store.Salvage{}, err
	}
	if err := apart(to, from); err != nil {
		return store.Salvage{}, err
	}
	target, err := makeFolder(to, false)
	if err != nil {
		return store.Salvage{}, err
	}
	lock, err := TakeLock(from)
	if err != nil {
		return store.Salvage{}, err
	}
	defer lock.Release()
	copied := filepath.Join(filepath.Dir(target), salvageName) // an absolute path
	switch {
	case !missing(copied):
		return store.Salvage{}, tapedeck.Errorf(tapedeck.Conflict, "an earlier salvage to %s was interrupted, and %s has only a part", to, to).
			WithHint("delete %s and run the same command again, or name another folder with --to", to)
	case !missing(target):
		return store.Salvage{}, store.NotEmpty(to)
	}
	if err := cmp.Or(checkNames(target), checkBeside(copied, true)); err != nil {
		return store.Salvage{}, err
	}
	keys, err := openKeys(source, key, false)
	if err != nil {
		return store.Salvage{}, err
	}
	if keys != nil {
		defer func() { _ = keys.Close() }()
	}
	x := &salvage{dir: to, keys: keyring{keys}, key: key, found: make(map[int64]*salvaged), byID: make(map[string]*salvaged)}
	defer func() {
		for _, end := range databaseEnds {
			if e := os.Remove(copied + end); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}()
	for _, suffix := range [...]string{"", "-wal"} {
		blind, err := copyReadable(copied+suffix, source+suffix)
		if err != nil {
			return x.Salvage, err
		}
		x.Blind += blind
	}
	if x.conn, err = dial(dataSource(copied, "rw", []string{"busy_timeout(10000)", "cache_size(-32768)", "trusted_schema(0)"})); err != nil {
		return x.Salvage, unsound(source, err)
	}
	defer func() { err = errors.Join(err, x.conn.close()) }()
	if err := x.read(ctx, source); err != nil {
		return x.Salvage, err
	}
	return x.Salvage, x.write(ctx)
}

// salvageName is the copy of the damaged database, in the new folder. It is there until the
// new folder is complete.
const salvageName = "salvage.db"

// copyReadable copies a file. Where the disk returns an error, the copy has zeros; copyReadable
// returns how many bytes. A file that does not exist is not copied.
func copyReadable(to, from string) (blind int64, err error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, folderError(from, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, folderError(to, err)
	}
	block := make([]byte, 4096) // a page: what is lost together
	for at := int64(0); err == nil; at += int64(len(block)) {
		n, readErr := in.ReadAt(block, at)
		if n == 0 && errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			info, statErr := in.Stat()
			if statErr != nil || at >= info.Size() {
				break
			}
			n = int(min(int64(len(block)), info.Size()-at))
			clear(block)
			blind += int64(n)
		}
		_, err = out.WriteAt(block[:n], at)
	}
	return blind, errors.Join(err, out.Close())
}

// A salvage is a [Salvage] in progress.
type salvage struct {
	store.Salvage
	dir   string
	conn  *conn
	keys  keyring
	key   []byte              // the master key
	found map[int64]*salvaged // by gen
	order []*salvaged         // by gen
	byID  map[string]*salvaged

	unopened int     // encrypted sessions, without a file of keys
	erased   []int64 // sessions whose keys were erased
}

// A salvaged is a session of the damaged database.
type salvaged struct {
	spec    tapedeck.Spec
	gen     int64
	forkAt  int64
	gone    bool
	head    int64           // 0: not known
	pos     map[int64]int64 // the positions of its sound events, by offset
	damaged bool            // a record of it is not what was written
	made    int64           // the number of events that were written
	unnamed bool
	key     *sessionkeys.Key // nil: it is not encrypted
	locked  error            // why it cannot be decrypted
}

const (
	sqlSalvageSessions = `SELECT gen, id, kind, closed, parent, fork_at, deleted, content_type, origin, ttl, expires, %s FROM sessions WHERE gen > ? ORDER BY gen`
	sqlSalvageHeads    = `SELECT session, head FROM heads WHERE session > ? ORDER BY session`
	sqlSalvagePurges   = `SELECT session FROM purges WHERE session > ? ORDER BY session`
	sqlSalvageEvents   = `SELECT pos, session, offset, CAST(event AS BLOB), typeof(event), %s FROM events WHERE pos > ? ORDER BY pos`
)

// read finds out what there is: the sessions, and where their sound events are.
func (x *salvage) read(ctx context.Context, file string) error {
	x.conn.ctx = ctx
	tables, err := x.conn.number(`SELECT count(*) FROM sqlite_schema WHERE name IN ('sessions', 'heads', 'events')`)
	switch {
	case err != nil:
		return tapedeck.Errorf(tapedeck.Internal, "the beginning of %s is damaged, so nothing of it can be read", file).
			WithHint("restore a backup").Because(err)
	case tables != 3:
		return foreign(file)
	}
	if err := x.walk(fmt.Sprintf(sqlSalvageSessions, x.columnOr("sessions", "key")), x.session); err != nil {
		return err
	}
	if x.unopened > 0 {
		return errNoKeys(filepath.Dir(file))
	}
	heads := func(row []driver.Value) {
		if s := x.found[integer(row[0])]; s != nil {
			s.head = integer(row[1])
		}
	}
	if err := x.walk(sqlSalvageHeads, heads); err != nil {
		return err
	}
	purged := map[int64]bool{}
	if err := x.walk(sqlSalvagePurges, func(row []driver.Value) { purged[integer(row[0])] = true }); err != nil {
		return err
	}
	return x.walk(fmt.Sprintf(sqlSalvageEvents, x.columnOr("events", "sum")), func(row []driver.Value) {
		if gen := integer(row[1]); !purged[gen] {
			x.event(gen, row)
		}
	})
}

// columnOr returns the name of a column, or NULL if the database is from before there was
// one.
func (x *salvage) columnOr(table, name string) string {
	if n, err := x.conn.number(`SELECT count(*) FROM pragma_table_info('` + table + `') WHERE name = '` + name + `'`); err != nil || n == 0 {
		return "NULL"
	}
	return name
}

func (x *salvage) walk(statement string, row func([]driver.Value)) error {
	w := &walk{conn: x.conn, statement: statement}
	err := w.run(row)
	if err != nil && x.conn.ctx.Err() != nil {
		return x.conn.ctx.Err()
	}
	return err
}

func (x *salvage) session(row []driver.Value) {
	s := &salvaged{gen: integer(row[0]), forkAt: integer(row[5]), gone: row[6] != nil, pos: make(map[int64]int64)}
	s.spec = tapedeck.Spec{
		ID: text(row[1]), Kind: tapedeck.SessionKind(text(row[2])), Closed: integer(row[3]) != 0, Parent: text(row[4]),
		ContentType: text(row[7]), Origin: text(row[8]), TTL: time.Duration(integer(row[9])), Expires: moment(row[10]),
	}
	if store.CheckSpec(&s.spec) != nil { // the row is damaged
		return
	}
	if id := column(row[11]); id != nil && s.spec.Kind != tapedeck.KindView {
		if x.keys.file == nil {
			x.unopened++
		} else if s.key, s.locked = x.keys.key(id); errors.Is(s.locked, sessionkeys.ErrErased) {
			x.erased = append(x.erased, s.gen) // it was deleted
			return
		}
	}
	x.add(s)
}

func (x *salvage) add(s *salvaged) {
	x.found[s.gen], x.byID[s.spec.ID] = s, s
	x.order = append(x.order, s)
}

// event notes where an event is. One whose session cannot be read is of a session without
// a name.
func (x *salvage) event(gen int64, row []driver.Value) {
	s := x.found[gen]
	r := tapedeck.Record{Offset: integer(row[2])}
	r.Data, _ = row[3].([]byte)
	if column, isSum := row[5].(int64); row[5] != nil && (!isSum || !store.Sum(column).Covers(gen, r)) {
		if s != nil {
			s.damaged = true
		}
		return
	}
	if s == nil {
		if row[5] == nil || text(row[4]) != "text" {
			if !slices.Contains(x.erased, gen) {
				x.Stray++
			}
			return
		}
		s = &salvaged{gen: gen, unnamed: true, pos: make(map[int64]int64)}
		s.spec = tapedeck.Spec{ID: fmt.Sprint("salvaged-", gen), Kind: tapedeck.KindSession}
		x.add(s)
	}
	var err error
	if r.Data, err = s.decrypt(r); err != nil {
		s.damaged = true
		return
	}
	if s.spec.Kind == tapedeck.KindSession {
		if e, err := r.Event(); err != nil || e.Offset != r.Offset {
			s.damaged = true
			return
		}
	}
	if _, twice := s.pos[r.Offset]; !twice {
		s.pos[r.Offset] = integer(row[0])
	}
}

// decrypt returns the bytes of a record.
func (s *salvaged) decrypt(r tapedeck.Record) ([]byte, error) {
	if s.key == nil || s.locked != nil {
		return r.Data, s.locked
	}
	return s.key.OpenEvent(r.Offset, r.Data)
}
