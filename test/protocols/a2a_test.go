package protocols

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// The methods of the two versions of A2A.
var a2aMethods = map[string]struct{ list, subscribe string }{
	"1.0": {"ListTasks", "SubscribeToTask"},
	"0.3": {"tasks/list", "tasks/resubscribe"},
}

// An a2aReader follows the tasks of the session, its context.
type a2aReader struct {
	*reader
	version string
	resumes bool // it continues a stream with Last-Event-ID
	tasks   []*a2aTask
	last    string // the id of the newest frame of the open stream
}

type a2aTask struct {
	ID        string
	Status    a2aStatus
	History   []a2aMessage
	Artifacts []*a2aArtifact
}

type a2aStatus struct {
	State   string
	Message *a2aMessage
}

type a2aMessage struct {
	MessageID, Role string
	Parts           []a2aPart
}

type a2aPart struct {
	Text *string
	Data struct {
		ID, Name string
		Args     json.RawMessage
		Response struct{ Result json.RawMessage }
	}
	Metadata struct {
		Type string `json:"adk_type"`
	}
}

type a2aArtifact struct {
	ArtifactID string
	Parts      []a2aPart
}

// An a2aUpdate is a result on a stream: in version 0.3 the thing itself, of some kind, in
// version 1.0 a member with it.
type a2aUpdate struct {
	Kind         string
	Task         *a2aTask
	StatusUpdate *struct{ Status a2aStatus }
	Artifact     *struct {
		Artifact a2aArtifact
		Append   bool
	} `json:"artifactUpdate"`
}

// a2aResuming follows with version 1.0, and continues a stream with Last-Event-ID.
func a2aResuming() *reader { return newA2A("1.0", true) }

// a2aListing follows with version 0.3, as a page that remembers only its context.
func a2aListing() *reader { return newA2A("0.3", false) }

func newA2A(version string, resumes bool) *reader {
	r := &reader{name: "A2A " + version, atEnd: true, without: []string{payload.RoleReasoning}}
	a := &a2aReader{reader: r, version: version, resumes: resumes}
	r.follow = func(ctx context.Context, _ *reader, url string) error { return a.follow(ctx, url) }
	return r
}

// follow continues the stream that was cut. Then it lists the tasks, and follows the newest
// one if it is active.
func (a *a2aReader) follow(ctx context.Context, url string) error {
	url += "/a2a/" + a.agent
	if a.resumes && a.last != "" {
		if err := a.subscribe(ctx, url); err != nil && !errors.Is(err, errHasEnded) {
			return err
		}
		a.last = "" // the task has ended, and another one may have begun
	}
	for {
		if err := a.list(ctx, url); err != nil {
			return err
		}
		if len(a.tasks) == 0 || !a.working() {
			return nil
		}
		err := a.subscribe(ctx, url)
		if !errors.Is(err, errHasEnded) {
			return err
		}
	}
}

// newest returns the task that may have a stream.
func (a *a2aReader) newest() *a2aTask { return a.tasks[len(a.tasks)-1] }

func (a *a2aReader) working() bool {
	s := strings.ToLower(a.newest().Status.State)
	return strings.HasSuffix(s, "working") || strings.HasSuffix(s, "submitted")
}

