package view

import (
	"bytes"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A LastMessage is the beginning of the newest message of a user or an agent in the main
// thread.
type LastMessage struct {
	Role string `json:"role"` // user or assistant
	Text string `json:"text"` // at most 200 characters
}

const maxLastText = 200 // characters

// A lastMessage is a [LastMessage] with what its parts name it by.
type lastMessage struct {
	ID string `json:"id"` // "" if none follow
	LastMessage
	Chars  int            `json:"chars"`           // number of characters in Text
	Halves payload.Halves `json:"halves,omitzero"` // of the pieces that follow
}

// say notes a message as the newest one. One without text is noted when its text comes.
func (f *SummaryFold) say(e *tapedeck.Event, id, role, text string) {
	if payload.IsSubThread(e.Thread) || role != payload.RoleUser && role != payload.RoleAssistant {
		return
	}
	m := &lastMessage{ID: id, LastMessage: LastMessage{Role: role}}
	m.add(text)
	if m.Chars > 0 {
		f.s.Last, f.s.Begun = m, nil
	} else {
		f.s.Begun = m
	}
}

// sayMore adds a part of the text of a message that say has noted.
func (f *SummaryFold) sayMore(e *tapedeck.Event) {
	if payload.IsSubThread(e.Thread) || f.s.Begun == nil && (f.s.Last == nil || f.s.Last.Chars >= maxLastText) {
		return // there is no need to decode it
	}
	var d struct {
		MessageID string        `json:"messageId"`
		Delta     payload.Piece `json:"delta"`
	}
	if !decode(e, &d) || d.MessageID == "" || d.Delta == "" {
		return
	}
	if m := f.s.Begun; m != nil && m.ID == d.MessageID {
		if m.add(m.Halves.Next(d.Delta)); m.Chars > 0 {
			f.s.Last, f.s.Begun = m, nil
		}
		return
	}
	if m := f.s.Last; m != nil && m.ID == d.MessageID {
		m.add(m.Halves.Next(d.Delta))
	}
}

func (m *lastMessage) add(text string) {
	for _, r := range text {
		if m.Chars >= maxLastText {
			return
		}
		m.Text += string(r)
		m.Chars++
	}
}

// jumped forgets the newest message, because it may have been reverted.
func (f *SummaryFold) jumped(e *tapedeck.Event) {
	f.applyEntry(e)
	f.s.Last, f.s.Begun = nil, nil
}

// A SessionSummary is the short form of a [Summary] for lists.
type SessionSummary struct {
	StartedAt     *Time           `json:"started_at,omitempty"` // the time of the first event of its own conversation
	UpdatedAt     *Time           `json:"updated_at,omitempty"` // the time of the newest such event
	Axis          Axis            `json:"axis"`                 // what a player of the session moves along
	RecordingMS   int64           `json:"recording_ms"`         // the length of the recording, in milliseconds
	DurationMS    int64           `json:"duration_ms"`          // the time that the runs took, in milliseconds; an open run counts up to its newest event
	Turns         int64           `json:"turns_count"`
	Tokens        int64           `json:"tokens_used"`
	CostUSD       *float64        `json:"cost_usd,omitempty"` // absent if no event reported a cost
	Model         string          `json:"model,omitempty"`    // the model that read and wrote the most tokens; absent if none was reported
	ToolCalls     int64           `json:"tool_calls"`
	ToolsFailed   int64           `json:"tools_failed"`   // the number of tool calls that failed
	FilesModified int64           `json:"files_modified"` // the number of files
	LinesAdded    int64           `json:"lines_added"`
	LinesRemoved  int64           `json:"lines_removed"`
	LastMessage   *LastMessage    `json:"last_message,omitempty"` // absent without a message, and after a rewind until the next one
	FinalStatus   tapedeck.Status `json:"final_status,omitempty"` // absent while a run is open, and before the first run has ended
}

// A ListRow is what the catalogue keeps of a session: its row in lists, and what it used
// by day.
type ListRow struct {
	SessionSummary
	Days []DayUsage `json:"days"` // never null
}

// HasDays reports whether the JSON of a [ListRow] has days: older versions made rows
// without them. A quotation mark in a message is escaped, so no text looks like the member.
func HasDays(row []byte) bool { return bytes.Contains(row, []byte(`"days":[`)) }

// Short returns the short form.
func (s *Summary) Short() SessionSummary {
	out := SessionSummary{
		StartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt, Axis: s.Axis, RecordingMS: s.RecordingMS,
		DurationMS: s.DurationMS, Turns: s.Turns, Tokens: s.Tokens.Total, CostUSD: s.CostUSD,
		FilesModified: int64(len(s.FilesModified)) + s.FilesLeftOut, LinesAdded: s.LinesAdded, LinesRemoved: s.LinesRemoved,
		LastMessage: s.LastMessage, FinalStatus: s.FinalStatus,
	}
	most := int64(-1)
	for _, m := range s.Models {
		if m.Model != "" && m.Total > most {
			out.Model, most = m.Model, m.Total
		}
	}
	for _, t := range s.Tools {
		out.ToolCalls, out.ToolsFailed = plus(out.ToolCalls, t.Count), plus(out.ToolsFailed, t.Failed)
	}
	return out
}
