package adk

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// maxID is the greatest length of an id in Tapedeck, in bytes.
const maxID = 128

// LogID returns the id of the Tapedeck session that has the events of an ADK session.
// It has the three names in readable form: "adk:weather:ada:s1". Different names have
// different ids. A fork of an ADK session has another id, by which ADK knows it, too;
// see [Service.Get].
func LogID(appName, userID, sessionID string) string {
	return joinID("adk:", appName, userID, sessionID)
}

// appLogID returns the id of the Tapedeck session that stores the shared state of an app.
func appLogID(app string) string { return joinID("adk-app:", app) }

// userLogID returns the id of the Tapedeck session that stores the shared state of a user
// of an app.
func userLogID(app, user string) string { return joinID("adk-user:", app, user) }

// joinID returns an id of several names. A name has no ":" after it is escaped, and no
// "@@", so no two lists of names have the same id.
func joinID(prefix string, names ...string) string {
	escaped := make([]string, len(names))
	for i, n := range names {
		escaped[i] = escape(n)
	}
	if id := prefix + strings.Join(escaped, ":"); len(id) <= maxID {
		return id
	}
	return prefix + "@@" + digest(strings.Join(escaped, ":"))
}

// escape replaces each byte that a name in an id cannot have by "@" and two digits.
func escape(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "@%02X", c)
		}
	}
	return b.String()
}

// digest returns 52 letters and digits that stand for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// runID returns the id of the nth run of an ADK invocation, from 1. The first run has the
// invocation's own id, unless Tapedeck does not allow that.
func runID(invocation string, n int) string {
	if len(invocation) > maxID-20 || tapedeck.CheckID("the invocation", invocation) != nil {
		invocation = "adk-" + digest(invocation)
	}
	if n > 1 {
		invocation += "." + strconv.Itoa(n)
	}
	return invocation
}

// checkNames reports whether the names of a session can be stored.
func checkNames(appName, userID string) error {
	if appName == "" || userID == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "app_name and user_id are required, got app_name: %q, user_id: %q", appName, userID)
	}
	if err := tapedeck.CheckName("the app's name", appName); err != nil {
		return err
	}
	return tapedeck.CheckName("the user's id", userID)
}

// checkKey reports whether the names identify a session.
func checkKey(k key) error {
	if k.app == "" || k.user == "" || k.session == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "app_name, user_id, session_id are required, got app_name: %q, user_id: %q, session_id: %q", k.app, k.user, k.session)
	}
	if err := checkNames(k.app, k.user); err != nil {
		return err
	}
	return tapedeck.CheckName("the session's id", k.session)
}

// A key identifies a session in ADK.
type key struct{ app, user, session string }

// String returns the key for people.
func (k key) String() string {
	return fmt.Sprintf("%q of app %q and user %q", k.session, k.app, k.user)
}