func (a *a2aReader) call(ctx context.Context, url, method, params string) *http.Request {
	cursor := ""
	if a.resumes && method == a2aMethods[a.version].subscribe {
		cursor = a.last
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	return request(ctx, http.MethodPost, url, body, "A2A-Version", a.version, "Last-Event-ID", cursor)
}

func (a *a2aReader) list(ctx context.Context, url string) error {
	resp, err := http.DefaultTransport.RoundTrip(a.call(ctx, url, a2aMethods[a.version].list, `{"contextId":"`+session+`","includeArtifacts":true}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var answer struct{ Result struct{ Tasks []*a2aTask } }
	if err := json.Unmarshal(b, &answer); err != nil || answer.Result.Tasks == nil {
		return fmt.Errorf("%w: %s", err, b)
	}
	slices.Reverse(answer.Result.Tasks) // the oldest first
	a.change(func() {
		a.tasks = answer.Result.Tasks
		a.rebuild()
	})
	return nil
}

// errHasEnded is the answer to a subscription without a cursor to a task that has ended, and
// to one that a rewind has reverted: there is nothing to follow.
var errHasEnded = errors.New("the task has ended")

const (
	taskNotFound         = -32001
	unsupportedOperation = -32004
)

func (a *a2aReader) subscribe(ctx context.Context, url string) error {
	req := a.call(ctx, url, a2aMethods[a.version].subscribe, `{"id":"`+a.newest().ID+`"}`)
	_, err := a.stream(req, func(f sse.Frame) error {
		if f.ID != "" {
			a.last = f.ID
		}
		return a.answer(f.Data)
	})
	if none := (*noStream)(nil); errors.As(err, &none) {
		err = a.answer(none.body)
	}
	if err == nil && a.working() {
		return errEnded
	}
	if err == nil {
		a.last = ""
	}
	return err
}

// answer takes a message of a stream, or the error with which the server refuses one. Only
// version 0.3 has the latter in a stream.
func (a *a2aReader) answer(raw []byte) error {
	var answer struct {
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
		}
	}
	switch err := json.Unmarshal(raw, &answer); {
	case err != nil:
		return err
	case answer.Error != nil && (answer.Error.Code == unsupportedOperation || answer.Error.Code == taskNotFound):
		return errHasEnded
	case answer.Error != nil:
		return errors.New(answer.Error.Message)
	}
	return a.update(answer.Result)
}

func (a *a2aReader) update(raw []byte) error {
	var u a2aUpdate
	if err := json.Unmarshal(raw, &u); err != nil {
		return err
	}
	var into any
	switch u.Kind {
	case "task":
		into, u.Task = &u.Task, nil
	case "status-update":
		into = &u.StatusUpdate
	case "artifact-update":
		into = &u.Artifact
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			return err
		}
	}
	a.change(func() {
		a.apply(&u)
		a.rebuild()
	})
	return nil
}

func (a *a2aReader) apply(u *a2aUpdate) {
	switch t := a.newest(); {
	case u.Task != nil:
		*t = *u.Task
	case u.StatusUpdate != nil:
		t.Status = u.StatusUpdate.Status
		if m := t.Status.Message; m != nil {
			t.remember(m)
		}
	case u.Artifact != nil:
		part := u.Artifact.Artifact
		i := slices.IndexFunc(t.Artifacts, func(x *a2aArtifact) bool { return x.ArtifactID == part.ArtifactID })
		if i < 0 {
			t.Artifacts = append(t.Artifacts, &part)
			return
		}
		if !u.Artifact.Append {
			t.Artifacts[i].Parts = nil
		}
		t.Artifacts[i].Parts = append(t.Artifacts[i].Parts, part.Parts...)
	}
}

// remember adds a message to the history, in the place of one with its id.
func (t *a2aTask) remember(m *a2aMessage) {
	for i := range t.History {
		if t.History[i].MessageID == m.MessageID {
			t.History[i] = *m
			return
		}
	}
	t.History = append(t.History, *m)
}

// rebuild builds the conversation of the tasks: their histories, and the texts that are not
// in a history yet.
func (a *a2aReader) rebuild() {
	a.reset()
	for _, t := range a.tasks {
		known := map[string]bool{}
		for i := range t.History {
			m := &t.History[i]
			known[m.MessageID] = true
			if !strings.HasPrefix(m.MessageID, "error~") { // why the task has failed
				a.said(m)
			}
		}
		for _, x := range t.Artifacts {
			if !known[x.ArtifactID] {
				a.text(payload.RoleAssistant, x.ArtifactID, x.Parts)
			}
		}
	}
}

func (a *a2aReader) said(m *a2aMessage) {
	role := payload.RoleAssistant
	if strings.HasSuffix(strings.ToLower(m.Role), payload.RoleUser) {
		role = payload.RoleUser
	}
	a.text(role, m.MessageID, m.Parts)
	for _, p := range m.Parts {
		switch p.Metadata.Type {
		case "function_call":
			it := a.open(call, p.Data.ID)
			it.Name, it.Args = p.Data.Name, string(p.Data.Args)
		case "function_response":
			a.open(call, p.Data.ID).Result = string(p.Data.Response.Result)
		}
	}
}

// text adds an item for the text parts, even if its id is there already: what a protocol
// sends twice must be seen twice.
func (a *a2aReader) text(kind, id string, parts []a2aPart) {
	text := ""
	for _, p := range parts {
		if p.Text != nil {
			text += *p.Text
		}
	}
	a.items = append(a.items, &item{Kind: kind, id: id, Text: text})
}
