package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/access/quota"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/payload"
)

// A rule says what happens to a request of each of senders, in that order:
//
//   - + it is carried out, or refused for a reason that has nothing to do with access;
//   - - 403, or that kind in the protocol's own form;
//   - 4 404;
//   - 0 what happens with an id that was never used, word by word;
//   - ! 409;
//   - ? 401.
type rule string

var senders = []string{"admin", "owner", "writer", "viewer", "foreign", "reader", "agent", "token", "frozen", "nobody"}

const (
	public    rule = "++++++++++" // everybody
	anyone    rule = "+++++++++?" // everybody with a token
	reads     rule = "++++0++++?" // reads a part of a session, which may be its beginning
	whole     rule = "++++0+++-?" // reads all of a session
	writes    rule = "+++-0--+-?" // changes a session
	appends   rule = "+++-0-++-?" // appends what an agent may append
	owns      rule = "++--0----?" // what only the owner may do
	ends      rule = "+++-0--++?" // ends what is open, as far as the sender sees it
	forks     rule = "++++0----?" // a viewer may fork; the token of one session may not
	lists     rule = "++++++---?" // looks at many sessions
	creates   rule = "+++++----?" // creates sessions
	joins     rule = "+++-!--+-?" // creates the session that it names, unless it exists
	continues rule = "+++-4--+-?" // the same, in a protocol that looks for the session first
	admins    rule = "+--------?"
	attends   rule = "++++0+-+-?" // is seen as a user of a session
	streamed  rule = "++000+000?" // reads the stream of a user
	streams   rule = "++000-000?" // writes the stream of a user
	founds    rule = "++-------?" // creates the stream of a user
)

// A row is what the test knows of a route. In path and body $S is the id of a session, $N
// an id that is not in use, $P the path of a stream, and {…} the other parts of the path.
type row struct {
	rule    rule
	body    string
	headers []string // names and values in turn
	query   string
	main    string // "" if the main thread has no run, or else open or ended for its run and all others
}

const (
	agui  = `{"threadId":"$S","runId":"r$N","messages":[{"id":"u$N","role":"user","content":"go"}],"state":{},"tools":[],"context":[],"forwardedProps":{}}`
	ui    = `{"id":"$S","trigger":"submit-message","messages":[{"id":"u$N","role":"user","parts":[{"type":"text","text":"go"}]}]}`
	event = `{"type":"CUSTOM","thread":"work","invocation":"inv","data":{"name":"n","value":1}}`
	hook  = `"url":"http://127.0.0.1:1/"`
)

func sseOf(r rule, body string) row {
	return row{rule: r, body: body, headers: []string{"Accept", "text/event-stream"}}
}

func rpc(r rule, method, params string) row {
	h := []string{"A2A-Version", "1.0"}
	if strings.Contains(method, "/") {
		h = nil
	}
	return row{rule: r, body: `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`, headers: h}
}

func tool(r rule, name, arguments string) row {
	return askMCP(r, "tools/call", name, `,"name":"`+name+`","arguments":`+arguments)
}

func askMCP(r rule, method, name, params string) row {
	h := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return row{rule: r, headers: h, body: `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}` + params + `}}`}
}

