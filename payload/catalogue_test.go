package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// fill sets all fields of a struct except Extra to values that are not zero.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		f, tag := v.Field(i), v.Type().Field(i).Tag
		switch {
		case v.Type().Field(i).Name == "Extra":
		case f.Type() == rawType:
			raws := map[string]string{"array": `[1]`, "object": `{"a":1}`, "text": `"text"`, "patch": `[{"op":"remove","path":"/a"}]`}
			raw := raws[tag.Get("shape")]
			if raw == "" {
				raw = `"raw"`
			}
			f.SetBytes([]byte(raw))
		case f.Type() == membersType:
			f.Set(reflect.ValueOf(tapedeck.Members{"b": []byte(`1`), "a": []byte(`null`)}))
		case f.Type() == labelsType:
			f.Set(reflect.ValueOf(map[string]string{"b": "1", "a": `"`}))
		default:
			fillKind(f)
		}
	}
}

func fillKind(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString("ein Wörtchen <&>\n\"")
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Int, reflect.Int64:
		f.SetInt(42)
	case reflect.Float64:
		f.SetFloat(1.5)
	case reflect.Struct:
		fill(f)
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		fillKind(f.Elem())
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 2, 2))
		fillKind(f.Index(0))
		fillKind(f.Index(1))
	case reflect.Array:
		fillKind(f.Index(0))
		fillKind(f.Index(1))
	}
}

// corrected changes filled data to meet the checks beyond shapes.
func corrected(p reflect.Value) {
	set := func(field, value string) {
		if f := p.FieldByName(field); f.IsValid() && f.Kind() == reflect.String {
			f.SetString(value)
		}
	}
	switch p.Interface().(type) {
	case ReasoningMessageStart:
		set("Role", RoleReasoning)
	case ToolCallResult:
		set("Role", RoleTool)
	default:
		set("Role", RoleUser)
	}
	if f := p.FieldByName("Cuts"); f.IsValid() {
		set("Delta", "abcd")
		set("Data", "abcd")
		f.Set(reflect.ValueOf([]Cut{{3, 0}, {1, 7}}))
	}
	if f := p.FieldByName("Message"); f.IsValid() && f.Kind() == reflect.Struct {
		f.FieldByName("Role").SetString(RoleAssistant)
	}
	if f := p.FieldByName("Messages"); f.IsValid() {
		f.Index(0).FieldByName("Role").SetString(RoleAssistant)
		f.Index(1).FieldByName("Role").SetString(RoleTool)
	}
	if _, ok := p.Interface().(PermissionRequested); ok {
		p.FieldByName("ID").SetString("inv_1.p1") // it is part of the URL of the answer
	}
	if f := p.FieldByName("Input"); f.IsValid() && f.Kind() == reflect.Pointer {
		corrected(f.Elem())
	}
}

func TestEveryTypeRoundTrips(t *testing.T) {
	for _, c := range catalogue {
		t.Run(c.name, func(t *testing.T) {
			p := reflect.New(reflect.TypeOf(c.data)).Elem()
			fill(p)
			corrected(p)
			e := NewEvent(p.Interface().(Payload))
			if e.Type != c.name {
				t.Errorf("NewEvent made a %s", e.Type)
			}
			if err := e.Check(); err != nil {
				t.Errorf("%v: %s", err, e.Data)
			}
			if err := CheckData(&e); err != nil {
				t.Errorf("%v: %s", err, e.Data)
			}
			got, err := Decode(e)
			if err != nil || !cmp.Equal(got, p.Interface()) {
				t.Errorf("%v\n%s", err, cmp.Diff(p.Interface(), got))
			}
			if again := NewEvent(got); string(again.Data) != string(e.Data) {
				t.Errorf("%s became %s", e.Data, again.Data)
			}
			var std map[string]any
			if err := json.Unmarshal(e.Data, &std); err != nil || std["Extra"] != nil {
				t.Errorf("%v: %s", err, e.Data)
			}
		})
	}
}

