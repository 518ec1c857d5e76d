package a2a

import (
	"encoding/json"
	"net/http"
	"net/url"
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
	if err := c.routeREST(rest); err != nil {
		c.failREST(err)
	}
}

// routeREST finds the request that a path stands for. The id of a task and what to do
// with it are divided by a colon.
func (c *call) routeREST(rest string) error {
	what, id, below, ok := "", "", "", false
	if below, ok = strings.CutPrefix(rest, "tasks/"); ok {
		id, below, _ = strings.Cut(below, "/")
		if i := strings.LastIndexByte(id, ':'); i >= 0 && isAction(id[i:]) {
			id, what = id[:i], id[i:]
		}
		what = "tasks/{id}" + what
		if below != "" {
			what += "/" + below
		}
	} else {
		what = rest
	}
	route, known := restRoutes[what]
	if !known {
		return problem.NoSuchPath(c.r.URL.Path)
	}
	for _, m := range route.methods {
		if m == c.r.Method {
			return route.serve(c, id)
		}
	}
	return problem.MethodNotAllowed(c.w, c.r, route.methods...)
}

func isAction(s string) bool { return s == ":cancel" || s == ":subscribe" }

// A restRoute serves a path of the REST form. id is the id of the task in the path.
type restRoute struct {
	methods []string
	serve   func(c *call, id string) error
}

var restRoutes = map[string]restRoute{
	"message:send":         {[]string{http.MethodPost}, (*call).restSend},
	"message:stream":       {[]string{http.MethodPost}, (*call).restStream},
	"tasks":                {[]string{http.MethodGet}, (*call).restList},
	"tasks/{id}":           {[]string{http.MethodGet}, (*call).restGet},
	"tasks/{id}:cancel":    {[]string{http.MethodPost}, (*call).restCancel},
	"tasks/{id}:subscribe": {[]string{http.MethodGet, http.MethodPost}, (*call).restSubscribe},
	"extendedAgentCard":    {[]string{http.MethodGet}, (*call).restCard},
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

func (c *call) restSend(string) error {
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

func (c *call) restStream(string) error {
	in, err := c.restMessage()
	if err != nil {
		return err
	}
	s, err := c.send(c.r.Context(), in)
	if err != nil {
		return err
	}
	c.streamSent(s, bare)
	return nil
}

// bare is the envelope of the REST form, which has none.
func bare(result []byte) []byte { return result }

func (c *call) restGet(id string) error {
	q := restQuery{Values: c.r.URL.Query()}
	length := q.number("historyLength")
	if q.err != nil {
		return q.err
	}
	t, err := c.get(c.r.Context(), id, length)
	if err != nil {
		return err
	}
	return c.writeREST(c.version.encodeTask(t))
}

func (c *call) restCancel(id string) error {
	t, err := c.cancel(c.r.Context(), id)
	if err != nil {
		return err
	}
	return c.writeREST(c.version.encodeTask(t))
}

func (c *call) restSubscribe(id string) error {
	f, at, err := c.subscribe(id)
	if err != nil {
		return err
	}
	c.stream(f, at, bare)
	return nil
}

func (c *call) restCard(string) error {
	return c.writeREST(encodeJSON(c.cardOf(c.agent, c.base, true)))
}

func (c *call) restList(string) error {
	q := restQuery{Values: c.r.URL.Query()}
	in := sdk.ListTasksRequest{
		ContextID: q.Get("contextId"), Status: sdk.TaskState(q.Get("status")), PageToken: q.Get("pageToken"),
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
