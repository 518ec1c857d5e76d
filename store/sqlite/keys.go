package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/store"
)

// A store that is opened with a master key encrypts what each new session has with a key
// of its own. The keys are in the file session-keys beside the database and not in the
// database, which has only their ids: so a backup does not have them.

// encryptedHint says how commands get the master key.
const encryptedHint = "give --encryption-key, or set TAPEDECK_ENCRYPTION_KEY"

const (
	sqlHasEncrypted = `SELECT EXISTS (SELECT 1 FROM sessions WHERE key IS NOT NULL)`
	sqlKeyOf        = `SELECT key FROM sessions WHERE gen = ?`
	sqlKeysInUse    = `SELECT gen, id, key FROM sessions INDEXED BY sessions_encrypted WHERE key IS NOT NULL ORDER BY gen DESC`
)

// openKeys opens the file of keys of a folder, nil without a master key. Before that,
// nothing of the database is read or changed.
func openKeys(file string, master []byte, withoutKeys bool) (*sessionkeys.File, error) {
	path := filepath.Join(filepath.Dir(file), sessionkeys.FileName)
	_, err := os.Stat(path)
	exists := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, folderError(path, err)
	case withoutKeys || len(master) == 0 && !exists:
		return nil, nil
	case len(master) == 0:
		return nil, errEncrypted(filepath.Dir(file))
	case !exists:
		return nil, nil // see createKeys
	}
	keys, err := sessionkeys.Open(path, master)
	if err != nil {
		return nil, keysError(path, err)
	}
	return keys, nil
}

// keysError returns the error for users of a file of keys that cannot be opened.
func keysError(path string, err error) error {
	switch {
	case errors.Is(err, sessionkeys.ErrWrongMaster):
		return tapedeck.Errorf(tapedeck.Forbidden, "the key that was given is not the encryption key of %s", filepath.Dir(path)).
			WithHint("give the key with which the folder was encrypted, or the one after its last rotation")
	case errors.Is(err, sessionkeys.ErrForm):
		return tapedeck.Errorf(tapedeck.Invalid, "the encryption key is wrong: %w", err).WithHint("tapedeck key new makes one")
	case errors.Is(err, sessionkeys.ErrNotOurs):
		return tapedeck.Errorf(tapedeck.Conflict, "%s is not a file of session keys, or it is damaged", path).
			WithHint("put the newest copy of it in its place; tapedeck key backup makes copies").Because(err)
	}
	return folderError(path, err)
}

// RotateKey encrypts the keys of the sessions in a folder with another master key, and
// returns how many. The caller has the lock of the folder.
func RotateKey(dir string, key, next []byte) (int, error) {
	path := filepath.Join(dir, sessionkeys.FileName)
	n, err := sessionkeys.Rotate(path, key, next)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, tapedeck.Errorf(tapedeck.NotFound, "there are no keys of sessions in %s", dir).WithHint("no session of it is encrypted")
	}
	if err != nil {
		return n, keysError(path, err)
	}
	return n, nil
}

func errEncrypted(dir string) error {
	return tapedeck.Errorf(tapedeck.Forbidden, "the sessions in %s are encrypted, and no key was given", dir).WithHint(encryptedHint)
}

// errNoKeys is the error of a folder that has encrypted sessions and no file of keys.
func errNoKeys(dir string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "the sessions in %s are encrypted, and their keys are not there", dir).
		WithHint("put the newest file %s into the folder: that of the folder before, or a copy by tapedeck key backup", sessionkeys.FileName)
}

// checkKeys compares the keys with the sessions, before the store is used. It creates the
// file of keys of a folder that has no encrypted session yet.
func (s *Store) checkKeys(c *conn) error {
	used, err := c.number(sqlHasEncrypted)
	dir := filepath.Dir(s.file)
	switch {
	case err != nil:
		return unsound(s.file, err)
	case s.options.WithoutKeys || used == 0 && len(s.options.Key) == 0:
		return nil
	case used != 0 && len(s.options.Key) == 0:
		return errEncrypted(dir)
	case used != 0 && s.keys == nil:
		return errNoKeys(dir)
	case s.keys == nil:
		path := filepath.Join(dir, sessionkeys.FileName)
		if s.keys, err = sessionkeys.Create(path, s.options.Key); err != nil {
			return keysError(path, err)
		}
		return nil
	}
	return s.findErased(c)
}

