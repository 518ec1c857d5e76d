// Package audit keeps the audit log of a server: who deleted, exported, erased or shared a
// session, made or revoked a token, logged in, or was refused.
//
// The log is files of JSON lines in the folder "audit" of the data folder. Records are in
// three files by who could fill them: what users do cannot push out what admins did, and
// what strangers try cannot push out either.
package audit

import (
	"context"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/secret"
)

// Folder is the name of the folder of the log in the data folder.
const Folder = "audit"

// These are the actions.
const (
	Delete       = "session.delete"
	Erase        = "session.erase"
	Export       = "session.export"
	Share        = "session.share"        // labels that share it were changed
	StreamDelete = "stream.delete"        //
	Issue        = "session_token.create" // of one session; a share link is one
	Revoke       = "session_token.revoke" //
	TokenCreate  = "token.create"         // in the file of tokens, by the command line
	TokenRevoke  = "token.revoke"         //
	TokenAdded   = "token.added"          // the server has found it in the file
	TokenRemoved = "token.removed"        //
	Backup       = "backup.make"          // of the data folder, by the command line
	Prune        = "backup.prune"         // earlier moments are removed from the backup
	Restore      = "backup.restore"       // this folder was restored from a backup
	Login        = "login"                // of a browser
	Logout       = "logout"               //
	Access       = "access"               // anything else that was refused
)

// These are the outcomes. An allowed action is about to be carried out, or was; if it
// fails, a second record says so.
const (
	Allowed = "allowed"
	Failed  = "failed"
	Refused = "refused"
)

// These are the roles of actors without a token.
const (
	RoleLocal   = "local"   // the command line, on the data folder itself
	RoleProgram = "program" // the program in which the server is embedded
	RoleServer  = "server"  // the server itself
)

// A strand is a part of the log with files and a limit of its own.
type strand struct {
	name  string
	size  int64 // of the largest file, in bytes
	files int   // how many are kept
	sync  bool  // a record is on the disk before Add returns
}

var (
	admins  = &strand{name: "admin", size: 16 << 20, files: 8, sync: true}
	users   = &strand{name: "users", size: 32 << 20, files: 8, sync: true}
	refused = &strand{name: "refused", size: 4 << 20, files: 4}
	strands = []*strand{admins, users, refused}
)

// strandOf returns the strand of a record. Tokens of sessions and log-ins come with the
// traffic, so they are with the users, also those of admins.
func strandOf(r *api.AuditRecord) *strand {
	switch {
	case r.Outcome == Refused:
		return refused
	case r.Action == Issue, r.Action == Login, r.Action == Logout:
		return users
	case r.Role == "user", r.Role == "reader", r.Role == "agent":
		return users
	}
	return admins
}

// maxText is the length of the longest text in a record, in bytes.
const maxText = 256

// clean makes the texts of a record fit for the log: they are short and have no token.
func clean(r *api.AuditRecord) {
	for _, text := range []*string{&r.Action, &r.Actor, &r.Role, &r.Session, &r.TokenID, &r.Request, &r.Remote, &r.Reason} {
		s := strings.ToValidUTF8(*text, "\uFFFD")
		if len(s) > maxText {
			cut := maxText
			for !utf8.RuneStart(s[cut]) {
				cut--
			}
			s = s[:cut]
		}
		*text = secret.Cut(s)
	}
}

// A Request is what a record says about the request that caused it.
type Request struct {
	ID     string
	Remote string

	noted atomic.Bool // its refusal was recorded
}

// Note reports whether the refusal of a request is not recorded yet, and is now.
func (r *Request) Note() bool { return r == nil || !r.noted.Swap(true) }

type contextKey struct{}

// WithRequest returns a context of a request.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// RequestOf returns the request of a context, nil if there is none.
func RequestOf(ctx context.Context) *Request {
	r, _ := ctx.Value(contextKey{}).(*Request)
	return r
}
