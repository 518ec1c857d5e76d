package a2a

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// serveREST answers a request in the REST form, which is that of version 1.0. rest is
// the path below that of the agent.
func (c *call) serveREST(rest string) {
	c.version = v10
	if c.r.Header.Get("A2A-Version") != "" || c.r.URL.Query().Has("A2A-Version") {
		v, err := parseVersion(c.r)
		if err == nil && v == v03 {
			err = versionNotSupported.of(tapedeck.Errorf(tapedeck.Invalid, "the REST form has version 1.0 only").
				WithHint("send requests of version 0.3 as JSON-RPC"))
		}
		if err != nil {
			c.failREST(err)
			return
		}
	}
	err := c.missing
	if err == nil {
		err = c.routeREST(rest)
	}
	if err != nil {
		c.failREST(err)
	}
}

// A restPath is what a path of the REST form names.
type restPath struct{ task, config string }

// routeREST finds the request that a path stands for. The id of a task and what to do
// with it are divided by a colon.
func (c *call) routeREST(rest string) error {
	what, p := rest, restPath{}
	if below, ok := strings.CutPrefix(rest, "tasks/"); ok {
		what = "tasks/{id}"
		p.task, below, ok = strings.Cut(below, "/")
		if i := strings.LastIndexByte(p.task, ':'); i >= 0 && isAction(p.task[i:]) {
			what += p.task[i:]
			p.task = p.task[:i]
		}
		if ok {
			below, p.config, ok = strings.Cut(below, "/")
			what += "/" + below
		}
		if ok {
			what += "/{config}"
		}
	}
	route, known := restRoutes[what]
	if !known || strings.Contains(p.config, "/") {
		return problem.NoSuchPath(c.r.URL.Path)
	}
	if serve, ok := route[c.r.Method]; ok {
		return serve(c, p)
	}
	return problem.MethodNotAllowed(c.w, c.r, slices.Sorted(maps.Keys(route))...)
}

func isAction(s string) bool { return s == ":cancel" || s == ":subscribe" }

// A restRoute has what serves a path of the REST form, by the methods.
type restRoute map[string]func(c *call, p restPath) error

var restRoutes = map[string]restRoute{
	"message:send":         {http.MethodPost: (*call).restSend},
	"message:stream":       {http.MethodPost: (*call).restStream},
	"tasks":                {http.MethodGet: (*call).restList},
	"tasks/{id}":           {http.MethodGet: (*call).restGet},
	"tasks/{id}:cancel":    {http.MethodPost: (*call).restCancel},
	"tasks/{id}:subscribe": {http.MethodGet: (*call).restSubscribe, http.MethodPost: (*call).restSubscribe},
	"extendedAgentCard":    {http.MethodGet: (*call).restCard},

	"tasks/{id}/pushNotificationConfigs":          {http.MethodGet: (*call).restListPush, http.MethodPost: (*call).restSetPush},
	"tasks/{id}/pushNotificationConfigs/{config}": {http.MethodGet: (*call).restGetPush, http.MethodDelete: (*call).restDeletePush},
}

// failREST answers with an error in the REST form.
func (c *call) failREST(err error) {
	f := c.failure(err)
	c.w.Header().Set("Cache-Control", "no-store")
	httpapi.WriteBytes(c.w, f.status, encodeJSON(f.rest()))
}

func (c *call) writeREST(body json.RawMessage) error {
	c.w.Header().Set("Cache-Control", "no-store")
	httpapi.WriteBytes(c.w, http.StatusOK, body)
	return nil
}

func (c *call) restMessage() (*sdk.SendMessageRequest, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	return c.decodeSend(body)
}

func (c *call) restSend(restPath) error {
	in, err := c.restMessage()
	if err != nil {
		return err
	}
	t, err := c.result(in)
	if err != nil {
		return err
	}
	return c.writeREST(c.version.encode(t, true))
}

func (c *call) restStream(restPath) error {
	in, err := c.restMessage()
	if err != nil {
		return err
	}
	s, err := c.send(c.r.Context(), in)
	if err != nil {
		return err
	}
	c.streamSent(s, in, bare)
	return nil
}

// bare is the envelope of the REST form, which has none.
func bare(result []byte) []byte { return result }

func (c *call) restGet(p restPath) error {
	q := restQuery{Values: c.r.URL.Query()}
	length := q.number("historyLength")
	if q.err != nil {
		return q.err
	}
	t, err := c.get(c.r.Context(), p.task, length)
	if err != nil {
		return err
	}
	return c.writeREST(c.version.encodeTask(t))
}

func (c *call) restCancel(p restPath) error {
	t, err := c.cancel(c.r.Context(), p.task)
	if err != nil {
		return err
	}
	return c.writeREST(c.version.encodeTask(t))
}

func (c *call) restSubscribe(p restPath) error {
	f, at, err := c.subscribe(p.task)
	if err != nil {
		return err
	}
	c.stream(f, at, bare)
	return nil
}

func (c *call) restCard(restPath) error {
	return c.writeREST(encodeJSON(c.cardOf(c.agent, c.base, true)))
}

func (c *call) restList(restPath) error {
	q := restQuery{Values: c.r.URL.Query()}
	in := sdk.ListTasksRequest{
		ContextID: q.Get("contextId"), Status: q.state("status"), PageToken: q.Get("pageToken"),
		HistoryLength: q.number("historyLength"), IncludeArtifacts: q.flag("includeArtifacts"), StatusTimestampAfter: q.time("statusTimestampAfter"),
	}
	if n := q.number("pageSize"); n != nil {
		if in.PageSize = *n; *n == 0 {
			in.PageSize = -1 // 0 stands for no page size
		}
	}
	if q.err != nil {
		return q.err
	}
	out, err := c.list(c.r.Context(), &in)
	if err != nil {
		return err
	}
	return c.writeREST(c.encodeList(out))
}

// A restQuery reads parameters. It remembers the first one that is wrong.
type restQuery struct {
	url.Values
	err error
}

func (q *restQuery) fail(name, want string) {
	if q.err == nil {
		q.err = invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the parameter %s is %.80q; it must be %s", name, q.Get(name), want))
	}
}

func (q *restQuery) number(name string) *int {
	if !q.Has(name) {
		return nil
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < 0 {
		q.fail(name, "a number from 0")
	}
	return &n
}

func (q *restQuery) flag(name string) bool {
	switch q.Get(name) {
	case "true":
		return true
	case "", "false":
	default:
		q.fail(name, "true or false")
	}
	return false
}

// state leaves a state that does not exist to [call.list].
func (q *restQuery) state(name string) sdk.TaskState {
	if s := q.Get(name); s != "TASK_STATE_UNSPECIFIED" {
		return sdk.TaskState(s)
	}
	return sdk.TaskStateUnspecified
}

func (q *restQuery) time(name string) *time.Time {
	if !q.Has(name) {
		return nil
	}
	t, err := time.Parse(time.RFC3339, q.Get(name))
	if err != nil {
		q.fail(name, "a time of RFC 3339")
	}
	return &t
}
