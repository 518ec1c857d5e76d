package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

var inboxParameters = []string{"agent", "owner", "cursor", "limit"}

// maxInbox is how many questions an inbox has, on all pages. They are sorted in memory.
const maxInbox = 10_000

// A waiting is a question in the inbox.
type waiting struct {
	session  *tapedeck.Session
	question *tapedeck.OpenQuestion
}

// An inboxPlace is the place of a question in the order of the inbox.
type inboxPlace struct{ asked, gen, offset int64 }

func (w *waiting) place() inboxPlace {
	return inboxPlace{w.question.Asked.UnixMilli(), w.session.Gen, w.question.Offset}
}

// compare orders places newest first.
func (p inboxPlace) compare(o inboxPlace) int {
	return cmp.Or(cmp.Compare(o.asked, p.asked), cmp.Compare(o.gen, p.gen), cmp.Compare(o.offset, p.offset))
}

// String returns the place as a cursor.
func (p inboxPlace) String() string { return fmt.Sprintf("%d-%d-%d", p.asked, p.gen, p.offset) }

func (h *handler) inbox(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, inboxParameters...)
	f := tapedeck.Filter{Status: tapedeck.StatusWaiting, Agent: q.Filter("agent"), Owner: q.Filter("owner"), Limit: pageLimit}
	cursor, limit := q.String("cursor"), q.Limit(listDefault, pageLimit)
	var after inboxPlace
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "%d-%d-%d", &after.asked, &after.gen, &after.offset); err != nil || after.String() != cursor {
			q.Fail("the cursor %q is not one of ours", cursor)
		}
	}
	if q.Err != nil {
		return q.Err
	}
	all, err := h.waiting(r.Context(), f)
	if err != nil {
		return err
	}
	out := api.Inbox{Questions: []api.InboxQuestion{}, Total: len(all)}
	if cursor != "" {
		i, found := slices.BinarySearchFunc(all, after, func(w waiting, p inboxPlace) int { return w.place().compare(p) })
		if found {
			i++
		}
		all = all[i:]
	}
	if len(all) > limit {
		out.Next = all[limit-1].place().String()
		all = all[:limit]
	}
	for i := range all {
		p, err := h.openQuestion(r.Context(), &all[i])
		switch {
		case err != nil:
			return err
		case p == nil:
			continue
		}
		s := all[i].session
		out.Questions = append(out.Questions, api.InboxQuestion{Session: api.InboxSession{ID: s.ID, Title: s.Title, Owner: s.Owner, Agent: s.Agent}, Question: *p})
	}
	w.Header().Set("Cache-Control", "no-store")
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// waiting returns the questions of all sessions that match a filter, newest first.
func (h *handler) waiting(ctx context.Context, f tapedeck.Filter) ([]waiting, error) {
	var all []waiting
	for len(all) < maxInbox {
		page, err := h.Sessions.List(ctx, f)
		if tapedeck.KindOf(err) == tapedeck.Forbidden {
			return nil, nil // who may not list sessions, has no inbox; every page of the screen asks for it
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Sessions {
			s := &page.Sessions[i]
			for j := range s.Waiting {
				all = append(all, waiting{s, &s.Waiting[j]})
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b waiting) int { return a.place().compare(b.place()) })
	return all, nil
}

// openQuestion returns a question as the conversation has it, nil if the session was
// deleted in the meantime.
func (h *handler) openQuestion(ctx context.Context, w *waiting) (*view.Permission, error) {
	page, err := h.Sessions.Read(ctx, w.session.ID, tapedeck.Range{From: w.question.Offset, Limit: 1})
	if k := tapedeck.KindOf(err); err != nil && (k == tapedeck.NotFound || k == tapedeck.Gone) {
		return nil, nil
	}
	if err != nil || len(page.Records) == 0 {
		return nil, err
	}
	e, err := page.Records[0].Event()
	if err != nil {
		return nil, err
	}
	var c view.Conversation
	c.Apply(&e)
	asked := c.Snapshot().Permissions
	if len(asked) == 0 { // it was deleted, and another session has its id
		return nil, nil
	}
	asked[0].Invocation = w.question.Invocation
	return &asked[0], nil
}