// table has a row for every route. A new route needs one.
var table = map[string]row{
	"GET /":                                {rule: public},
	"GET /healthz":                         {rule: public},
	"GET /readyz":                          {rule: public},
	"GET /login":                           {rule: anyone},
	"POST /login":                          {rule: public, body: `{"token":"admin"}`, headers: []string{"Tapedeck-Login", "1"}},
	"DELETE /login":                        {rule: public, headers: []string{"Tapedeck-Login", "1"}},
	"GET /sse/api/v1/sessions/{id}":        {rule: reads},
	"GET /sse/api/v1/sessions/{id}/events": sseOf(reads, ""),

	"GET /metrics":                                        {rule: admins},
	"GET /debug/pprof/{profile}":                          {rule: admins},
	"GET /api/v1/stats":                                   {rule: admins},
	"GET /api/v1/audit":                                   {rule: admins},
	"GET /api/v1/agents":                                  {rule: anyone},
	"GET /api/v1/openapi.json":                            {rule: anyone},
	"GET /api/v1/diff":                                    {rule: whole, query: "a=$S&b=$S"},
	"GET /api/v1/search":                                  {rule: lists, query: "q=hello"},
	"GET /api/v1/sessions":                                {rule: lists},
	"GET /api/v1/inbox":                                   {rule: anyone},
	"GET /api/v1/usage":                                   {rule: lists},
	"POST /api/v1/sessions":                               {rule: creates, body: `{"id":"$N"}`},
	"POST /api/v1/sessions/run":                           {rule: creates, body: `{"task":"go"}`},
	"POST /api/v1/import":                                 {rule: creates, body: `{"offset":0,"type":"session.created","data":{}}`, headers: []string{"Content-Type", "application/x-ndjson"}},
	"GET /api/v1/ws":                                      {rule: anyone, headers: upgrade},
	"GET /api/v1/sessions/{id}/ws":                        {rule: reads, headers: upgrade},
	"GET /api/v1/sessions/{id}/ws/replay":                 {rule: reads, headers: upgrade},
	"GET /api/v1/sessions/{id}":                           {rule: reads},
	"PATCH /api/v1/sessions/{id}":                         {rule: owns, body: `{"labels":{"a":"b"}}`},
	"DELETE /api/v1/sessions/{id}":                        {rule: owns},
	"POST /api/v1/sessions/{id}/close":                    {rule: owns, body: `{}`},
	"POST /api/v1/sessions/{id}/erase":                    {rule: owns, body: `{"all":true,"reason":"r"}`},
	"GET /api/v1/sessions/{id}/branches":                  {rule: whole},
	"GET /api/v1/sessions/{id}/context":                   {rule: reads},
	"GET /api/v1/sessions/{id}/events":                    {rule: reads},
	"POST /api/v1/sessions/{id}/events":                   {rule: appends, body: event},
	"GET /api/v1/sessions/{id}/events/history":            {rule: reads},
	"GET /api/v1/sessions/{id}/instances":                 {rule: reads},
	"GET /api/v1/sessions/{id}/messages":                  {rule: reads},
	"GET /api/v1/sessions/{id}/plan":                      {rule: reads},
	"GET /api/v1/sessions/{id}/replay-index":              {rule: reads},
	"GET /api/v1/sessions/{id}/snapshot":                  {rule: reads},
	"GET /api/v1/sessions/{id}/state":                     {rule: reads},
	"GET /api/v1/sessions/{id}/stream":                    sseOf(reads, ""),
	"GET /api/v1/sessions/{id}/summary":                   {rule: reads},
	"GET /api/v1/sessions/{id}/tasks":                     {rule: reads},
	"GET /api/v1/sessions/{id}/threads":                   {rule: reads},
	"GET /api/v1/sessions/{id}/presence":                  {rule: whole},
	"POST /api/v1/sessions/{id}/presence":                 {rule: attends, body: `{"action":"join","user":"x"}`},
	"GET /api/v1/sessions/{id}/inputs":                    {rule: whole},
	"PATCH /api/v1/sessions/{id}/inputs/{input}":          {rule: "444-0--4-?", body: `{}`}, // there is none
	"DELETE /api/v1/sessions/{id}/inputs/{input}":         {rule: "444-0--4-?"},
	"POST /api/v1/sessions/{id}/inputs/{input}/take":      {rule: "444-0-44-?", body: `{"invocation":"inv"}`},
	"POST /api/v1/sessions/{id}/cancel":                   {rule: writes, body: `{}`},
	"POST /api/v1/sessions/{id}/renew":                    {rule: appends, body: `{"invocation":"inv"}`},
	"POST /api/v1/sessions/{id}/clear":                    {rule: writes, body: `{}`},
	"POST /api/v1/sessions/{id}/overwrite":                {rule: writes, body: `{"from_offset":2}`},
	"POST /api/v1/sessions/{id}/rewind":                   {rule: writes, body: `{"to_offset":2}`},
	"POST /api/v1/sessions/{id}/undo":                     {rule: writes, body: `{}`},
	"POST /api/v1/sessions/{id}/resume":                   {rule: writes, body: `{}`},
	"POST /api/v1/sessions/{id}/task":                     {rule: writes, body: `{"task":"go"}`},
	"POST /api/v1/sessions/{id}/permissions/{pid}":        {rule: writes, body: `{"option":"yes"}`},
	"POST /api/v1/sessions/{id}/fork":                     {rule: forks, body: `{}`},
	"GET /api/v1/tokens":                                  {rule: admins},
	"DELETE /api/v1/tokens":                               {rule: admins, query: "issued_by=ada"},
	"POST /api/v1/sessions/{id}/tokens":                   {rule: owns, body: `{"role":"reader"}`},
	"GET /api/v1/sessions/{id}/tokens":                    {rule: owns},
	"DELETE /api/v1/sessions/{id}/tokens":                 {rule: owns},
	"DELETE /api/v1/sessions/{id}/tokens/{tid}":           {rule: "44--0----?"}, // there is none
	"POST /api/v1/sessions/{id}/export":                   {rule: whole, body: `{"format":"ndjson"}`},
	"POST /api/v1/sessions/{id}/instances":                {rule: writes, body: `{"agent_name":"a"}`},
	"GET /api/v1/instances/{iid}":                         {rule: "444444---?"}, // there is none; it looks at many sessions
	"GET /api/v1/sessions/{id}/instances/{iid}":           {rule: "++++0+++4?"}, // it began after the part that the frozen token shows
	"GET /api/v1/sessions/{id}/instances/{iid}/events":    {rule: "++++0+++4?"},
	"POST /api/v1/sessions/{id}/instances/{iid}/events":   {rule: "+++-0--+4?", body: `{"event_type":"user_message","content":{"content":"x"}}`},
	"DELETE /api/v1/sessions/{id}/instances/{iid}/events": {rule: "+++-0--+4?", query: "after=-1"},
	"POST /api/v1/sessions/{id}/instances/{iid}/copy":     {rule: "+++-0--+4?", body: `{"target_instance_id":"ins"}`},

	"POST /api/v1/sessions/{id}/messages": {rule: writes, body: `{"name":"n"}`},
	"GET /api/v1/sessions/{id}/workflow":  {rule: reads},
	"GET /api/v1/workflows":               {rule: lists},
	"POST /api/v1/workflows/run":          {rule: creates, body: `{"bpmn":"x"}`},
	"GET /api/v1/workflows/{name}":        {rule: "444444---?"}, // there is none
	"PUT /api/v1/workflows/{name}":        {rule: admins, body: `{"bpmn":"x"}`},
	"DELETE /api/v1/workflows/{name}":     {rule: "4--------?"},
	"POST /api/v1/workflows/check":        {rule: lists, body: `{"bpmn":"x"}`},

	"GET /v1/stream":                       {rule: lists},
	"OPTIONS /v1/stream/{path}":            {rule: anyone},
	"GET /v1/stream/{path}":                {rule: streamed},
	"HEAD /v1/stream/{path}":               {rule: streamed},
	"PUT /v1/stream/{path}":                {rule: founds, headers: []string{"Content-Type", "text/plain"}},
	"POST /v1/stream/{path}":               {rule: streams, body: "x", headers: []string{"Content-Type", "text/plain"}},
	"DELETE /v1/stream/{path}":             {rule: streams},
	"GET /v1/stream/sessions/{id}":         {rule: reads},
	"HEAD /v1/stream/sessions/{id}":        {rule: reads},
	"PUT /v1/stream/sessions/{id}":         {rule: "++++!++++?"}, // it exists, as asked for
	"POST /v1/stream/sessions/{id}":        {rule: appends, body: event},
	"DELETE /v1/stream/sessions/{id}":      {rule: owns},
	"GET /v1/stream/sessions/{id}/{view}":  {rule: reads},
	"HEAD /v1/stream/sessions/{id}/{view}": {rule: reads},

	"GET /v1/stream/__ds/jwks.json":                             {rule: public},
	"GET /v1/stream/__ds/subscriptions":                         {rule: admins},
	"GET /v1/stream/__ds/subscriptions/{sub}":                   {rule: admins},
	"PUT /v1/stream/__ds/subscriptions/{sub}":                   {rule: admins, body: `{"type":"pull-wake","pattern":"**","wake_stream":"wake/pool"}`},
	"DELETE /v1/stream/__ds/subscriptions/{sub}":                {rule: admins},
	"POST /v1/stream/__ds/subscriptions/{sub}/streams":          {rule: admins, body: `{"streams":["a"]}`},
	"DELETE /v1/stream/__ds/subscriptions/{sub}/streams/{path}": {rule: admins},
	"POST /v1/stream/__ds/subscriptions/{sub}/claim":            {rule: admins, body: `{"worker":"w"}`},
	"POST /v1/stream/__ds/subscriptions/{sub}/ack":              {rule: "?--------?", body: `{}`},
	"POST /v1/stream/__ds/subscriptions/{sub}/callback":         {rule: "+--------?", body: `{}`},
	"POST /v1/stream/__ds/subscriptions/{sub}/release":          {rule: "?--------?", body: `{}`},

	"POST /agui/{agent}":                           sseOf(joins, agui),
	"POST /agui/{agent}/connect":                   sseOf(reads, agui),
	"POST /agui/{agent}/stop/{thread}":             {rule: ends, main: "open", body: `{}`},
	"POST /agui/{agent}/events/{thread}":           {rule: continues, body: `data: {"type":"CUSTOM","name":"n","value":1}` + "\n\n", headers: []string{"Content-Type", "text/event-stream"}},
	"GET /copilotkit/info":                         {rule: anyone},
	"GET /copilotkit/threads":                      {rule: lists, query: "agentId=bot"},
	"POST /copilotkit":                             {rule: anyone, body: `{"method":"info"}`},
	"POST /copilotkit/agent/{agent}/run":           sseOf(joins, agui),
	"POST /copilotkit/agent/{agent}/connect":       sseOf(reads, agui),
	"POST /copilotkit/agent/{agent}/stop/{thread}": {rule: ends, main: "open", body: `{}`},
	"PATCH /copilotkit/threads/{thread}":           {rule: writes, body: `{"agentId":"bot","name":"n"}`},
	"POST /copilotkit/threads/{thread}/archive":    {rule: owns, body: `{"agentId":"bot"}`},
	"DELETE /copilotkit/threads/{thread}":          {rule: owns, body: `{"agentId":"bot"}`},

	"POST /aisdk/{agent}":                 sseOf(joins, ui),
	"GET /aisdk/{agent}/{chat}/stream":    sseOf(reads, ""),
	"GET /aisdk/{agent}/{chat}/messages":  {rule: reads},
	"POST /aisdk/{agent}/{chat}/messages": {rule: continues, body: `{"messages":[{"id":"u$N","role":"user","parts":[{"type":"text","text":"x"}]}]}`},
	"POST /aisdk/{agent}/{chat}/stop":     {rule: ends, main: "open", body: `{}`},
	"POST /aisdk/{agent}/{chat}/events":   {rule: continues, body: `data: {"type":"start","messageId":"m$N"}` + "\n\n", headers: []string{"Content-Type", "text/event-stream"}},

	"GET /.well-known/agent-card.json":                                {rule: anyone},
	"GET /.well-known/agent.json":                                     {rule: anyone},
	"GET /a2a/{agent}/.well-known/agent-card.json":                    {rule: anyone},
	"GET /a2a/{agent}/.well-known/agent.json":                         {rule: anyone},
	"GET /a2a/{agent}/extendedAgentCard":                              {rule: anyone},
	"GET /a2a/{agent}/tasks":                                          {rule: lists},
	"GET /a2a/{agent}/tasks/{id}":                                     {rule: "++++0+++4?"},
	"GET /a2a/{agent}/tasks/{id}:subscribe":                           sseOf("++++0+++4?", ""),
	"POST /a2a/{agent}/tasks/{id}:subscribe":                          sseOf("++++0+++4?", ""),
	"POST /a2a/{agent}/tasks/{id}:cancel":                             {rule: "+++-0--+4?"},
	"GET /a2a/{agent}/tasks/{id}/pushNotificationConfigs":             {rule: owns},
	"POST /a2a/{agent}/tasks/{id}/pushNotificationConfigs":            {rule: owns, body: `{` + hook + `}`},
	"GET /a2a/{agent}/tasks/{id}/pushNotificationConfigs/{config}":    {rule: owns},
	"DELETE /a2a/{agent}/tasks/{id}/pushNotificationConfigs/{config}": {rule: owns},
	"POST /a2a/{agent}/message:send":                                  {rule: joins, body: send},
	"POST /a2a/{agent}/message:stream":                                sseOf(joins, send),
	"GET /api/sessions":                                               {rule: lists, query: "user_id=u"},
	"POST /api/sessions":                                              {rule: creates, query: "user_id=u", body: `{"agent_ref":"ns/bot","name":"n"}`},
	"GET /api/sessions/{id}":                                          {rule: reads, query: "user_id=u"},
	"DELETE /api/sessions/{id}":                                       {rule: owns, query: "user_id=u"},
	"GET /api/sessions/agent/{namespace}/{agent}":                     {rule: lists, query: "user_id=u"},
	"GET /api/sessions/{id}/tasks":                                    {rule: reads},
	"PUT /api/sessions/{id}/effective_history":                        {rule: ends, main: "ended", body: `[{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hello"}]}]`},
	"POST /api/tasks":                                                 {rule: ends, main: "ended", body: `{"id":"$S","contextId":"$S","kind":"task","status":{"state":"working"},"history":[{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hello"}]}]}`},

	"POST /a2a/{agent} 1.0 GetExtendedAgentCard":                rpc(anyone, "GetExtendedAgentCard", `{}`),
	"POST /a2a/{agent} 1.0 SendMessage":                         rpc(joins, "SendMessage", send),
	"POST /a2a/{agent} 1.0 SendStreamingMessage":                rpc(joins, "SendStreamingMessage", send),
	"POST /a2a/{agent} 1.0 GetTask":                             rpc("++++0+++4?", "GetTask", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 1.0 ListTasks":                           rpc(lists, "ListTasks", `{}`),
	"POST /a2a/{agent} 1.0 CancelTask":                          rpc("+++-0--+4?", "CancelTask", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 1.0 SubscribeToTask":                     rpc("++++0+++4?", "SubscribeToTask", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 1.0 CreateTaskPushNotificationConfig":    rpc(owns, "CreateTaskPushNotificationConfig", `{"taskId":"$S~inv",`+hook+`}`),
	"POST /a2a/{agent} 1.0 GetTaskPushNotificationConfig":       rpc(owns, "GetTaskPushNotificationConfig", `{"taskId":"$S~inv","id":"c"}`),
	"POST /a2a/{agent} 1.0 ListTaskPushNotificationConfigs":     rpc(owns, "ListTaskPushNotificationConfigs", `{"taskId":"$S~inv"}`),
	"POST /a2a/{agent} 1.0 DeleteTaskPushNotificationConfig":    rpc(owns, "DeleteTaskPushNotificationConfig", `{"taskId":"$S~inv","id":"c"}`),
	"POST /a2a/{agent} 0.3 agent/getAuthenticatedExtendedCard":  rpc(anyone, "agent/getAuthenticatedExtendedCard", `{}`),
	"POST /a2a/{agent} 0.3 message/send":                        rpc(joins, "message/send", send03),
	"POST /a2a/{agent} 0.3 message/stream":                      rpc(joins, "message/stream", send03),
	"POST /a2a/{agent} 0.3 tasks/get":                           rpc("++++0+++4?", "tasks/get", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 0.3 tasks/list":                          rpc(lists, "tasks/list", `{}`),
	"POST /a2a/{agent} 0.3 tasks/cancel":                        rpc("+++-0--+4?", "tasks/cancel", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 0.3 tasks/resubscribe":                   rpc("++++0+++4?", "tasks/resubscribe", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 0.3 tasks/pushNotificationConfig/set":    rpc(owns, "tasks/pushNotificationConfig/set", `{"taskId":"$S~inv","pushNotificationConfig":{`+hook+`}}`),
	"POST /a2a/{agent} 0.3 tasks/pushNotificationConfig/get":    rpc(owns, "tasks/pushNotificationConfig/get", `{"id":"$S~inv","pushNotificationConfigId":"c"}`),
	"POST /a2a/{agent} 0.3 tasks/pushNotificationConfig/list":   rpc(owns, "tasks/pushNotificationConfig/list", `{"id":"$S~inv"}`),
	"POST /a2a/{agent} 0.3 tasks/pushNotificationConfig/delete": rpc(owns, "tasks/pushNotificationConfig/delete", `{"id":"$S~inv","pushNotificationConfigId":"c"}`),

	"GET /mcp":    {rule: anyone, headers: []string{"Accept", "text/event-stream"}},
	"DELETE /mcp": {rule: anyone},
	"POST /mcp":   {rule: anyone, body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headers: []string{"Accept", "application/json, text/event-stream"}},

	"POST /mcp list_sessions":   tool(lists, "list_sessions", `{}`),
	"POST /mcp search_sessions": tool(lists, "search_sessions", `{"query":"hello"}`),
	"POST /mcp read_session":    tool(reads, "read_session", `{"session":"$S"}`),
	"POST /mcp read_events":     tool(reads, "read_events", `{"session":"$S"}`),
	"POST /mcp session_summary": tool(reads, "session_summary", `{"session":"$S"}`),
	"POST /mcp diff_sessions":   tool(whole, "diff_sessions", `{"a":"$S","b":"$S"}`),
	"POST /mcp run_agent":       tool(writes, "run_agent", `{"session":"$S","task":"go"}`),
	"POST /mcp cancel_run":      tool(writes, "cancel_run", `{"session":"$S"}`),
	"POST /mcp rewind_session":  tool(writes, "rewind_session", `{"session":"$S","to_offset":2}`),
	"POST /mcp fork_session":    tool(forks, "fork_session", `{"session":"$S"}`),
	"POST /mcp list_agents":     tool(anyone, "list_agents", `{}`),
}

const (
	send   = `{"message":{"messageId":"m$N","role":"ROLE_USER","contextId":"$S","parts":[{"text":"go"}]}}`
	send03 = `{"message":{"kind":"message","messageId":"m$N","role":"user","contextId":"$S","parts":[{"kind":"text","text":"go"}]}}`
)

var upgrade = []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}

// A guarded deck has sessions for each sender of [senders].
type guarded struct {
	*deck.Deck
	t     *testing.T
	ids   atomic.Int64
	known map[string]*access.Identity // by token

	limits atomic.Pointer[quota.Limits] // of users; nil for none
}

func (g *guarded) quotas(k quota.Key) quota.Limits {
	if l := g.limits.Load(); l != nil && k.Role != access.Admin {
		return *l
	}
	return quota.Limits{}
}

// Verify makes a guarded a [gate.Verifier].
func (g *guarded) Verify(_ context.Context, token string) (*access.Identity, error) {
	if who := g.known[token]; who != nil {
		return who, who.Valid()
	}
	return nil, nil
}

func openGuarded(t *testing.T, o deck.Options) *guarded {
	t.Helper()
	g := &guarded{t: t, known: map[string]*access.Identity{
		"admin": {Subject: "root", Role: access.Admin}, "owner": {Subject: "ada", Role: access.User}, "writer": {Subject: "wil", Role: access.User},
		"viewer": {Subject: "vic", Role: access.User}, "foreign": {Subject: "eve", Role: access.User}, "reader": {Subject: "rob", Role: access.Reader},
	}}
	o.InMemory, o.Access = true, &deck.Access{Verifiers: []gate.Verifier{g}, Quotas: g.quotas}
	if o.Agents == nil {
		o.Agents = []deck.Agent{{Name: "bot", Runner: tapedeck.RunnerFunc(silent)}}
	}
	g.Deck = openAt(t, "", o)
	return g
}

func (g *guarded) newID() string { return fmt.Sprintf("x%d", g.ids.Add(1)) }

// session creates a session of ada that is shared with wil and vic, with an open run of an
// outside agent in the thread work. Tokens of that session become known.
func (g *guarded) session(main string) string {
	g.t.Helper()
	id := g.newID()
	s, err := g.Create(g.t.Context(), api.NewSession{ID: id, Owner: "ada", Title: "hello", Labels: map[string]string{api.ShareWrite: "wil", api.ShareRead: "vic, kim"}})
	if err != nil {
		g.t.Fatal(err)
	}
	heard := payload.NewMessage("m2", payload.RoleUser, "hello")
	events := []tapedeck.Event{payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m1", payload.RoleUser, "hello")})}
	for _, line := range []string{
		`RUN_STARTED {"threadId":"work","runId":"inv"}`,
		`instance.started {"id":"ins","name":"a"}`,
		`permission.requested {"id":"p1","options":[{"id":"yes","name":"Yes","kind":"allow_once"}]}`,
	} {
		typ, data, _ := strings.Cut(line, " ")
		events = append(events, tapedeck.Event{Type: typ, Thread: "work", Invocation: "inv", Data: []byte(data)})
	}
	context := payload.NewEvent(payload.MessageAdded{Message: heard})
	context.Thread, context.Invocation, context.Instance = "work", "inv", "ins"
	if _, err := s.Append(g.t.Context(), append(events, context)...); err != nil {
		g.t.Fatal(err)
	}
	if main != "" {
		g.runMain(s, main == "ended")
	}
	g.known["agent"] = &access.Identity{Subject: "coder", Role: access.Agent, Limits: access.Limits{Session: id, Invocation: "inv"}}
	g.known["token"] = &access.Identity{Subject: "tom", Role: access.User, Limits: access.Limits{Session: id}}
	g.known["frozen"] = &access.Identity{Subject: "fay", Role: access.Reader, Limits: access.Limits{Session: id, Before: 2}}
	return id
}

// runMain begins a run in the main thread of a session, and ends all runs.
func (g *guarded) runMain(s *deck.Session, end bool) {
	g.t.Helper()
	task := payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage("m3", payload.RoleUser, "go")})
	task.Invocation = "main"
	events := []tapedeck.Event{task, {Type: tapedeck.RunStarted, Invocation: "main", Data: []byte(`{"threadId":"main","runId":"main"}`)}}
	if end {
		events = append(events, tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "main", Data: []byte(`{"threadId":"main","runId":"main"}`)},
			tapedeck.Event{Type: tapedeck.RunFinished, Invocation: "inv", Thread: "work", Data: []byte(`{"threadId":"work","runId":"inv"}`)})
	}
	if _, err := s.Append(g.t.Context(), events...); err != nil {
		g.t.Fatal(err)
	}
}

// An answer is what a sender got.
type answer struct {
	code       int
	body       string
	retryAfter int // seconds; 0 for none
}

var pathPart = strings.NewReplacer("/v1/instances/{iid}", "/v1/instances/0f1e2d3c-4b5a-8697-8899-aabbccddeeff", "{namespace}", "ns", "{agent}", "bot", "{pid}", "p1", "{iid}", "ins", "{input}", "inp_1", "{config}", "c", "{tid}", "grant_x", "{view}", "views/messages", "{sub}", "sub", "{profile}", "goroutine")

// ask sends the request of a row, and ends a stream at its first byte.
func (g *guarded) ask(route string, r row, sender, session string) answer {
	g.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	path, _, _ = strings.Cut(path, " ")
	n := g.newID()
	fill := strings.NewReplacer("$S", session, "$N", n, "$P", "users/ada/"+session)
	if strings.HasPrefix(path, "/a2a/") {
		path = strings.ReplaceAll(path, "{id}", session+"~inv")
	}
	for _, name := range []string{"{id}", "{thread}", "{chat}"} {
		path = strings.ReplaceAll(path, name, session)
	}
	path = strings.ReplaceAll(pathPart.Replace(path), "{path}", "users/ada/"+session)
	if r.query != "" {
		path += "?" + fill.Replace(r.query)
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), 2*time.Minute)
	defer cancel()
	in := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(fill.Replace(r.body)))
	in.Host = "127.0.0.1"
	in.Header.Set("Content-Type", "application/json")
	for h := r.headers; len(h) > 0; h = h[2:] {
		in.Header.Set(h[0], h[1])
	}
	if sender != "nobody" {
		in.Header.Set("Authorization", "Bearer "+sender)
	}
	w := &cutting{ResponseRecorder: httptest.NewRecorder(), cut: cancel}
	g.Handler().ServeHTTP(w, in)
	body := strings.ReplaceAll(strings.ReplaceAll(w.Body.String(), session, "ID"), n, "NEW")
	if strings.HasPrefix(body, `data: {"jsonrpc"`) && strings.Contains(body, `"error"`) { // the only event of a stream that cannot begin
		body = strings.TrimPrefix(body, "data: ")
	}
	retry, _ := strconv.Atoi(w.Header().Get("Retry-After"))
	return answer{w.Code, body, retry}
}

