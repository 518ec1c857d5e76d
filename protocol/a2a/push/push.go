// Package push sends the push notifications of A2A: a client gives a URL for a task, and
// the server sends it the updates of the task, one after the other, at least once.
//
// Nothing queues up. What is to be sent follows from the log and from the offset below
// which everything was sent, which the store keeps. So notifications survive a crash, and
// a receiver that does not answer costs no memory while it is not tried.
package push

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
)

// Limits of configs.
const (
	MaxPerTask = 10     // configs of one task
	maxActive  = 10_000 // configs of all tasks for which something may follow

	maxID     = 300  // bytes
	maxScheme = 64   // bytes
	maxSecret = 4096 // bytes of a token, and of credentials
)

// A Config says where a client wants to be told of a task, and how.
type Config struct {
	// Version is the version of the protocol in which the client asked, "0.3" or "1.0".
	// Notifications have its form.
	Version string `json:"version"`

	sdk.PushConfig
}

// Check refuses a config to which nothing could be sent. Its id may be empty.
func (d *Dispatcher) Check(c *Config) error {
	if err := d.client.Check(c.URL); err != nil {
		return err
	}
	bad := func(format string, args ...any) *tapedeck.Error {
		return tapedeck.Errorf(tapedeck.Invalid, format, args...)
	}
	switch {
	case len(c.ID) > maxID || strings.Trim(c.ID, idCharacters) != "":
		return bad("the id of the push notification config has more than %d bytes, or other characters than letters, digits and - _ . : @ ~", maxID)
	case c.ID == "." || c.ID == "..": // no URL can have it as the end of its path
		return bad("the id of the push notification config is %q", c.ID).WithHint("choose another one, or none")
	case !isValue(c.Token, maxSecret):
		return bad("the token of the push notification config has more than %d bytes, or characters that no header can have", maxSecret)
	case c.Auth == nil:
		return nil
	case len(c.Auth.Scheme) > maxScheme || strings.Trim(c.Auth.Scheme, schemeCharacters) != "":
		return bad("the authentication scheme of the push notification config is not one of HTTP").WithHint("such as Bearer or Basic")
	case c.Auth.Scheme == "" && c.Auth.Credentials != "":
		return bad("the credentials of the push notification config have no scheme").WithHint("name one, such as Bearer or Basic")
	case !isValue(c.Auth.Credentials, maxSecret):
		return bad("the credentials of the push notification config have more than %d bytes, or characters that no header can have", maxSecret)
	}
	return nil
}

const (
	letters          = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	idCharacters     = letters + "-_.:@~"
	schemeCharacters = letters + "!#$%&'*+-.^_`|~" // those of a token of HTTP
)

// isValue reports whether s can be the value of a header, as it is.
func isValue(s string, limit int) bool {
	return len(s) <= limit && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// header returns the header of the notifications.
func (c *Config) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "A2a-Version": {c.Version}}
	if c.Version == "1.0" {
		h.Set("Content-Type", "application/a2a+json")
	}
	if c.Token != "" {
		h.Set("X-A2A-Notification-Token", c.Token)
	}
	if c.Auth != nil && c.Auth.Credentials != "" {
		h.Set("Authorization", c.Auth.Scheme+" "+c.Auth.Credentials)
	}
	return h
}

// An Update is what a notification tells of a task.
type Update struct {
	Body  []byte    // nil: there is nothing to send, and only Next counts
	First int64     // the offsets of the first and of the last event that it has
	Last  int64     //
	Next  int64     // the updates after it begin at this offset
	Time  time.Time // of the last event
	Ended bool      // nothing follows
}

// A Task names a task.
type Task struct {
	Session string
	Gen     int64  // of the session
	Name    string // of the task in its session
}

// Tasks are the tasks of which clients are told.
type Tasks interface {
	// Updates yields the updates of a task, in the form of a version of the protocol,
	// from an offset on, until the task rests and all that is in the log was yielded. An
	// update without a body says that it waits for more, or that this was the end. It is [tapedeck.NotFound] if there
	// is no such task.
	Updates(ctx context.Context, t Task, version string, from int64) iter.Seq2[Update, error]
}

// A Store keeps configs durably. The suite in store/storetest is its contract.
type Store interface {
	// Active calls each for every config for which something may follow: with the id and
	// the Gen of its session, the task, the id of the config, and the offset below which
	// everything was told. each must not call the store.
	Active(ctx context.Context, each func(session string, gen int64, task, id string, acked int64)) error

	// Of returns the configs of a task, by their ids.
	Of(ctx context.Context, gen int64, task string) (map[string][]byte, error)

	// Put stores a config of a task, also instead of one that has its id. Everything
	// below offset acked was told; below 0 nothing follows. It is [tapedeck.NotFound] if
	// the session does not exist.
	Put(ctx context.Context, gen int64, task, id string, config []byte, acked int64) error

	// Ack stores up to which offset everything was told; below 0 nothing follows. It does
	// nothing if there is no such config.
	Ack(ctx context.Context, gen int64, task, id string, acked int64) error

	// Delete removes a config. It is no error if there is none.
	Delete(ctx context.Context, gen int64, task, id string) error
}

// Options configure a dispatcher. Store and Sessions are required.
type Options struct {
	Store    Store
	Sessions Sessions // the hub

	// Folder is the data folder, in which the key of the configs is kept; "" keeps it in
	// memory.
	Folder string

	// Allow are addresses to which notifications may go although they are not public,
	// such as 127.0.0.0/8. There they may also use plain HTTP.
	Allow []netip.Prefix

	Transport http.RoundTripper // sends notifications; nil for one that connects only to allowed addresses
	Logger    *slog.Logger      // nil for none
}

// Sessions tell where a session ends.
type Sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
}

// withDefaults returns the options with a logger.
func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}
