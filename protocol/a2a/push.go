package a2a

import (
	"cmp"
	"context"
	"encoding/json"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/a2a03"
	"github.com/tapedeck/tapedeck/protocol/a2a/push"
)

// pushSession returns the session of a task, for push notifications.
func (c *call) pushSession(ctx context.Context, id string) (ref, tapedeck.Session, error) {
	if c.push == nil {
		return ref{}, tapedeck.Session{}, noPush()
	}
	r, err := c.parseRef(id)
	if err != nil {
		return ref{}, tapedeck.Session{}, err
	}
	s, err := c.Sessions.Head(ctx, r.session)
	if err != nil {
		return ref{}, tapedeck.Session{}, notThere(err, id)
	}
	if c.MayPush != nil {
		if err := c.MayPush(ctx, r.session); err != nil {
			return ref{}, tapedeck.Session{}, err
		}
	}
	return r, s, nil
}

// pushTask returns a task whose configs the client may read and delete: one that it sees,
// or that it saw before a rewind.
func (c *call) pushTask(ctx context.Context, id string) (push.Task, error) {
	r, s, err := c.pushSession(ctx, id)
	if err != nil {
		return push.Task{}, err
	}
	_, err = c.loadKnown(ctx, r, s.Head)
	return push.Task{Session: r.session, Gen: s.Gen, Name: r.invocation}, err
}

// checkPush refuses a config to which nothing could be sent.
func (c *call) checkPush(in *sdk.PushConfig) error {
	if c.push == nil {
		return noPush()
	}
	return c.push.Check(&push.Config{PushConfig: *in})
}

// setPush stores a config of a task. Its receiver is told of the updates from an offset
// on, -1 for those that follow now.
func (c *call) setPush(ctx context.Context, id string, in *sdk.PushConfig, from int64) (*sdk.PushConfig, error) {
	r, s, err := c.pushSession(ctx, id)
	if err != nil {
		return nil, err
	}
	f, err := c.load(ctx, r, s.Head)
	if err != nil {
		return nil, err
	}
	if from < 0 && !f.terminal() {
		from = s.Head
	}
	out := &push.Config{Version: string(c.version), PushConfig: *in}
	out.TaskID, out.Tenant = sdk.TaskID(id), ""
	if err := c.push.Check(out); err != nil {
		return nil, err
	}
	if err := c.push.Set(ctx, push.Task{Session: r.session, Gen: s.Gen, Name: r.invocation}, out, from); err != nil {
		return nil, pushFault(err, id)
	}
	return &out.PushConfig, nil
}

// setPushOf stores the config that came with a message, for the task that the message has
// led to. Without an id it gets that of the task: so a message that is sent again sets no
// second one.
func (c *call) setPushOf(ctx context.Context, in *sdk.SendMessageRequest, s *sent) error {
	if in.Config == nil || in.Config.PushConfig == nil || s.refused {
		return nil
	}
	config := *in.Config.PushConfig
	if config.ID == "" {
		config.ID = s.fold.id()
	}
	_, err := c.setPush(ctx, s.fold.id(), &config, s.began)
	return err
}

func (c *call) getPush(ctx context.Context, id, config string) (*sdk.PushConfig, error) {
	t, err := c.pushTask(ctx, id)
	if err != nil {
		return nil, err
	}
	out, err := c.push.Get(ctx, t, config)
	if err != nil {
		return nil, pushFault(err, id)
	}
	return &out.PushConfig, nil
}

func (c *call) listPush(ctx context.Context, id string) ([]*sdk.PushConfig, error) {
	t, err := c.pushTask(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := c.push.List(ctx, t)
	if err != nil {
		return nil, err
	}
	out := make([]*sdk.PushConfig, len(all))
	for i, config := range all {
		out[i] = &config.PushConfig
	}
	return out, nil
}

func (c *call) deletePush(ctx context.Context, id, config string) error {
	t, err := c.pushTask(ctx, id)
	if err != nil {
		return err
	}
	return c.push.Delete(ctx, t, config)
}

// pushFault gives an error of a config its code: that of a task that does not exist, as
// the specification says.
func pushFault(err error, task string) error {
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		return taskNotFound.of(tapedeck.Errorf(tapedeck.NotFound, "task %.300q does not have this push notification config", task))
	}
	return err
}

// encodePush returns a config as the whole answer.
func (c *call) encodePush(p *sdk.PushConfig, err error) (json.RawMessage, bool, error) {
	switch {
	case err != nil:
		return nil, false, err
	case c.version == v03:
		return encodeJSON(a2a03.OfPushConfig(p)), false, nil
	}
	return encodeJSON(p), false, nil
}

// A pushParams names a task and a config of it, as both versions do.
type pushParams struct {
	TaskID    string `json:"taskId"`                   // of 1.0
	ID        string `json:"id"`                       // of the config; in 0.3 of the task
	ConfigID  string `json:"pushNotificationConfigId"` // of 0.3
	PageSize  int    `json:"pageSize"`
	PageToken string `json:"pageToken"`
}