// plain returns the answer without what differs between two answers that say the same.
func (a answer) plain() answer {
	a.body = ids.ReplaceAllString(a.body, "X")
	return a
}

// ids matches what differs between two answers that say the same.
var ids = regexp.MustCompile(`[a-z]+_[0-9A-Za-z]{20,}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// cutting ends the request when the first event of a stream was written.
type cutting struct {
	*httptest.ResponseRecorder
	cut func()
}

func (c *cutting) Write(b []byte) (int, error) {
	if strings.Contains(c.Header().Get("Content-Type"), "event-stream") && bytes.Contains(b, []byte("\n\n")) {
		defer c.cut()
	}
	return c.ResponseRecorder.Write(b)
}

var (
	saysForbidden = regexp.MustCompile(`this token (is for|may|cannot|shows|writes|does)|only the owner of|creates no sessions|an agent's token|subscriptions are for admins`)
	saysMissing   = regexp.MustCompile(`there is no (session|task)|-32001|not_found`)
)

// kind returns what an answer means, as a letter of a rule.
func (a answer) kind() string {
	inBody := a.code == 200 && (strings.HasPrefix(a.body, `{"jsonrpc"`) && (strings.Contains(a.body, `"error"`) || strings.Contains(a.body, `"isError":true`)) ||
		!strings.HasPrefix(a.body, "{") && strings.Contains(a.body, "RUN_ERROR"))
	switch {
	case a.code == 401:
		return "?"
	case a.code == 403, inBody && saysForbidden.MatchString(a.body):
		return "-"
	case a.code == 404, inBody && saysMissing.MatchString(a.body):
		return "4"
	case a.code == 409 && strings.Contains(a.body, "is not free"), inBody && strings.Contains(a.body, "is not free"):
		return "!"
	case a.code >= 500 && a.code != 501: // 501: the recorder is no connection that could become a WebSocket
		return "5"
	}
	return "+"
}

