package projection

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sort"

	"github.com/tapedeck/tapedeck"
)

// Tables have the first offset of every invocation and every thread. The table at
// a boundary n, a multiple of Options.Every, covers the span(n) events below it.
// Spans are Options.Every times a power of ten. So a look-up reads at most nine
// tables of each span: it hardly depends on the length of the session.

// A nameKey is the digest of the name of an invocation or a thread.
type nameKey [16]byte

func invocationKey(name string) nameKey { return keyOf("invocation ", name) }
func threadKey(name string) nameKey     { return keyOf("thread ", name) }

func keyOf(kind, name string) nameKey {
	sum := sha256.Sum256([]byte(kind + name))
	return nameKey(sum[:16])
}

// names has the first offsets of the invocations and threads of some events.
type names struct{ invocations, threads map[string]int64 }

func (n *names) apply(e *tapedeck.Event) {
	if n.threads == nil {
		n.invocations, n.threads = map[string]int64{}, map[string]int64{}
	}
	if _, ok := n.threads[e.ThreadName()]; !ok {
		n.threads[e.ThreadName()] = e.Offset
	}
	if e.Invocation == "" {
		return
	}
	if _, ok := n.invocations[e.Invocation]; !ok {
		n.invocations[e.Invocation] = e.Offset
	}
}

func (n *names) table() nameTable {
	t := nameTable{}
	for name, offset := range n.invocations {
		t[invocationKey(name)] = offset
	}
	for name, offset := range n.threads {
		t[threadKey(name)] = offset
	}
	return t
}

// A nameTable has the first offset of each name.
type nameTable map[nameKey]int64

// addEarlier adds a table of events that are before those of t.
func (t nameTable) addEarlier(earlier nameTable) { maps.Copy(t, earlier) }

const (
	nameEntry = len(nameKey{}) + 8 // bytes: the key and the offset
	nameShard = 4096               // entries of a record, on average
)

// shardOf returns which of some records has the entry of a key.
func shardOf(key nameKey, shards int64) int64 {
	return int64(uint64(binary.BigEndian.Uint32(key[:])) * uint64(shards) >> 32)
}

// encode returns the records of a table: its entries by key.
func (t nameTable) encode() [][]byte {
	keys := slices.SortedFunc(maps.Keys(t), func(a, b nameKey) int { return bytes.Compare(a[:], b[:]) })
	shards := make([][]byte, 1+len(keys)/nameShard)
	for _, key := range keys {
		s := &shards[shardOf(key, int64(len(shards)))]
		*s = binary.BigEndian.AppendUint64(append(*s, key[:]...), uint64(t[key]))
	}
	return shards
}

// addShard adds the entries of a record.
func (t nameTable) addShard(shard []byte) {
	for e := range slices.Chunk(shard, nameEntry) {
		t[nameKey(e[:16])] = int64(binary.BigEndian.Uint64(e[16:]))
	}
}

// findInShard returns the offset of a key.
func findInShard(shard []byte, key nameKey) (int64, bool) {
	entry := func(i int) []byte { return shard[i*nameEntry : (i+1)*nameEntry] }
	i, ok := sort.Find(len(shard)/nameEntry, func(i int) int { return bytes.Compare(key[:], entry(i)[:16]) })
	if !ok {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(entry(i)[16:])), true
}

// FindInvocation returns the offset of the first event of an invocation, also if
// that event was reverted. found is false if the session never had the invocation.
func (p *Projections) FindInvocation(ctx context.Context, session, invocation string) (offset int64, found bool, err error) {
	return p.find(ctx, session, invocationKey(invocation), func(e *tapedeck.Event) bool { return e.Invocation == invocation })
}

// FindThread returns the offset of the first event of a thread, also if that event
// was reverted. found is false if the session never had the thread.
func (p *Projections) FindThread(ctx context.Context, session, thread string) (offset int64, found bool, err error) {
	return p.find(ctx, session, threadKey(thread), func(e *tapedeck.Event) bool { return e.ThreadName() == thread })
}

