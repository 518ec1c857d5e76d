package view

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// AgentInstance returns the instance id of an agent in a thread of a session.
// It is the same in every run of the agent there. Other sessions, forks and
// copies included, have other ids.
func AgentInstance(session, agent, thread string) string {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	return idIn(session, "agent "+agent+" in "+thread)
}

// InstanceID returns the instance id of a thread in which no event names one.
// [Instances.Find] also accepts it after an event has named the instance.
func InstanceID(session, thread string) string {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	return idIn(session, "thread "+thread)
}

// NewInstanceID returns a new instance id for a session.
func NewInstanceID(session string) string { return idIn(session, "new "+rand.Text()) }

// idIn returns an instance id for a session. It is a UUID. Its first half follows from the
// session, so that [MayBeIn] can say of which session it may be. Its second half follows from
// the rest, so that a fork can keep it.
func idIn(session, what string) string {
	of, rest := sha256.Sum256([]byte(session)), sha256.Sum256([]byte(what))
	id := append(of[:8:8], rest[:8]...)
	id[6] = 0x80 | id[6]&0x0f // version 8: of no other scheme
	id[8] = 0x80 | id[8]&0x3f
	s := hex.EncodeToString(id)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// half is the length of the first half of an id.
const half = len("01234567-89ab-8def")

// MayBeIn reports whether an instance id is one that Tapedeck can have made for a session.
// Ids that programs choose are in none.
func MayBeIn(session, id string) bool {
	return IsInstanceID(id) && id[:half] == idIn(session, "")[:half]
}

// IsInstanceID reports whether Tapedeck can have made an id.
func IsInstanceID(id string) bool {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[14] != '8' || id[18] != '-' || id[23] != '-' {
		return false
	}
	digits, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	return err == nil && len(digits) == 16 && hex.EncodeToString(digits) == strings.ReplaceAll(id, "-", "")
}

// nameless returns the placeholder in a fold for the id of an instance that no
// event has named. It is not a valid id, so no event can have it.
func nameless(thread string) string { return "/" + thread }

// maxFormerIDs is the largest number of former ids of an instance. A fork of a
// fork adds one.
const maxFormerIDs = 100

// renameCopied gives each instance its id in a fork. An agent that an engine
// runs gets the id that the engine gives it in the fork, so it is the same
// instance when it runs there again.
func (f *InstanceFold) renameCopied(e *tapedeck.Event) {
	var d struct {
		Parent  string `json:"parent"`
		Session string `json:"session"`
	}
	if !decode(e, &d) || d.Session == "" {
		return
	}
	now := map[string]string{}
	for n := range f.s.Instances {
		i := &f.s.Instances[n]
		if f.isNameless(n) {
			continue
		}
		former := i.ID
		if MayBeIn(d.Parent, former) {
			i.ID = idIn(d.Session, "")[:half] + former[half:]
		} else {
			i.ID = idIn(d.Session, "copy of "+former)
		}
		now[former] = i.ID
		if len(i.FormerIDs) < maxFormerIDs {
			i.FormerIDs = append(i.FormerIDs[:len(i.FormerIDs):len(i.FormerIDs)], former)
		}
		f.index(n)
	}
	for n := range f.s.Instances {
		if id, ok := now[f.s.Instances[n].Parent]; ok {
			f.s.Instances[n].Parent = id
		}
	}
}
