package task

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/payload"
)

// start returns agent_start for a run that an outside program has begun. For a run of this
// server it returns nothing: the task is accepted, and its agent has not begun. Then the
// first event of the agent brings agent_start, which a client takes for the proof that the
// task can be resumed.
func (r *run) start(session string, e *tapedeck.Event) []draft {
	var d struct {
		Input struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"input"`
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	ours := tapedeck.MetaOf(d.Metadata)
	s := startData{Session: session, Model: orNull(ours.Model), Tools: httpapi.OrEmpty(ours.Tools), Skills: httpapi.OrEmpty(ours.Skills), Task: r.prompt}
	for _, t := range d.Input.Tools {
		s.Tools = append(s.Tools, t.Name)
	}
	if ours.Owner == "" {
		return drafts(typeAgentStart, s)
	}
	r.waits = &s
	return nil
}

// preludes are the CUSTOM events that can come before an agent begins.
var preludes = []string{"tapedeck.lossy", "task." + typeHookTriggered}

// speaks reports whether e may be the first event of an agent: it is of an agent, and it is
// not about the process that will be one.
func speaks(e *tapedeck.Event) bool {
	return strings.HasPrefix(e.Actor, "agent:") && e.Type != tapedeck.AgentStarted && e.Type != tapedeck.Raw
}

// speaks returns agent_start if e is the first event of the agent. A task that ends well, or
// that can be resumed, had an agent in any case.
func (r *run) speaks(e *tapedeck.Event) []draft {
	s := r.waits
	if s == nil {
		return nil
	}
	var d struct {
		Name     string                `json:"name"`
		Value    narrate.Equipment     `json:"value"`
		Outcome  struct{ Type string } `json:"outcome"`
		Metadata json.RawMessage       `json:"metadata"`
	}
	_ = json.Unmarshal(e.Data, &d) // see partOf
	switch {
	case e.Type == tapedeck.RunFinished && d.Outcome.Type == payload.OutcomeCancelled && !resumable(d.Metadata):
		return nil
	case e.Type == tapedeck.Custom && slices.Contains(preludes, d.Name):
		return nil
	case e.Type == tapedeck.Custom && d.Name == narrate.EquipmentName:
		s.equip(&d.Value)
	}
	r.waits = nil
	return []draft{{typeAgentStart, *s, startPart}}
}

// equip adds what an agent has said of itself when it began.
func (s *startData) equip(q *narrate.Equipment) {
	if q.Model != "" {
		s.Model = &q.Model
	}
	if q.Tools != nil {
		s.Tools = q.Tools
	}
	if q.Skills != nil {
		s.Skills = q.Skills
	}
}

// resumable reports whether a cancelled run can be resumed, from the metadata of its end.
func resumable(metadata json.RawMessage) bool {
	can := tapedeck.MetaOf(metadata).Resumable
	return can == nil || *can
}
