package sqlite

import (
	"database/sql/driver"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A placed session is one of a page, with its place.
type placed struct {
	place   store.Place
	session tapedeck.Session
}

// byTitle returns a page of a list that is sorted by titles, of a store with encrypted
// sessions. The database does not know the titles, so this reads the entries of all sessions
// that the filter selects, and keeps those of the page.
func (l *lister) byTitle() (tapedeck.SessionPage, error) {
	after, has, err := store.ParseCursor(l.filter)
	if err != nil {
		return tapedeck.SessionPage{}, err
	}
	unsorted := *l.filter
	unsorted.Sort, unsorted.Cursor = store.SortCreated, ""
	query, args, err := listQuery(&unsorted)
	if err != nil {
		return tapedeck.SessionPage{}, err
	}
	order := store.Place.Compare
	if !l.filter.Ascending {
		order = func(a, b store.Place) int { return b.Compare(a) }
	}
	var page []placed // one more than the page has, to know whether there is another one
	add := func(row []driver.Value) error {
		var v view
		if ok, err := l.scan(&v, row); !ok {
			return err
		}
		if !l.shows(&v) {
			return nil
		}
		at := store.PlaceOf(&v.Session, store.SortTitle)
		if has && order(at, after) <= 0 {
			return nil
		}
		i, _ := slices.BinarySearchFunc(page, at, func(p placed, at store.Place) int { return order(p.place, at) })
		if i > l.limit {
			return nil
		}
		page = slices.Insert(page, i, placed{at, v.Session})
		page = page[:min(len(page), l.limit+1)]
		return nil
	}
	if err := l.store.readers.use(l.ctx, func(c *conn) error { return c.query(add, query, args...) }); err != nil {
		return tapedeck.SessionPage{}, err
	}
	if len(page) > l.limit {
		page = page[:l.limit]
		l.page.Next = store.FormatCursor(l.filter, page[l.limit-1].place)
	}
	for _, p := range page {
		l.page.Sessions = append(l.page.Sessions, p.session)
	}
	return l.page, nil
}
