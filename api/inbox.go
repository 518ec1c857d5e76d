package api

import "github.com/tapedeck/tapedeck/view"

// An Inbox is a page of the questions that wait for people, newest first, over all
// sessions that the sender may read.
type Inbox struct {
	Questions []InboxQuestion `json:"questions"`
	Total     int             `json:"total"`          // number of the questions on all pages
	Next      string          `json:"next,omitempty"` // cursor of the next page; "" on the last page
}

// An InboxQuestion is a pending question and its session.
type InboxQuestion struct {
	Session  InboxSession    `json:"session"`
	Question view.Permission `json:"question"`
}

// An InboxSession says which session asks.
type InboxSession struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
	Owner string `json:"owner,omitempty"`
	Agent string `json:"agent,omitempty"`
}
