package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/runner"
	"github.com/tapedeck/tapedeck/view"
)

// prepareRun prepares the run of a task in a session. resume means that it must resume the
// newest run of its thread.
func (e *Engine) prepareRun(ctx context.Context, s *tapedeck.Session, t *api.Task, resume bool) (*run, error) {
	var asked *view.Message
	if t.Text == "" && resume {
		own, m, err := e.withoutText(ctx, s, *t)
		if err != nil {
			return nil, err
		}
		t, asked, resume = &own, m, m == nil
	}
	f, err := e.findPredecessor(ctx, s, t.Thread, resume)
	if t.Queued != "" && tapedeck.KindOf(err) == tapedeck.Invalid { // the run before was cancelled before its agent had begun
		f, err = predecessor{lastLink: f.lastLink}, nil
	}
	if err != nil {
		return nil, err
	}
	if t.Rewind != nil || t.Overwrite != nil {
		f.lastLink = nil // that conversation has what they revert
	}
	if asked != nil { // a new run with the history before the message
		f = predecessor{agent: f.agent, asked: asked}
	}
	if t.Overwrite != nil && t.Overwrite.Context != nil {
		f.quiet, f.resumes = true, ""
	}
	if f.instances, err = e.instances(ctx, s); err != nil {
		return nil, err
	}
	agent, err := e.chooseAgent(t, s, &f, resume)
	if err != nil {
		return nil, err
	}
	if isDurable(agent) {
		f.stopped = nil // the log has all that it must know
		if !resume {
			f.resumes = ""
		}
	}
	if f.budget, err = budgetOf(agent, t); err != nil {
		return nil, err
	}
	if err := e.prepare(ctx, s, t.Thread, agent, t.Config, &f); err != nil {
		return nil, err
	}
	if err := e.addResumeContext(ctx, s, agent, &f); err != nil {
		return nil, err
	}
	r := newRun(e, agent, *t, f)
	r.gen, r.heard = s.Gen, s.Head // heard is for its opening
	if asked != nil {
		r.heard = asked.Offset
	}
	return r, r.prepareOpening(ctx)
}

// prepare fills in what the agent needs to start: its folder, a new system text and
// the link to its own conversation.
func (e *Engine) prepare(ctx context.Context, s *tapedeck.Session, thread string, agent *Agent, config json.RawMessage, f *predecessor) (err error) {
	if reason := reasonOf(agent.Available()); reason != "" {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent %s cannot run here: %s", agent.Name, reason)
	}
	if err := checkConfig(agent, config); err != nil {
		return err
	}
	if err := e.openFolder(s, agent, f); err != nil {
		return err
	}
	if f.prompt, err = e.newPrompt(ctx, s, thread, agent, config); err != nil {
		return err
	}
	f.link, err = e.link(ctx, s, thread, agent, f.lastLink)
	return err
}

// checkConfig refuses a config that the agent cannot use.
func checkConfig(agent *Agent, config json.RawMessage) error {
	if c, ok := agent.Runner.(runner.Configurable); ok {
		return c.CheckConfig(config)
	}
	return nil
}

// openFolder opens the folder of the agent: the one that the session has chosen, or its own.
func (e *Engine) openFolder(s *tapedeck.Session, agent *Agent, f *predecessor) (err error) {
	if agent.Folder == nil {
		return nil
	}
	var chosen string
	if len(agent.Folders) > 0 { // other agents do not look at the label
		chosen = s.Labels[api.LabelFolder]
	}
	if chosen != "" && !slices.Contains(agent.Folders, chosen) {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s must not work in the folder %q, which the label %s of the session names", agent.Name, chosen, api.LabelFolder).
			WithHint("it may work in: %s", strings.Join(agent.Folders, ", "))
	}
	e.foldersMu.RLock()
	defer e.foldersMu.RUnlock()
	f.folder, err = agent.Folder(s.ID, chosen)
	return err
}
