package api

import "time"

// A NewToken asks for a token of one session.
type NewToken struct {
	Session    string     `json:"-"`
	Role       string     `json:"role"`                 // reader, user, or agent
	Expires    *time.Time `json:"expires,omitempty"`    // when it ends to be valid, at most 366 days from now; absent: in an hour
	Subject    string     `json:"subject,omitempty"`    // who uses it, as an id; absent: who asks for it. Only an admin names another user; for an agent it is the name of the agent
	Forks      bool       `json:"forks,omitempty"`      // it is good for the forks of the session by the same owner, too
	Before     *int64     `json:"before,omitempty"`     // above 0: only the events before this offset can be read with it; for the role reader
	Invocation string     `json:"invocation,omitempty"` // the open run that an agent writes with it; for the role agent
	Name       string     `json:"name,omitempty"`       // for people, at most 512 bytes; a token with a name is listed
}

// An IssuedToken is the answer to a [NewToken].
type IssuedToken struct {
	ID      string    `json:"id"`    // revokes it
	Token   string    `json:"token"` // it is shown this once
	Session string    `json:"session_id"`
	Role    string    `json:"role"`
	Subject string    `json:"subject"`
	Expires time.Time `json:"expires"`
}

// SessionTokens lists valid tokens of sessions, newest first: those of one session that have a
// name, or for an admin those of all sessions that have a name or were used since the server
// has started.
type SessionTokens struct {
	Tokens []SessionToken `json:"tokens"`
	More   bool           `json:"more,omitempty"` // there are older ones
}

// A SessionToken is a token in a list, without the token itself.
type SessionToken struct {
	ID         string    `json:"id"`   // revokes it
	Name       string    `json:"name"` // "" for none
	Role       string    `json:"role"`
	Subject    string    `json:"subject"`
	Session    string    `json:"session_id"`
	IssuedBy   string    `json:"issued_by"` // the subject who issued it
	Created    time.Time `json:"created_at"`
	Expires    time.Time `json:"expires"`
	Before     int64     `json:"before,omitempty"`     // only the events before this offset can be read with it
	Forks      bool      `json:"forks,omitempty"`      // it is good for the forks of the session, too
	Invocation string    `json:"invocation,omitempty"` // the run that an agent writes with it
}
