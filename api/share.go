package api

import (
	"strings"

	"github.com/tapedeck/tapedeck"
)

// Labels of a session that share it. The value has subjects with spaces or commas between
// them, or "*" for all users. Only the owner and an admin set labels.
const (
	ShareRead  = "share.read"  // they read the session
	ShareWrite = "share.write" // they read it, run tasks in it and append to it
)

// Everybody stands for all users in a label that shares a session.
const Everybody = "*"

// sharePrefix begins the name of each label that shares a session.
const sharePrefix = "share."

// Subjects returns the subjects in the value of a label that shares a session.
func Subjects(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })
}

// CheckShare returns an error for a label that looks as if it shared a session, and shares
// it with nobody. Whether a subject exists cannot be checked: an identity provider has users
// of which the server learns only when they come.
func CheckShare(name, value string) error {
	if !strings.HasPrefix(name, sharePrefix) {
		return nil
	}
	if name != ShareRead && name != ShareWrite {
		return tapedeck.Errorf(tapedeck.Invalid, "the label %.64q shares nothing", name).WithHint("the labels that share a session are %s and %s", ShareRead, ShareWrite)
	}
	for _, subject := range Subjects(value) {
		if subject == Everybody {
			continue
		}
		if err := tapedeck.CheckID("a subject in the label "+name, subject); err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "%w", err).WithHint("write subjects with spaces between them, or * for all users")
		}
	}
	return nil
}
