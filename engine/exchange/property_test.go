package exchange

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
)

// odd draws a JSON value for a member of any shape: the right value, or one that a
// careless program wrote.
func odd(right ...string) *rapid.Generator[string] {
	strange := []string{`null`, `5`, `-1`, `1e400`, `true`, `""`, `"x"`, `"\u0000\ud800"`, `{}`, `[]`, `[[]]`, `[null]`, `{"type":7}`, `"` + strings.Repeat("i", 2000) + `"`}
	return rapid.Custom(func(t *rapid.T) string {
		if len(right) > 0 && rapid.IntRange(0, 9).Draw(t, "strange") < 8 {
			return rapid.SampledFrom(right).Draw(t, "right")
		}
		return rapid.SampledFrom(strange).Draw(t, "value")
	})
}

// obj draws an object with some of the members. A name can be in it twice.
func obj(members map[string]*rapid.Generator[string]) *rapid.Generator[string] {
	all := slices.Sorted(maps.Keys(members))
	return rapid.Custom(func(t *rapid.T) string {
		var out []string
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(all), len(all), 2*len(all)).Draw(t, "names") {
			out = append(out, string(quoted(name))+":"+members[name].Draw(t, name))
		}
		return "{" + strings.Join(out, ",") + "}"
	})
}

func arr(item *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(item, 0, 4).Draw(t, "items"), ",") + "]"
	})
}

func either(gens ...*rapid.Generator[string]) *rapid.Generator[string] { return rapid.OneOf(gens...) }

var (
	anyID    = odd(`"i1"`, `"i2"`, `"i3"`, `"a/ b\""`)
	anyText  = odd(`"hello"`, `"[Request interrupted by user]"`)
	anyMedia = obj(map[string]*rapid.Generator[string]{
		"type": odd(`"base64"`, `"url"`), "data": odd(`"AA"`), "value": odd(`"AA"`), "url": odd(`"http://x"`), "media_type": odd(`"image/png"`),
	})
	anyPart = obj(map[string]*rapid.Generator[string]{
		"type": odd(`"text"`, `"image"`, `"image_url"`, `"input_audio"`, `"document"`, `"refusal"`, `"new"`),
		"text": anyText, "source": either(anyMedia, odd()), "image_url": either(anyMedia, anyText), "input_audio": either(anyMedia, odd()),
	})
	anyContent = either(anyText, arr(either(anyPart, odd())))

	anyCall = obj(map[string]*rapid.Generator[string]{
		"id": anyID, "custom": odd(`null`), "function": obj(map[string]*rapid.Generator[string]{"name": anyID, "arguments": odd(`"{}"`, `{"a":1}`)}),
	})
	anyMessage = obj(map[string]*rapid.Generator[string]{
		"role":    odd(`"user"`, `"assistant"`, `"tool"`, `"system"`, `"developer"`, `"function"`),
		"content": anyContent, "name": anyID, "tool_calls": either(arr(either(anyCall, odd())), odd(`null`)), "tool_call_id": anyID,
		"function_call": odd(`null`), "reasoning": odd(`null`), "refusal": odd(`null`), "other": odd(),
	})

	anyBlock = obj(map[string]*rapid.Generator[string]{
		"type": odd(`"text"`, `"thinking"`, `"redacted_thinking"`, `"tool_use"`, `"tool_result"`, `"server_tool_use"`),
		"text": anyText, "thinking": anyText, "signature": anyText, "data": anyText, "id": anyID, "tool_use_id": anyID,
		"name":    odd(`"Bash"`, `"TodoWrite"`),
		"input":   odd(`{"todos":[{"content":"a","status":"b"}]}`, `{"todos":[{"content":1}]}`),
		"content": anyContent, "is_error": odd(`true`, `false`),
	})
	anyEntry = obj(map[string]*rapid.Generator[string]{
		"type": odd(`"user"`, `"assistant"`, `"user"`, `"assistant"`, `"system"`, `"summary"`),
		"uuid": anyID, "agentId": anyID, "sessionId": anyID, "isSidechain": odd(`true`, `false`), "isMeta": odd(`true`, `false`), "cwd": odd(`"/a"`, `"/b"`),
		"timestamp": odd(`"2026-01-05T10:00:00Z"`, `"0000-01-01T00:00:00+02:00"`, `"2020-01-05T10:00:00.5+01:00"`),
		"content":   anyText, "summary": anyText,
		"message": obj(map[string]*rapid.Generator[string]{
			"id": anyID, "model": anyID, "content": either(anyText, arr(either(anyBlock, odd()))), "stop_reason": odd(`null`),
			"usage": obj(map[string]*rapid.Generator[string]{
				"input_tokens": odd(`1`, `9007199254740991`), "output_tokens": odd(`2`), "cache_read_input_tokens": odd(`3`, `9007199254740991`),
			}),
		}),
	})
)

// TestAnyShape: whatever shape the members of a line have, the events can be
// appended.
func TestAnyShape(t *testing.T) {
	for format, line := range map[string]*rapid.Generator[string]{
		OpenAIMessages: either(anyMessage, arr(anyMessage), obj(map[string]*rapid.Generator[string]{"messages": arr(either(anyMessage, odd())), "title": anyText})),
		ClaudeCode:     anyEntry,
	} {
		t.Run(format, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				lines := rapid.SliceOfN(line, 1, 20).Draw(rt, "lines")
				for _, l := range lines {
					if !json.Valid([]byte(l)) {
						rt.Fatalf("the test made %s", l)
					}
				}
				sessions, _, err := read(t, format, strings.NewReader(strings.Join(lines, "\n")), Options{})
				if err != nil && tapedeck.KindOf(err) != tapedeck.Invalid {
					rt.Fatal(err)
				}
				for _, events := range sessions {
					if err == nil {
						fold(t, events)
					}
				}
				if t.Failed() {
					rt.Fatal("see above")
				}
			})
		})
	}
}
