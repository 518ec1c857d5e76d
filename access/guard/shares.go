package guard

import (
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// shares are the labels that share a session.
var shares = []string{access.ShareRead, access.ShareWrite}

// sharePrefix begins the name of each label that shares a session.
const sharePrefix = "share."

// checkShares returns an error for labels that look as if they shared a session, and share
// it with nobody. Whether a subject exists cannot be checked: an identity provider has users
// of which the server learns only when they come.
func checkShares(labels map[string]string) error {
	for name, value := range labels {
		if err := checkShare(name, value); err != nil {
			return err
		}
	}
	return nil
}

func checkShare(name, value string) error {
	if !strings.HasPrefix(name, sharePrefix) {
		return nil
	}
	if name != access.ShareRead && name != access.ShareWrite {
		return tapedeck.Errorf(tapedeck.Invalid, "the label %.64q shares nothing", name).WithHint("the labels that share a session are %s and %s", access.ShareRead, access.ShareWrite)
	}
	for _, subject := range access.Subjects(value) {
		if subject == access.Everybody {
			continue
		}
		if err := tapedeck.CheckID("a subject in the label "+name, subject); err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "%w", err).WithHint("write subjects with spaces between them, or * for all users")
		}
	}
	return nil
}

// checkChanges does what checkShares does, for changes of labels.
func checkChanges(labels map[string]*string) error {
	for name, value := range labels {
		if value == nil { // it is removed
			continue
		}
		if err := checkShare(name, *value); err != nil {
			return err
		}
	}
	return nil
}