// findErased finds the sessions whose keys were erased. They were deleted, and the database
// has them again because it comes from an older backup. [Store.removeErased] removes them
// before a reader can get them. If the file never had a key, that is an error: the file is too
// old, and a newer one may have the key.
func (s *Store) findErased(c *conn) error {
	unknown, example := 0, ""
	err := c.query(func(row []driver.Value) error {
		id, err := sessionkeys.ParseID(column(row[2]))
		if err == nil {
			_, err = s.keys.Key(id)
		}
		switch {
		case errors.Is(err, sessionkeys.ErrErased):
			s.erased = append(s.erased, text(row[1]))
		case errors.Is(err, sessionkeys.ErrUnknown):
			unknown, example = unknown+1, text(row[1])
		case err != nil:
			return err
		}
		return nil
	}, sqlKeysInUse)
	var broken *dbError
	switch {
	case errors.As(err, &broken):
		return unsound(s.file, err)
	case err != nil:
		return tapedeck.Errorf(tapedeck.Internal, "the keys of the sessions cannot be read").Because(err).
			WithHint("put the newest copy of %s in its place; tapedeck key backup makes copies", sessionkeys.FileName)
	case unknown > 0:
		return tapedeck.Errorf(tapedeck.Conflict, "the file %s does not have the keys of %d sessions, such as %q: it is older than they are, or of another folder", sessionkeys.FileName, unknown, example).
			WithHint("put the newest copy of it in its place; tapedeck key backup makes copies")
	}
	return nil
}

// column returns the bytes in a column, nil for null.
func column(v driver.Value) []byte {
	b, _ := v.([]byte)
	return b
}

// A keyring decrypts entries of the catalogue. Without a file, it leaves the encrypted
// members empty.
type keyring struct{ file *sessionkeys.File }

func (s *Store) keyring() keyring { return keyring{s.keys} }

// key returns the key with an id in a column, nil for null and without a file of keys.
func (k keyring) key(id []byte) (*sessionkeys.Key, error) {
	if id == nil || k.file == nil {
		return nil, nil
	}
	parsed, err := sessionkeys.ParseID(id)
	if err != nil {
		return nil, err
	}
	return k.file.Key(parsed)
}

// open sets the encrypted members of an entry. If the key was erased, the session counts as
// deleted, whatever the database says.
func (k keyring) open(v *view, id, sealed, totals []byte) (err error) {
	v.keyID = id
	v.key, err = k.key(id)
	if errors.Is(err, sessionkeys.ErrErased) {
		v.gone = true
		return nil
	}
	if err == nil && v.key != nil && sealed != nil {
		err = store.OpenEntry(v.key, sealed, &v.Session)
	}
	if err == nil && v.key != nil && totals != nil {
		v.Totals.Row, err = store.OpenTotals(v.key, totals)
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Internal, "the entry of session %q cannot be decrypted", v.ID).WithHint(verifyHint).Because(err)
	}
	return nil
}

// keyOf returns the key of a session whose events v has: v itself, or an ancestor.
func (s *Store) keyOf(c *conn, v *view, gen int64) (*sessionkeys.Key, error) {
	id, key := v.keyID, v.key
	if gen != v.Gen {
		found := false
		err := c.query(func(row []driver.Value) error {
			id, found = column(row[0]), true
			return nil
		}, sqlKeyOf, gen)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, errMissingOffset
		}
		if key, err = s.keyring().key(id); err != nil {
			return nil, fmt.Errorf("%w: %w", errSealed, err)
		}
	}
	if id != nil && key == nil {
		return nil, fmt.Errorf("%w: there is no key", errSealed)
	}
	return key, nil
}