// push reads the parameters of a method that names a task and, unless it lists, a config.
// In 0.3 the config without an id is the one with the id of the task.
func (q *rpcRequest) push(v version, lists bool) (pushParams, error) {
	var p pushParams
	if err := decodeParams(q.Params, &p); err != nil {
		return p, err
	}
	if v == v03 {
		p.TaskID, p.ID = p.ID, p.ConfigID
		if p.ID == "" {
			p.ID = p.TaskID
		}
	}
	return p, p.check(lists)
}

func (p *pushParams) check(lists bool) error {
	bad := func(text string) error { return invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "%s", text)) }
	switch {
	case p.TaskID == "":
		return bad("the parameters have no id of a task")
	case p.ID == "" && !lists:
		return bad("the parameters have no id of a push notification config")
	case p.PageSize < 0:
		return bad("the pageSize is below 0")
	case p.PageToken != "": // all configs of a task are on one page
		return bad("the pageToken is not one that this server has given out")
	}
	return nil
}

// pushing returns a method that is an error if the server sends no push notifications.
func pushing(m method) method {
	return func(c *call, q *rpcRequest) (json.RawMessage, bool, error) {
		if c.push == nil {
			return nil, false, noPush()
		}
		return m(c, q)
	}
}

func (c *call) rpcSetPush(q *rpcRequest) (json.RawMessage, bool, error) {
	in := new(sdk.PushConfig)
	if c.version == v03 {
		var p a2a03.TaskPushConfig
		if err := decodeParams(q.Params, &p); err != nil {
			return nil, false, err
		}
		if p.Config != nil {
			in = p.Config.ToV1()
		}
		if in.TaskID = sdk.TaskID(p.TaskID); in.ID == "" {
			in.ID = p.TaskID
		}
	} else if err := decodeParams(q.Params, in); err != nil {
		return nil, false, err
	}
	return c.encodePush(c.createPush(in))
}

// createPush stores the config that a client has sent. It gets an id if it has none.
func (c *call) createPush(in *sdk.PushConfig) (*sdk.PushConfig, error) {
	if in.TaskID == "" {
		return nil, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the parameters have no id of a task"))
	}
	if in.ID == "" {
		in.ID = tapedeck.NewID("push_")
	}
	return c.setPush(c.r.Context(), string(in.TaskID), in, -1)
}

func (c *call) rpcGetPush(q *rpcRequest) (json.RawMessage, bool, error) {
	p, err := q.push(c.version, false)
	if err != nil {
		return nil, false, err
	}
	return c.encodePush(c.getPush(c.r.Context(), p.TaskID, p.ID))
}

func (c *call) rpcListPush(q *rpcRequest) (json.RawMessage, bool, error) {
	p, err := q.push(c.version, true)
	if err != nil {
		return nil, false, err
	}
	list, err := c.listPush(c.r.Context(), p.TaskID)
	if err != nil {
		return nil, false, err
	}
	if c.version == v10 {
		return encodePushList(list), false, nil
	}
	out := make([]*a2a03.TaskPushConfig, len(list))
	for i, config := range list {
		out[i] = a2a03.OfPushConfig(config)
	}
	return encodeJSON(out), false, nil
}

// encodePushList encodes configs as version 1.0 has them.
func encodePushList(list []*sdk.PushConfig) json.RawMessage {
	return encodeJSON(map[string]any{"configs": list})
}

func (c *call) rpcDeletePush(q *rpcRequest) (json.RawMessage, bool, error) {
	p, err := q.push(c.version, false)
	if err == nil {
		err = c.deletePush(c.r.Context(), p.TaskID, p.ID)
	}
	if c.version == v03 {
		return json.RawMessage("null"), false, err
	}
	return json.RawMessage("{}"), false, err
}

// restSetPush, and the others of REST, serve the paths of configs. The task in the path
// counts, also if the body names another one.
func (c *call) restSetPush(p restPath) error {
	body, err := c.readBody()
	if err != nil {
		return err
	}
	in := new(sdk.PushConfig)
	if err := decodeParams(body, in); err != nil {
		return err
	}
	in.TaskID = sdk.TaskID(p.task)
	return c.writePush(c.createPush(in))
}

func (c *call) restGetPush(p restPath) error {
	return c.writePush(c.getPush(c.r.Context(), p.task, p.config))
}

func (c *call) writePush(out *sdk.PushConfig, err error) error {
	if err != nil {
		return err
	}
	return c.writeREST(encodeJSON(out))
}

func (c *call) restListPush(p restPath) error {
	q := restQuery{Values: c.r.URL.Query()}
	in := pushParams{TaskID: p.task, PageToken: q.Get("pageToken")}
	q.number("pageSize")
	if err := in.check(true); err != nil || q.err != nil {
		return cmp.Or(q.err, err)
	}
	list, err := c.listPush(c.r.Context(), p.task)
	if err != nil {
		return err
	}
	return c.writeREST(encodePushList(list))
}

func (c *call) restDeletePush(p restPath) error {
	if err := c.deletePush(c.r.Context(), p.task, p.config); err != nil {
		return err
	}
	return c.writeREST(json.RawMessage("{}"))
}
