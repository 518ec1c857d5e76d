package a2a

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
)

// An rpcRequest is a request of JSON-RPC.
type rpcRequest struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`

	notification bool // it has no id, so it gets no answer
}

// A method carries out a request. It returns the result, or it has answered with a
// stream.
type method func(c *call, q *rpcRequest) (result json.RawMessage, streamed bool, err error)

// methods has the methods by version and name.
var methods = map[version]map[string]method{
	v10: {
		"SendMessage": (*call).rpcSend, "SendStreamingMessage": (*call).rpcStream, "GetTask": (*call).rpcGet,
		"ListTasks": (*call).rpcList, "CancelTask": (*call).rpcCancel, "SubscribeToTask": (*call).rpcSubscribe,
		"GetExtendedAgentCard": (*call).rpcCard,

		"CreateTaskPushNotificationConfig": pushing((*call).rpcSetPush), "GetTaskPushNotificationConfig": pushing((*call).rpcGetPush),
		"ListTaskPushNotificationConfigs": pushing((*call).rpcListPush), "DeleteTaskPushNotificationConfig": pushing((*call).rpcDeletePush),
	},
	v03: {
		"message/send": (*call).rpcSend, "message/stream": (*call).rpcStream, "tasks/get": (*call).rpcGet,
		"tasks/list": (*call).rpcList, "tasks/cancel": (*call).rpcCancel, "tasks/resubscribe": (*call).rpcSubscribe,
		"agent/getAuthenticatedExtendedCard": (*call).rpcCard,

		"tasks/pushNotificationConfig/set": pushing((*call).rpcSetPush), "tasks/pushNotificationConfig/get": pushing((*call).rpcGetPush),
		"tasks/pushNotificationConfig/list": pushing((*call).rpcListPush), "tasks/pushNotificationConfig/delete": pushing((*call).rpcDeletePush),
	},
}

// streams has the methods of version 0.3 whose clients read nothing but an event stream,
// not even an error. Clients of version 1.0 read the error as JSON.
var streams = map[string]bool{"message/stream": true, "tasks/resubscribe": true}

// serveRPC answers a request of JSON-RPC.
func (c *call) serveRPC() {
	var q rpcRequest
	result, streamed, err := c.carryOut(&q)
	switch {
	case streamed:
	case q.notification && tapedeck.KindOf(err) != tapedeck.Unauthorized:
		c.w.WriteHeader(http.StatusNoContent)
	case err != nil:
		f := c.failure(err)
		body := encodeJSON(f.rpc(c.version))
		if c.version == v03 && streams[q.Method] && !wantsJSON(c.r) && f.kind != tapedeck.Unauthorized {
			c.sendOnly(sse.AppendFrame(nil, "", "", envelope(q.ID, "error", body)))
			return
		}
		c.writeRPC(f.rpcStatus, q.ID, "error", body)
	default:
		c.writeRPC(http.StatusOK, q.ID, "result", result)
	}
}

// wantsJSON reports whether a client asks for JSON and no stream.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json") && !httpapi.WantsStream(r)
}

func (c *call) carryOut(q *rpcRequest) (json.RawMessage, bool, error) {
	var err error
	if c.version, err = parseVersion(c.r); err != nil {
		_ = c.decodeRequest(q) // for the id of the answer
		return nil, false, err
	}
	if err := c.decodeRequest(q); err != nil {
		return nil, false, err
	}
	if c.missing != nil {
		return nil, false, c.missing
	}
	m, ok := methods[c.version][q.Method]
	if !ok {
		return nil, false, c.noMethod(q.Method)
	}
	if q.notification {
		return c.obey(m, q)
	}
	return m(c, q)
}

// obey carries out a request that gets no answer. A message does not wait for the agent,
// and nobody follows a stream.
func (c *call) obey(m method, q *rpcRequest) (json.RawMessage, bool, error) {
	switch q.Method {
	case "SendMessage", "SendStreamingMessage", "message/send", "message/stream":
		in, err := c.decodeSend(q.Params)
		if err == nil {
			_, err = c.send(c.r.Context(), in)
		}
		return nil, false, err
	case "SubscribeToTask", "tasks/resubscribe":
		return nil, false, nil
	}
	return m(c, q)
}

// noMethod is the error of an unknown method. A method of the other version is a sign of
// a missing header.
func (c *call) noMethod(name string) error {
	e := tapedeck.Errorf(tapedeck.Invalid, "version %s of A2A has no method %.80q here", c.version, name)
	other := v10
	if c.version == v10 {
		other = v03
	}
	if _, known := methods[other][name]; known {
		e = e.WithHint("version %s has it; say so with the header A2A-Version: %s", other, other)
	}
	return methodNotFound.of(e)
}

func (c *call) decodeRequest(q *rpcRequest) error {
	body, err := c.readBody()
	if err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return invalidRequest.of(tapedeck.Errorf(tapedeck.Invalid, format, args...))
	}
	if b := bytes.TrimSpace(body); len(b) == 0 || b[0] != '{' {
		return bad("the body is not one request of JSON-RPC; batches are not supported")
	}
	if err := json.Unmarshal(body, q); err != nil {
		id := q.ID
		*q = rpcRequest{ID: id}
		q.dropID()
		return bad("the body is not a request of JSON-RPC: %s", plain(err))
	}
	absent := len(q.ID) == 0
	switch {
	case q.dropID():
		return bad("the id of the request is not a string or a number")
	case q.Version != "2.0":
		return bad("the member jsonrpc must be \"2.0\", not %.40q", q.Version)
	case q.Method == "":
		return bad("the request names no method")
	case len(q.Params) > 0 && q.Params[0] != '{' && string(q.Params) != "null":
		return invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the member params is not an object"))
	}
	q.notification = absent
	return nil
}

// dropID removes an id that no answer can have, and reports whether it has.
func (q *rpcRequest) dropID() bool {
	switch {
	case len(q.ID) == 0 || string(q.ID) == "null":
		q.ID = nil
		return false
	case q.ID[0] == '"', q.ID[0] == '-', q.ID[0] >= '0' && q.ID[0] <= '9':
		return false
	}
	q.ID = nil
	return true
}

// envelope returns an answer of JSON-RPC.
func envelope(id json.RawMessage, member string, value []byte) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(append(append(b, `,"`...), member...), `":`...)
	return append(append(b, value...), '}')
}

func (c *call) writeRPC(status int, id json.RawMessage, member string, value []byte) {
	c.w.Header().Set("Cache-Control", "no-store")
	httpapi.WriteBytes(c.w, status, envelope(id, member, value))
}

func (c *call) rpcSend(q *rpcRequest) (json.RawMessage, bool, error) {
	in, err := c.decodeSend(q.Params)
	if err != nil {
		return nil, false, err
	}
	t, err := c.result(in)
	if err != nil {
		return nil, false, err
	}
	return c.version.encode(t, true), false, nil
}

func (c *call) rpcStream(q *rpcRequest) (json.RawMessage, bool, error) {
	in, err := c.decodeSend(q.Params)
	if err != nil {
		return nil, false, err
	}
	s, err := c.send(c.r.Context(), in)
	if err != nil {
		return nil, false, err
	}
	c.streamSent(s, in, q.wrap)
	return nil, true, nil
}

// wrap puts a result into an answer.
func (q *rpcRequest) wrap(result []byte) []byte { return envelope(q.ID, "result", result) }

// A taskParams has the parameters of the methods that name a task.
type taskParams struct {
	ID      string `json:"id"`
	History *int   `json:"historyLength"`
}

func (q *rpcRequest) task() (taskParams, error) {
	var p taskParams
	err := decodeParams(q.Params, &p)
	switch {
	case err != nil:
	case p.ID == "":
		err = invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the parameters have no id of a task"))
	case p.History != nil && *p.History < 0:
		err = invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "historyLength is %d; it must be 0 or more", *p.History))
	}
	return p, err
}

func (c *call) rpcGet(q *rpcRequest) (json.RawMessage, bool, error) {
	p, err := q.task()
	if err != nil {
		return nil, false, err
	}
	return c.encodeResult(c.get(c.r.Context(), p.ID, p.History))
}

func (c *call) rpcCancel(q *rpcRequest) (json.RawMessage, bool, error) {
	p, err := q.task()
	if err != nil {
		return nil, false, err
	}
	return c.encodeResult(c.cancel(c.r.Context(), p.ID))
}

func (c *call) encodeResult(t *sdk.Task, err error) (json.RawMessage, bool, error) {
	if err != nil {
		return nil, false, err
	}
	return c.version.encodeTask(t), false, nil
}

func (c *call) rpcSubscribe(q *rpcRequest) (json.RawMessage, bool, error) {
	p, err := q.task()
	if err != nil {
		return nil, false, err
	}
	f, at, err := c.subscribe(p.ID)
	if err != nil {
		return nil, false, err
	}
	c.stream(f, at, q.wrap)
	return nil, true, nil
}

func (c *call) rpcCard(*rpcRequest) (json.RawMessage, bool, error) {
	return encodeJSON(c.cardOf(c.agent, c.base, true)), false, nil
}