// TestEveryTypeKeepsUnknownMembers decodes and encodes unknown members, and
// members whose value equals their absence. All must survive (promise P9).
func TestEveryTypeKeepsUnknownMembers(t *testing.T) {
	for _, c := range catalogue {
		members := map[string]any{"shiny": map[string]any{"a": []any{nil, "<>"}}, "\"odd\"": 1, "Type": true}
		lay := layoutOf(reflect.TypeOf(c.data))
		for _, f := range lay.fields {
			members[f.name] = nil
		}
		data, _ := json.Marshal(members)
		p, err := Decode(tapedeck.Event{Type: c.name, Data: data})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e := NewEvent(p); !cmp.Equal(canonical(t, e.Data), canonical(t, data)) {
			t.Errorf("%s: %s became %s", c.name, data, e.Data)
		}
	}
}

func TestKeepsExplicitZeros(t *testing.T) {
	for typ, data := range map[string]string{
		tapedeck.TextMessageStart: `{"messageId":"m","name":"","role":"","timestamp":0,"metadata":{}}`,
		tapedeck.ActivitySnapshot: `{"messageId":"m","activityType":"","content":{},"replace":false}`,
		tapedeck.RunFinished:      `{"threadId":"","runId":"r","result":null,"outcome":{"type":"x","interrupts":[],"until":{"a":1}},"usage":[{"inputTokens":0,"cost":1}]}`,
		tapedeck.MessagesSnapshot: `{"messages":[{"id":"m","role":"assistant","content":null,"toolCalls":[{"id":"c","type":"","function":{"name":"","arguments":"","x":1},"y":2}],"z":""}]}`,
	} {
		p, err := Decode(tapedeck.Event{Type: typ, Data: []byte(data)})
		if err != nil {
			t.Errorf("%s: %v", typ, err)
		} else if e := NewEvent(p); !cmp.Equal(canonical(t, e.Data), canonical(t, []byte(data))) {
			t.Errorf("%s became %s", data, e.Data)
		}
	}
}

