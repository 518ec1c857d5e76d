// Package runner defines optional interfaces of a [tapedeck.Runner]. With them a
// runner describes its abilities, the equipment of its agent and the system text of
// its model. The runners are in the folders below, and all of them pass the suite in
// runnertest.
package runner

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// Instructed is a runner whose model gets a system text. The engine stores the text
// in the log before the run that uses it; see [payload.NewPrompt].
type Instructed interface {
	tapedeck.Runner

	// Instructions returns the system text of a run with this config. "" means that the
	// run has no system text.
	Instructions(config json.RawMessage) (string, error)
}

// Equipment is the model, tools and skills of an agent for one invocation, as far as
// they are known before it begins.
type Equipment struct {
	Model  string
	Tools  []string
	Skills []string
}

// Equipped is a runner that knows the equipment of its agent.
type Equipped interface {
	tapedeck.Runner
	Equipment(in tapedeck.Invocation) Equipment
}

// Capable is a runner that reports its capabilities, and whether it can run here.
type Capable interface {
	tapedeck.Runner
	Capabilities() tapedeck.Capabilities

	// Available returns nil if the agent can run here. Otherwise the error says why
	// not; for example, its program is not installed. Available is quick. It starts no
	// process, except to try a sandbox once.
	Available() error
}

// Configurable is a runner that checks the config of a task before the task is accepted. Other
// runners get every config, and fail if they cannot use it.
type Configurable interface {
	tapedeck.Runner

	// CheckConfig refuses a config, which is nil if the task has none.
	CheckConfig(config json.RawMessage) error
}

// NoConfig is CheckConfig of a runner that uses none. An empty object is none.
func NoConfig(config json.RawMessage) error {
	var members map[string]json.RawMessage
	if len(config) == 0 || json.Unmarshal(config, &members) == nil && len(members) == 0 {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the agent takes no config").WithHint("leave it out; the settings of the agent are in the server's configuration")
}

// CheckMembers refuses a config that is not a JSON object, or has a member that is not in names;
// without names it may have any. [encoding/json] would ignore the case of letters.
func CheckMembers(config json.RawMessage, names ...string) error {
	var members map[string]json.RawMessage
	if len(config) > 0 && json.Unmarshal(config, &members) != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the config is not a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if len(names) > 0 && !slices.Contains(names, name) {
			return tapedeck.Errorf(tapedeck.Invalid, "the config has the member %q, which the agent does not know", name).
				WithHint("it can have: %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// TaskAfterHistory returns the task for an agent that already received the history of
// in: the task without the part of the context that the history has, too.
func TaskAfterHistory(in *tapedeck.Invocation) string {
	if in.Unheard == "" {
		return in.Task
	}
	return strings.Replace(in.Task, in.Unheard, "", 1)
}

// Steered returns the texts of the messages that users have sent to the run meanwhile, see
// [tapedeck.Invocation.Steer].
func Steered(ctx context.Context, in *tapedeck.Invocation) ([]string, error) {
	if in.Steer == nil {
		return nil, nil
	}
	messages, err := in.Steer(ctx)
	texts := make([]string, 0, len(messages))
	for _, raw := range messages {
		var m payload.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, tapedeck.Errorf(tapedeck.Internal, "a message for the agent cannot be read").Because(err)
		}
		texts = append(texts, m.Text())
	}
	return texts, err
}

// Opening is a runner that has events which begin an invocation. The engine appends them
// with the beginning of the run, all or none.
type Opening interface {
	tapedeck.Runner

	// Opening returns these events, type and data only. An error refuses the task, and
	// nothing is started. For an invocation that resumes another one, in.History has the
	// active events. in.Delegates has the agents that the invocation may start.
	Opening(ctx context.Context, in tapedeck.Invocation) ([]tapedeck.Event, error)
}

// Durable is a runner whose state is in the log and nowhere else. A run of it stays open
// when the server stops; the engine runs it again at the next start, with
// [tapedeck.Invocation.Begun]. The runs that it started are ended as interrupted; a
// delegation with the same thread resumes them. Such a run may wait for as long as it
// wants: the idle timeout and the server's run timeout do not apply to it. It is resumed
// only by the verb for that, also after other runs on its thread.
//
// Run gets an Invocation without Config, Message and Delegates: they are in the log, or were
// for [Opening], and a run that waits for long would keep them.
type Durable interface {
	tapedeck.Runner
	Durable() // a marker: it does nothing
}

// Reattaching is a runner whose agent works outside of the server and does not end with
// it. After a crash of the server, the engine runs it again for a run that is open, with
// [tapedeck.Invocation.Begun].
type Reattaching interface {
	Capable
	Reattaches() // a marker: it does nothing
}
