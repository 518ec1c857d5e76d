package guard

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// Append appends to a session. The actor of the events is that of the identity.
func (v *Guarded) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	need := access.Write
	if a.Close {
		need = access.Own
	}
	if i := access.From(ctx); i != nil && i.Role == access.Agent && !a.Close {
		return v.appendAsAgent(ctx, i, a)
	}
	ctx, i, err := v.g.allow(ctx, a.Session, need)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	if err := v.g.sign(i, &a); err != nil {
		return tapedeck.Appended{}, err
	}
	return v.verbs.Append(ctx, a)
}

// AppendAfter rewinds a session and appends to it.
func (v *Guarded) AppendAfter(ctx context.Context, r api.Rewind, a tapedeck.Append) (tapedeck.Appended, error) {
	ctx, err := v.write(ctx, r.Session, &r.Actor)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	if err := v.g.sign(access.From(ctx), &a); err != nil {
		return tapedeck.Appended{}, err
	}
	return v.verbs.AppendAfter(ctx, r, a)
}

// sign takes an append from the quota of an identity, and makes its events and its producer
// those of the identity.
func (g *Guard) sign(i *access.Identity, a *tapedeck.Append) error {
	if err := g.takeAppend(i, a); err != nil {
		return err
	}
	a.Events, a.Producer = signed(i, a.Events), scoped(i, a.Producer)
	return nil
}

// signed returns events with the actor of an identity.
func signed(i *access.Identity, events []tapedeck.Event) []tapedeck.Event {
	by := i.Actor()
	out := slices.Clone(events)
	for n := range out {
		if i.Role != access.Admin || out[n].Actor == "" {
			out[n].Actor = by
		}
	}
	return out
}

// maxProducer is the longest id of a producer, in bytes.
const maxProducer = 512

// scoped returns the producer as the store knows it. The id of a token of one session gets
// its subject as a part: such a token must not use up the numbers of its owner's producers.
func scoped(i *access.Identity, p *tapedeck.Producer) *tapedeck.Producer {
	if p == nil || i.Limits.Session == "" {
		return p
	}
	id := string(i.Role) + ":" + i.Subject + "/" + p.ID
	if len(id) > maxProducer {
		sum := sha256.Sum256([]byte(id))
		id = string(i.Role) + ":" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return &tapedeck.Producer{ID: id, Epoch: p.Epoch, Seq: p.Seq}
}

// appendAsAgent appends events of an agent to its run, as long as that is open.
func (v *Guarded) appendAsAgent(ctx context.Context, i *access.Identity, a tapedeck.Append) (tapedeck.Appended, error) {
	ctx, _, err := v.g.allow(ctx, a.Session, access.Read)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	if err := v.g.sign(i, &a); err != nil {
		return tapedeck.Appended{}, err
	}
	s, err := v.g.head(ctx, a.Session)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	run, open := runOf(&s, i.Limits.Invocation)
	if !open && a.Producer == nil { // a repetition is harmless, and its answer is wanted
		return tapedeck.Appended{}, ended(i)
	}
	for n := range a.Events {
		if err := ofAgent(i, &a.Events[n], run.Thread); err != nil {
			return tapedeck.Appended{}, tapedeck.AtIndex(err, n, len(a.Events))
		}
	}
	check := a.Check
	a.Check = func(s *tapedeck.Session) error {
		if now, open := runOf(s, i.Limits.Invocation); !open || now.Thread != run.Thread {
			return ended(i)
		}
		if check == nil {
			return nil
		}
		return check(s)
	}
	return v.verbs.Append(ctx, a)
}

func runOf(s *tapedeck.Session, invocation string) (tapedeck.OpenRun, bool) {
	n := slices.IndexFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Invocation == invocation })
	if n < 0 {
		return tapedeck.OpenRun{}, false
	}
	return s.Runs[n], true
}

func ended(i *access.Identity) error {
	return tapedeck.Errorf(tapedeck.Forbidden, "run %s is not open, and this token writes no other", i.Limits.Invocation)
}

// ofAgent checks that an agent may append an event, and puts it into the agent's run.
func ofAgent(i *access.Identity, e *tapedeck.Event, thread string) error {
	if e.Invocation == "" {
		e.Invocation = i.Limits.Invocation
	}
	if e.Thread == "" && thread != tapedeck.MainThread {
		e.Thread = thread
	}
	switch {
	case e.Invocation != i.Limits.Invocation:
		return tapedeck.Errorf(tapedeck.Forbidden, "this token writes run %s, and not run %s", i.Limits.Invocation, e.Invocation)
	case thread != "" && e.ThreadName() != thread:
		return tapedeck.Errorf(tapedeck.Forbidden, "this token writes thread %s, and not thread %s", thread, e.ThreadName())
	case !agents(e):
		return tapedeck.Errorf(tapedeck.Forbidden, "an agent's token does not append this %s", e.Type).
			WithHint("it appends what the agent says and does, and no messages of users")
	}
	return nil
}

// agents reports whether an event is one that an agent sends of itself.
func agents(e *tapedeck.Event) bool {
	switch e.Type {
	case tapedeck.RunStarted, tapedeck.MessagesSnapshot:
		return false
	case view.TypeAgentState, view.TypeToolStatus, tapedeck.PlanUpdated, tapedeck.UsageReported, tapedeck.PermissionRequested, tapedeck.TerminalOutput, tapedeck.TerminalExit, tapedeck.TerminalResize:
		return true
	case tapedeck.MessageAdded:
		var d struct {
			Message struct {
				Role string `json:"role"`
			} `json:"message"`
		}
		return e.Unpack(&d) && (d.Message.Role == "assistant" || d.Message.Role == "tool" || d.Message.Role == "reasoning")
	}
	if strings.HasPrefix(e.Type, "TEXT_MESSAGE_") {
		var d struct {
			Role string `json:"role"`
		}
		return e.Unpack(&d) && (d.Role == "" || d.Role == "assistant")
	}
	return !strings.Contains(e.Type, ".")
}