// newKey gives a new session its key. A view has that of its session.
func (w *writer) newKey(st *state) (err error) {
	keys := w.store.keys
	if keys == nil {
		return nil
	}
	if gen, isView := store.ViewOf(st.ID); isView && st.Kind == tapedeck.KindView {
		return w.shareKey(st, gen)
	}
	if st.key, err = keys.New(); err != nil {
		return err
	}
	id := st.key.ID()
	st.keyID = id[:]
	return nil
}

// shareKey gives a view the key of the session with a gen. If that was deleted meanwhile,
// there is nothing of which the view could be.
func (w *writer) shareKey(st *state, gen int64) (err error) {
	found := false
	err = w.conn.query(func(row []driver.Value) error {
		st.keyID, found = column(row[0]), true
		return nil
	}, sqlKeyOf, gen)
	if err == nil && !found {
		return errNotFound(st.ID)
	}
	if err == nil {
		st.key, err = w.store.keyring().key(st.keyID)
	}
	return err
}

// split returns the members of an entry that the row has in clear, and the rest encrypted,
// null if the session is not encrypted. Where there are inputs or questions, their columns
// are empty lists then, because queries ask whether they are null.
func (st *state) split() (plain tapedeck.Session, sealed driver.Value, err error) {
	plain = st.Session
	if st.key == nil {
		return plain, nil, nil
	}
	plain.Title, plain.Labels = "", nil
	if plain.Inputs != nil {
		plain.Inputs = []tapedeck.WaitingInput{}
	}
	if plain.Waiting != nil {
		plain.Waiting = []tapedeck.OpenQuestion{}
	}
	b, err := store.SealEntry(st.key, &st.Session)
	return plain, b, err
}

// titleKey returns by what lists in the order of titles are sorted, see [store.TitleKey]. Of
// an encrypted session there is nothing in the row; see [lister.byTitle].
func (st *state) titleKey() string {
	if st.keyID != nil {
		return ""
	}
	return store.TitleKey(&st.Session)
}

func optionalBytes(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return b
}

// ownKey returns the key that is erased with a session, nil for none.
func (st *state) ownKey() driver.Value {
	if st.keyID == nil || st.Kind == tapedeck.KindView {
		return nil
	}
	return st.keyID
}

// eraseKeys erases the keys of deleted sessions, whose ids are in the table purges until
// this is done. It reports whether no key is left to erase.
func (w *writer) eraseKeys() bool {
	if len(w.purge.keys) == 0 {
		return true
	}
	if w.store.keys == nil { // the store was opened to verify it
		return false
	}
	ids := make([]sessionkeys.ID, 0, len(w.purge.keys))
	for _, b := range w.purge.keys {
		if id, err := sessionkeys.ParseID(b); err == nil {
			ids = append(ids, id)
		}
	}
	if err := w.store.keys.Erase(ids...); err != nil {
		w.store.options.Logger.Error("the keys of deleted sessions could not be erased yet; trying again", "error", err)
		return false
	}
	w.purge.keys = nil
	return true
}

// removeErased removes what findErased has found.
func (s *Store) removeErased() error {
	if len(s.erased) == 0 {
		return nil
	}
	s.options.Logger.Info("sessions that were deleted are in the database again, as from a backup; their keys were erased, so they are removed", "sessions", len(s.erased))
	t := removal(s.erased)
	s.erased = nil
	return s.writer.submit(s.running, t, len(t)*rowSize)
}

// A removal is the task of removing sessions that cannot be read any more.
type removal []string

func (t removal) do(w *writer) error {
	for _, id := range t { // forks before their parents
		st, err := w.find(id)
		if err != nil {
			return err
		}
		if st == nil || st.removed {
			continue
		}
		st.gone = false // so that remove does everything
		if err := w.remove(st); err != nil {
			return err
		}
	}
	return nil
}