func (p *Projections) find(ctx context.Context, session string, key nameKey, matches func(*tapedeck.Event) bool) (offset int64, found bool, err error) {
	s, head, err := p.session(ctx, session, -1)
	if err != nil {
		return 0, false, err
	}
	f, err := p.acquire(ctx, &s) // so that no table is saved while events are erased
	if err != nil {
		return 0, false, err
	}
	defer p.release(f)
	last := head / p.options.Every * p.options.Every
	for n := last; n > 0; n -= p.span(n) { // all tables: an earlier one may have the name, too
		at, ok, err := p.findInTable(ctx, &s, n, key)
		if err != nil {
			return 0, false, err
		}
		if ok {
			offset, found = at, true
		}
	}
	if found {
		return offset, true, p.same(ctx, &s)
	}
	for e, err := range p.raw(ctx, &s, last, head) {
		if err != nil {
			return 0, false, err
		}
		if matches(&e) {
			return e.Offset, true, p.same(ctx, &s)
		}
	}
	return 0, false, p.same(ctx, &s)
}

// span returns how many events the table at a boundary covers.
func (p *Projections) span(n int64) int64 {
	const factor = 10
	span := p.options.Every
	for n%(span*factor) == 0 {
		span *= factor
	}
	return span
}

// findInTable looks a key up in the table at a boundary. It reads two records at
// most, unless the table has to be made.
func (p *Projections) findInTable(ctx context.Context, s *tapedeck.Session, n int64, key nameKey) (int64, bool, error) {
	holder := p.holder(ctx, s, n)
	id := checkpointID(&holder, nameTables, n)
	page, err := p.shards(ctx, id, 0, 1)
	if shard := shardOf(key, page.Head); err == nil && shard > 0 {
		page, err = p.shards(ctx, id, shard, 1)
	}
	if err != nil {
		return 0, false, err
	}
	if len(page.Records) > 0 {
		offset, found := findInShard(page.Records[0].Data, key)
		return offset, found, nil
	}
	t, err := p.makeTable(ctx, s, n)
	offset, found := t[key]
	return offset, found, err
}

// shards reads records of a table. A page without records says that there is no
// table.
func (p *Projections) shards(ctx context.Context, id string, from int64, limit int) (tapedeck.Page, error) {
	page, err := p.store.Read(ctx, id, tapedeck.Range{From: from, Limit: limit})
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		return tapedeck.Page{}, nil
	}
	for _, r := range page.Records {
		if len(r.Data)%nameEntry != 0 {
			p.unreadable(ctx, id, errors.New("a record has half an entry"))
			return tapedeck.Page{}, nil
		}
	}
	return page, err
}

// loadTable returns the table at a boundary. It makes and saves a missing one.
func (p *Projections) loadTable(ctx context.Context, s *tapedeck.Session, n int64) (nameTable, error) {
	holder := p.holder(ctx, s, n)
	id, t := checkpointID(&holder, nameTables, n), nameTable{}
	for from := int64(0); ; {
		page, err := p.shards(ctx, id, from, 0)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			t.addShard(r.Data)
		}
		if from = page.Next; len(page.Records) == 0 || page.CaughtUp() {
			break
		}
	}
	if len(t) > 0 { // every event has a thread, so no table is empty
		return t, nil
	}
	return p.makeTable(ctx, s, n)
}

// makeTable makes the table at a boundary from the log, and saves it.
func (p *Projections) makeTable(ctx context.Context, s *tapedeck.Session, n int64) (nameTable, error) {
	var newest names
	for e, err := range p.raw(ctx, s, n-p.options.Every, n) {
		if err != nil {
			return nil, err
		}
		newest.apply(&e)
	}
	t, err := p.joinTables(ctx, s, n, newest.table())
	if err == nil {
		holder := p.holder(ctx, s, n)
		p.save(ctx, &holder, nameTables, n, t.encode()...)
	}
	return t, err
}

// joinTables returns the table at a boundary, given that of its newest events.
func (p *Projections) joinTables(ctx context.Context, s *tapedeck.Session, n int64, newest nameTable) (nameTable, error) {
	begin := n - p.span(n)
	for n -= p.options.Every; n > begin; n -= p.span(n) {
		earlier, err := p.loadTable(ctx, s, n)
		if err != nil {
			return nil, err
		}
		newest.addEarlier(earlier)
	}
	return newest, nil
}
