package agui

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// archivedLabel is the label of a session that a list of threads leaves out. Its
// value is [archived].
const (
	archivedLabel = "archived"
	archived      = "true"
)

// A threadRow is a session as CopilotKit lists it.
type threadRow struct {
	ID           string     `json:"id"`
	Name         *string    `json:"name"`
	Agent        string     `json:"agentId"`
	Organization string     `json:"organizationId"`
	CreatedBy    string     `json:"createdById"`
	Archived     bool       `json:"archived"`
	Created      time.Time  `json:"createdAt"`
	Updated      time.Time  `json:"updatedAt"`
	LastRun      *time.Time `json:"lastRunAt,omitempty"`
}

// rowOf returns a session as a thread of an agent. agent is the name that the client
// uses, because it drops threads of other names.
func rowOf(s *tapedeck.Session, agent string) threadRow {
	t := threadRow{ID: s.ID, Agent: agent, CreatedBy: s.Owner, Archived: s.Labels[archivedLabel] == archived, Created: s.Created, Updated: s.Updated}
	if s.Title != "" {
		t.Name = &s.Title
	}
	if s.Status.Begun() {
		t.LastRun = &s.Updated
	}
	return t
}

// Limits of a list of threads: how many rows one answer has at most, and how many
// pages of sessions it looks at.
const (
	maxThreads   = 1000
	defThreads   = 50
	threadsPages = 20
)

// threads lists the sessions of an agent, newest first.
func (h *handler) threads(w http.ResponseWriter, r *http.Request) error {
	q := httpapi.ParseQuery(r, "agentId", "limit", "cursor", "includeArchived", "userId", "organizationId")
	name, limit, all, cursor := q.String("agentId"), q.Limit(defThreads, maxThreads), q.Flag("includeArchived"), q.String("cursor")
	if q.Err != nil {
		return q.Err
	}
	f := tapedeck.Filter{Cursor: cursor}
	if name != "" {
		var err error
		if f.Agent, err = h.agent(name); err != nil {
			return err
		}
		if f.Agent == "" {
			f.Agent = h.Verbs.Agents()[0].Name
		}
	}
	rows := []threadRow{}
	for range threadsPages {
		f.Limit = limit - len(rows)
		page, err := h.Sessions.List(r.Context(), f)
		if err != nil {
			return err
		}
		for i := range page.Sessions {
			if row := rowOf(&page.Sessions[i], name); all || !row.Archived {
				rows = append(rows, row)
			}
		}
		if f.Cursor = page.Next; page.Next == "" || len(rows) >= limit {
			break
		}
	}
	out := struct {
		Threads []threadRow `json:"threads"`
		Next    *string     `json:"nextCursor"`
	}{Threads: rows}
	if f.Cursor != "" {
		out.Next = &f.Cursor
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// A threadChange is the body of a request that changes a thread.
type threadChange struct {
	Agent    string  `json:"agentId"`
	Name     *string `json:"name"`
	Archived *bool   `json:"archived"`
}

// readChange reads a thread and what to change of it.
func (h *handler) readChange(w http.ResponseWriter, r *http.Request) (id string, c threadChange, err error) {
	id = r.PathValue("thread")
	if err = tapedeck.CheckID("the thread", id); err != nil || r.ContentLength == 0 {
		return id, c, err
	}
	body, err := h.readJSON(w, r)
	if err == nil && json.Unmarshal(body, &c) != nil {
		err = tapedeck.Errorf(tapedeck.Invalid, "agentId and name must be strings, and archived true or false")
	}
	return id, c, err
}

func (h *handler) changeThread(w http.ResponseWriter, r *http.Request) error {
	id, c, err := h.readChange(w, r)
	if err != nil {
		return err
	}
	return h.change(w, r, id, c)
}

func (h *handler) archiveThread(w http.ResponseWriter, r *http.Request) error {
	id, c, err := h.readChange(w, r)
	if err != nil {
		return err
	}
	return h.change(w, r, id, threadChange{Agent: c.Agent, Archived: new(true)})
}

func (h *handler) change(w http.ResponseWriter, r *http.Request, id string, c threadChange) error {
	change := api.Rename{Session: id, Title: c.Name}
	if c.Archived != nil {
		s, err := h.Sessions.Head(r.Context(), id)
		if err != nil {
			return err
		}
		change.Labels = map[string]string{}
		maps.Copy(change.Labels, s.Labels)
		delete(change.Labels, archivedLabel)
		if *c.Archived {
			change.Labels[archivedLabel] = archived
		}
	}
	s, err := h.Verbs.Rename(r.Context(), change)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, rowOf(&s, c.Agent))
}

func (h *handler) deleteThread(w http.ResponseWriter, r *http.Request) error {
	id, _, err := h.readChange(w, r)
	if err == nil {
		err = h.Verbs.Delete(r.Context(), id)
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, struct {
		Deleted bool `json:"deleted"`
	}{true})
}
