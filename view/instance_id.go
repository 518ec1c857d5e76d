package view

import (
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
	return idOf("agent " + agent + " in " + thread + " of " + session)
}

// InstanceID returns the instance id of a thread in which no event names one.
// [Instances.Find] also accepts it after an event has named the instance.
func InstanceID(session, thread string) string {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	return idOf("thread " + thread + " of " + session)
}

func idOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "ins_" + hex.EncodeToString(sum[:13])
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
			i.ID = idOf("copy of " + former + " in " + d.Session)
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
