package view

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tapedeck/tapedeck"
)

// AgentInstance returns the id of an agent in a thread of a session. It is the
// same in every run of the agent there, and no other session has it: a fork and a
// copy have an id of their own for the agent.
func AgentInstance(session, agent, thread string) string {
	if thread == "" {
		thread = tapedeck.MainThread
	}
	return idOf("agent " + agent + " in " + thread + " of " + session)
}

// InstanceID returns the id of the instance of a thread in which no event names
// one. [Instances.Find] also finds by it the instance that is named later.
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

// nameless stands in a fold for the id of an instance that nothing has named. No
// event can have it, for it is not a valid id.
func nameless(thread string) string { return "/" + thread }

// maxFormerIDs is the most former ids that an instance keeps: one for each fork
// of a fork.
const maxFormerIDs = 100

// copied gives each instance the id that it has in a fork. An agent that an engine
// has run gets the id that the engine gives it in the fork, so that it stays the
// same instance when it runs there again.
func (f *InstanceFold) copied(e *tapedeck.Event) {
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
		f.know(n)
	}
	for n := range f.s.Instances {
		if id, ok := now[f.s.Instances[n].Parent]; ok {
			f.s.Instances[n].Parent = id
		}
	}
}
