package api

import "time"

// An AuditRecord says who did something that concerns the trust in a server, or was
// refused. It has neither content nor tokens.
type AuditRecord struct {
	Time    time.Time `json:"time"`
	Action  string    `json:"action"`  // such as session.delete
	Outcome string    `json:"outcome"` // allowed, failed or refused

	Actor   string `json:"actor,omitempty"` // the subject; "" if nobody has said who it is
	Role    string `json:"role,omitempty"`  // of the actor; local, program and server are those without a token
	Session string `json:"session,omitempty"`
	TokenID string `json:"token_id,omitempty"`   // of the token that was made or revoked
	Request string `json:"request_id,omitempty"` // from the header X-Request-Id
	Remote  string `json:"remote,omitempty"`     // the address of the connection; behind a proxy, that of the proxy
	Reason  string `json:"reason,omitempty"`     // in words of the server
	Count   int64  `json:"count,omitempty"`      // how many refusals this record stands for; 0 for one
}

// An AuditQuery asks for records of the audit log. Zero members select nothing.
type AuditQuery struct {
	Action  string    // or what it begins with, up to a dot
	Actor   string    //
	Session string    //
	Outcome string    //
	From    time.Time // at or after
	To      time.Time // before
	Limit   int       // 0 for 100, at most 1,000
}

// An AuditPage is a part of the audit log.
type AuditPage struct {
	Records    []AuditRecord `json:"records"`              // newest first
	Next       *time.Time    `json:"next,omitempty"`       // the value of "to" for the page with older records
	Unreadable int           `json:"unreadable,omitempty"` // lines that a crash has cut off, or somebody has changed
}
