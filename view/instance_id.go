package view

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

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

// idIn returns an instance id for a session. It is a UUID whose first 48 bits follow from
// the session, so that [MayBeIn] can say of which session it may be.
func idIn(session, what string) string {
	id := sha256.Sum256([]byte(what + " of " + session))
	of := sha256.Sum256([]byte(session))
	copy(id[:], of[:6])
	id[6] = 0x80 | id[6]&0x0f // version 8: of no other scheme
	id[8] = 0x80 | id[8]&0x3f
	s := hex.EncodeToString(id[:16])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// MayBeIn reports whether an instance id is one that Tapedeck can have made for a session.
// Ids that programs choose are in none.
func MayBeIn(session, id string) bool {
	const of = len("01234567-89ab")
	return len(id) == 36 && id[:of] == idIn(session, "")[:of]
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
		if former == AgentInstance(d.Parent, i.Name, i.Thread) {
			i.ID = AgentInstance(d.Session, i.Name, i.Thread)
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