func TestFieldsWinOverExtra(t *testing.T) {
	p, err := DecodeAs[TextMessageStart](tapedeck.Event{Type: tapedeck.TextMessageStart, Data: []byte(`{"messageId":"m","name":"","x":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	p.Name = "Ada"
	if e := NewEvent(&p); string(e.Data) != `{"messageId":"m","name":"Ada","x":1}` {
		t.Errorf("got %s", e.Data)
	}
}

func TestLastOfAMemberCounts(t *testing.T) {
	p, err := DecodeAs[TextMessageStart](tapedeck.Event{Type: tapedeck.TextMessageStart, Data: []byte(`{"messageId":"a","name":"","messageId":"b","name":"c"}`)})
	if err != nil || p.MessageID != "b" || p.Name != "c" || p.Extra != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestDecodeUnknownType(t *testing.T) {
	in := tapedeck.Event{Type: "my.own", Data: []byte(`{"a": 1}`)}
	p, err := Decode(in)
	if u, ok := p.(Unknown); err != nil || !ok || u.Type != "my.own" {
		t.Fatalf("%#v, %v", p, err)
	}
	if e := NewEvent(p); e.Type != in.Type || string(e.Data) != string(in.Data) {
		t.Errorf("got %+v", e)
	}
	if err := CheckData(&in); err != nil {
		t.Error(err)
	}
}

func TestDecodeErrors(t *testing.T) {
	for name, test := range map[string]struct {
		e    tapedeck.Event
		says string
	}{
		"wrong shape":  {tapedeck.Event{Type: tapedeck.TextMessageStart, Data: []byte(`{"messageId":5}`)}, "the data of TEXT_MESSAGE_START cannot be read: its member messageId is not a string of 1 to 1,024 bytes"},
		"not JSON":     {tapedeck.Event{Type: tapedeck.Custom, Data: []byte(`{"name":`)}, "it is not a JSON object"},
		"no object":    {tapedeck.Event{Type: tapedeck.Custom, Data: []byte(`[]`)}, "it is not a JSON object"},
		"deep":         {tapedeck.Event{Type: tapedeck.MessageAdded, Data: []byte(`{"message":{"id":{}}}`)}, "its member message is not an object"},
		"list":         {tapedeck.Event{Type: tapedeck.PlanUpdated, Data: []byte(`{"entries":[{"content":1}]}`)}, "its member entries is not an array of objects"},
		"not a list":   {tapedeck.Event{Type: tapedeck.PlanUpdated, Data: []byte(`{"entries":{}}`)}, "its member entries is not an array of objects"},
		"half a value": {tapedeck.Event{Type: tapedeck.Custom, Data: []byte(`{"name":"a","value":tru}`)}, "its member value is not JSON"},
	} {
		p, err := Decode(test.e)
		if tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(fmt.Sprint(err), test.says) || p != nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := DecodeAs[Custom](tapedeck.Event{Type: tapedeck.Raw}); tapedeck.KindOf(err) != tapedeck.Invalid || err.Error() != "a RAW has no Custom" {
		t.Errorf("got %v", err)
	}
	if p, err := DecodeAs[SessionClosed](tapedeck.Event{Type: tapedeck.SessionClosed}); err != nil || p.Reason != "" {
		t.Errorf("without data: %+v, %v", p, err)
	}
}

func TestNewEventOfZero(t *testing.T) {
	for _, c := range catalogue {
		e := NewEvent(c.data)
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v: %s", c.name, err, e.Data)
		}
	}
	if got := NewEvent(MessagesSnapshot{}); string(got.Data) != `{"messages":[]}` {
		t.Errorf("got %s", got.Data)
	}
}

// TestNewEventOfBadRaw checks that Check refuses invalid JSON in a raw member.
func TestNewEventOfBadRaw(t *testing.T) {
	e := NewEvent(Custom{Name: "a", Value: []byte(`{"b":`)})
	if err := e.Check(); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Errorf("got %v for %s", err, e.Data)
	}
	e = NewEvent(TextMessageContent{MessageID: "m", Delta: "a\xffb\u2028\x7f\x00"})
	if err := e.Check(); err != nil {
		t.Errorf("%v: %q", err, e.Data)
	}
}

func TestNewEventOfNoPayload(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a struct without a type was accepted")
		}
	}()
	NewEvent(struct{ Common }{})
}

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range catalogue {
		typ := reflect.TypeOf(c.data)
		if seen[c.name] || typeBy[typ].name != c.name {
			t.Errorf("%s or %s is there twice", c.name, typ)
		}
		seen[c.name] = true
		if tapedeck.ChannelOf(c.name) == "" {
			t.Errorf("%s has no channel", c.name)
		}
		if strings.Contains(c.name, ".") == IsAGUI(c.name) {
			t.Errorf("%s: IsAGUI is %v", c.name, IsAGUI(c.name))
		}
		if n := len(typeByName[c.name].layout.fields); n > maxFields {
			t.Errorf("%s has %d members; raise maxFields", c.name, n)
		}
		hasExtra(t, typ)
	}
	for name := range checks {
		if typeByName[name] == nil {
			t.Errorf("there is a check for %s, which is not in the catalogue", name)
		}
	}
}

// hasExtra fails the test if a struct in the tree of t would lose unknown
// members.
func hasExtra(t *testing.T, typ reflect.Type) {
	t.Helper()
	l := layoutOf(typ)
	if l.extra == nil {
		t.Errorf("%s has no Extra", typ)
	}
	if len(l.fields) > maxFields {
		t.Errorf("%s has %d members; raise maxFields", typ, len(l.fields))
	}
	for _, f := range l.fields {
		ft := typ.FieldByIndex(f.index).Type
		if k := ft.Kind(); k == reflect.Pointer || k == reflect.Slice {
			ft = ft.Elem()
		}
		if f.nested != nil {
			hasExtra(t, ft)
		}
	}
}

func TestChannelOf(t *testing.T) {
	for typ, want := range map[string]string{
		"":                               "",
		"x":                              "",
		"my.own":                         "",
		"FUTURE_EVENT":                   "",
		"TEXT_MESSAGE_SHOUTED":           tapedeck.ChannelChunks,
		"TOOL_CALL_PAUSED":               tapedeck.ChannelToolCalls,
		"SUBAGENT_RETRIED":               tapedeck.ChannelAgentState,
		"workflow.paused":                tapedeck.ChannelWorkflow,
		"terminal.bell":                  tapedeck.ChannelTerminal,
		"presence.typing":                tapedeck.ChannelPresence,
		"session.archived":               tapedeck.ChannelSession,
		"feedback.withdrawn":             tapedeck.ChannelSession,
		tapedeck.MessageAdded:            tapedeck.ChannelChunks,
		tapedeck.ReasoningEncryptedValue: tapedeck.ChannelChunks,
		tapedeck.PermissionAnswered:      tapedeck.ChannelToolCalls,
		tapedeck.UsageReported:           tapedeck.ChannelAgentState,
		tapedeck.MessagesSnapshot:        tapedeck.ChannelAgentState,
		tapedeck.Raw:                     tapedeck.ChannelAgentState,
		tapedeck.BookmarkAdded:           tapedeck.ChannelSession,
	} {
		if got := tapedeck.ChannelOf(typ); got != want {
			t.Errorf("ChannelOf(%q) = %q, want %q", typ, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	m := NewMessage("m", RoleUser, "a <b>\n\"é")
	if err := m.Check(); err != nil || m.Text() != "a <b>\n\"é" {
		t.Errorf("%v, %q", err, m.Text())
	}
	b, err := json.Marshal([]Message{m})
	var back []Message
	if err != nil || json.Unmarshal(b, &back) != nil || back[0].Text() != m.Text() {
		t.Errorf("%s, %v", b, err)
	}
	parts := Message{Content: []byte(`[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","value":"x"}},{"type":"text","text":"b"}]`)}
	if got := parts.Text(); got != "ab" {
		t.Errorf("the text of the parts is %q", got)
	}
	for _, content := range []string{``, `null`, `{"a":1}`, `5`, `[1]`, `"`} {
		if got := (&Message{Content: []byte(content)}).Text(); got != "" {
			t.Errorf("the text of %s is %q", content, got)
		}
	}
}

func TestMessageCheck(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"m","role":"developer","content":""}`:                                      "",
		`{"id":"m","role":"system","content":"x"}`:                                        "",
		`{"id":"m","role":"user","content":"x"}`:                                          "",
		`{"id":"m","role":"user","content":[]}`:                                           "",
		`{"id":"m","role":"user","content":[{"type":"later"}]}`:                           "",
		`{"id":"m","role":"assistant"}`:                                                   "",
		`{"id":"m","role":"assistant","content":"x"}`:                                     "",
		`{"id":"m","role":"tool","toolCallId":"c","content":[{"type":"text","text":""}]}`: "",
		`{"id":"m","role":"activity","activityType":"T","content":{}}`:                    "",
		`{"id":"m","role":"reasoning","content":"x"}`:                                     "",
		`{"role":"user","content":"x"}`:                                                   "the message has no id",
		`{"id":"m","role":"robot","content":"x"}`:                                         `the message "m" has the role "robot"`,
		`{"id":"m","content":"x"}`:                                                        `the message "m" has the role ""`,
		`{"id":"m","role":"user"}`:                                                        `the content of the user message "m" is not a string or an array of content parts`,
		`{"id":"m","role":"system","content":[]}`:                                         `the content of the system message "m" is not a string`,
		`{"id":"m","role":"assistant","content":null}`:                                    `the content of the assistant message "m" is not a string`,
		`{"id":"m","role":"user","content":[{"type":"text"}]}`:                            "is not a string or an array",
		`{"id":"m","role":"user","content":[{"type":"text","Text":"x"}]}`:                 "is not a string or an array",
		`{"id":"m","role":"user","content":[{"type":"image","source":{"type":"url"}}]}`:   "is not a string or an array",
		`{"id":"m","role":"user","content":[{"text":"x"}]}`:                               "is not a string or an array",
		`{"id":"m","role":"tool","content":"x"}`:                                          `the tool message "m" has no toolCallId`,
		`{"id":"m","role":"activity","content":{}}`:                                       `the activity message "m" has no activityType`,
		`{"id":"m","role":"activity","activityType":"T","content":"x"}`:                   "is not an object",
	} {
		var m Message
		if err := json.Unmarshal([]byte(in), &m); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		err := m.Check()
		if want == "" && err != nil || want != "" && (tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestMessageCheckMedia(t *testing.T) {
	for _, typ := range []string{"image", "audio", "video", "document"} {
		for part, ok := range map[string]bool{
			`{"type":"` + typ + `","source":{"type":"data","value":"eA==","mimeType":"x/y"}}`: true,
			`{"type":"` + typ + `","source":{"value":"eA=="}}`:                                false,
			`{"type":"` + typ + `"}`: false,
		} {
			m := Message{ID: "m", Role: RoleUser, Content: []byte("[" + part + "]")}
			if err := m.Check(); ok != (err == nil) {
				t.Errorf("%s: %v", part, err)
			}
		}
	}
}

// canonical returns JSON with sorted members and without unnecessary escapes.
func canonical(t testing.TB, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
