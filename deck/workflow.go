package deck

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/engine"
	"github.com/tapedeck/tapedeck/engine/workflow"
	walker "github.com/tapedeck/tapedeck/runner/workflow"
)

// walker returns the agent that walks workflows. Its tasks can go to all agents of the deck.
func (d *Deck) walker(diagrams workflow.Store) engine.Agent {
	a := engine.Agent{
		Agent:      tapedeck.Agent{Name: workflow.DefaultAgent, Kind: "workflow", Description: "runs diagrams in BPMN 2.0"},
		Runner:     walker.New(walker.Options{Lookup: lookup(diagrams)}),
		RunTimeout: -1, IdleTimeout: -1,
	}
	for _, agent := range d.options.Agents {
		a.Starts = append(a.Starts, agent.Name)
	}
	return a
}

// attach tells the agents that are workflows which diagrams are stored, and which agents
// their tasks can go to: all others, if the agent names none.
func attach(agents []engine.Agent, diagrams workflow.Store) {
	for i := range agents {
		r, ok := agents[i].Runner.(*walker.Runner)
		if !ok {
			continue
		}
		if agents[i].Starts == nil {
			for j := range agents {
				if i != j {
					agents[i].Starts = append(agents[i].Starts, agents[j].Name)
				}
			}
		}
		r.Attach(lookup(diagrams), agents[i].Starts)
	}
}

// lookup returns the function with which a walker reads stored diagrams.
func lookup(diagrams workflow.Store) func(ctx context.Context, name, digest string) ([]byte, error) {
	return func(ctx context.Context, name, digest string) ([]byte, error) {
		_, diagram, err := diagrams.Get(ctx, name, digest)
		return diagram, err
	}
}

// checkNames refuses agents with the name of the agent that walks workflows.
func checkNames(agents []Agent) error {
	if !slices.ContainsFunc(agents, func(a Agent) bool { return a.Name == workflow.DefaultAgent }) {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Invalid, "an agent cannot have the name %s, which the server uses for its own", workflow.DefaultAgent).WithHint("give it another name")
}