func (g *guarded) prepare(route string) string {
	g.t.Helper()
	id := g.session(table[route].main)
	if strings.Contains(route, "{sub}") {
		if a := g.ask("PUT /v1/stream/__ds/subscriptions/{sub}", table["PUT /v1/stream/__ds/subscriptions/{sub}"], "admin", id); a.code >= 300 {
			g.t.Fatalf("%d %s", a.code, a.body)
		}
	}
	if strings.Contains(route, "/v1/stream/{path}") && !strings.HasPrefix(route, "PUT") {
		if a := g.ask("PUT /v1/stream/{path}", row{headers: []string{"Content-Type", "text/plain"}}, "owner", id); a.code != 201 {
			g.t.Fatalf("%d %s", a.code, a.body)
		}
	}
	if strings.HasPrefix(route, "POST /a2a") || strings.Contains(route, "{config}") {
		config := table["POST /a2a/{agent}/tasks/{id}/pushNotificationConfigs"]
		config.body = `{"id":"c",` + hook + `}`
		if a := g.ask("POST /a2a/{agent}/tasks/{id}/pushNotificationConfigs", config, "owner", id); a.code != 200 {
			g.t.Fatalf("%d %s", a.code, a.body)
		}
	}
	return id
}

// TestWhoMayUseEachRoute sends the request of each route as each sender.
func TestWhoMayUseEachRoute(t *testing.T) {
	g := openGuarded(t, deck.Options{MCPWrite: true, AllowWebhooks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, route := range slices.Sorted(maps.Keys(table)) {
		r := table[route]
		if len(r.rule) != len(senders) {
			t.Errorf("%s: its rule is for %d senders, not for %d", route, len(r.rule), len(senders))
			continue
		}
		for i, sender := range senders {
			id := g.prepare(route)
			got := g.ask(route, r, sender, id)
			want := string(r.rule[i])
			if want == "0" {
				if missing := g.ask(route, r, sender, g.newID()); got.plain() != missing.plain() {
					t.Errorf("%s as %s: %d %s\nfor an id that was never used: %d %s", route, sender, got.code, got.body, missing.code, missing.body)
				}
				continue
			}
			if got.kind() != want {
				t.Errorf("%s as %s: %s, want %s: %d %s", route, sender, got.kind(), want, got.code, got.body)
			}
		}
	}
}

// TestEveryRouteIsInTheTable fails when a route is mounted that the table does not know.
func TestEveryRouteIsInTheTable(t *testing.T) {
	g := openGuarded(t, deck.Options{MCPWrite: true})
	routes := append(g.Routes(), g.tools()...)
	for _, route := range routes {
		if _, ok := table[route]; !ok {
			t.Errorf("nothing says who may use %s.\nAdd a line to table in deck/access_routes_test.go, such as\n\t%q: {rule: reads},\n"+
				"and see that the handler uses the parts of the deck that package access/guard guards.", route, route)
		}
	}
	for route := range table {
		if !slices.Contains(routes, route) {
			t.Errorf("the table has %s, which is not mounted", route)
		}
	}
}

// tools returns the tools of MCP as routes.
func (g *guarded) tools() (routes []string) {
	list := askMCP("", "tools/list", "", "")
	var out struct {
		Result struct{ Tools []struct{ Name string } }
	}
	a := g.ask("POST /mcp", list, "admin", g.newID())
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || len(out.Result.Tools) == 0 {
		g.t.Fatalf("%d %s, %v", a.code, a.body, err)
	}
	for _, t := range out.Result.Tools {
		routes = append(routes, "POST /mcp "+t.Name)
	}
	return routes
}

var _ http.Flusher = (*cutting)(nil)
