package exchange

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// content returns the content of a user or tool message in the form of AG-UI: a
// string, or an array of parts. raw is a string, an array of parts of OpenAI or
// Anthropic, or any other JSON, which becomes its text.
func content(raw json.RawMessage) json.RawMessage {
	if missing(raw) {
		return quoted("")
	}
	if _, ok := text(raw); ok {
		return raw
	}
	items, ok := list(raw)
	if !ok {
		return quoted(compact(raw))
	}
	return parts(items)
}

// parts returns parts in the form of AG-UI. A single text is a string.
func parts(items []json.RawMessage) json.RawMessage {
	out := make([]json.RawMessage, 0, len(items))
	for _, item := range items {
		out = append(out, part(item))
	}
	if len(out) == 1 {
		if m := object(out[0]); str(m["type"]) == "text" && len(m) == 2 {
			return m["text"]
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return quoted("") // impossible: all items are JSON
	}
	return b
}

// part returns one part in the form of AG-UI. A part of an unknown kind stays as
// it is; one without a kind becomes its text or its JSON.
func part(raw json.RawMessage) json.RawMessage {
	if s, ok := text(raw); ok {
		return textPart(s)
	}
	m := object(raw)
	kind, ok := text(m["type"])
	switch {
	case !ok:
		return textPart(compact(raw))
	case kind == "text" || kind == "input_text" || kind == "output_text" || kind == "refusal":
		return wordsPart(kind, m)
	case kind == "image_url":
		return linked("image", m["image_url"], raw)
	case kind == "input_audio":
		return audio(object(m["input_audio"]), raw)
	case kind == "image" || kind == "audio" || kind == "video" || kind == "document":
		return media(kind, m, raw)
	}
	if !missing(m["source"]) || !missing(m["text"]) && kindOf(m["text"]) != '"' {
		return textPart(compact(raw)) // AG-UI has another meaning for these
	}
	return encode(m)
}

// wordsPart returns a part of text. It keeps other members, such as annotations.
func wordsPart(kind string, m tapedeck.Members) json.RawMessage {
	s, ok := text(m["text"])
	switch {
	case !ok:
		return textPart(str(m["refusal"]))
	case kind == "text" && missing(m["source"]):
		return encode(m)
	}
	return textPart(s)
}

func textPart(s string) json.RawMessage {
	return encode(tapedeck.Members{"type": quoted("text"), "text": quoted(s)})
}

// linked returns the part for a URL, which can contain the data itself.
func linked(kind string, raw, whole json.RawMessage) json.RawMessage {
	url, ok := text(raw)
	if !ok {
		if url, ok = text(object(raw)["url"]); !ok {
			return textPart(compact(whole))
		}
	}
	head, data, isData := strings.Cut(url, ";base64,")
	if mime, ok := strings.CutPrefix(head, "data:"); ok && isData {
		return mediaPart(kind, "data", data, mime)
	}
	return mediaPart(kind, "url", url, "")
}

func audio(m tapedeck.Members, whole json.RawMessage) json.RawMessage {
	data, ok := text(m["data"])
	if !ok {
		return textPart(compact(whole))
	}
	return mediaPart("audio", "data", data, "audio/"+str(m["format"]))
}

// media returns the part for a medium in the form of Anthropic, or already in that
// of AG-UI.
func media(kind string, m tapedeck.Members, whole json.RawMessage) json.RawMessage {
	source := object(m["source"])
	typ, isTyped := text(source["type"])
	if value, ok := text(source["value"]); ok && isTyped {
		return mediaPart(kind, typ, value, str(source["mimeType"]))
	}
	if data, ok := text(source["data"]); ok {
		return mediaPart(kind, "data", data, str(source["media_type"]))
	}
	if url, ok := text(source["url"]); ok && typ == "url" {
		return mediaPart(kind, "url", url, "")
	}
	return textPart(compact(whole))
}

func mediaPart(kind, how, value, mime string) json.RawMessage {
	source := tapedeck.Members{"type": quoted(how), "value": quoted(value)}
	if mime != "" {
		source["mimeType"] = quoted(mime)
	}
	return encode(tapedeck.Members{"type": quoted(kind), "source": encode(source)})
}

// plain returns the text of a content, for messages that can only have text.
func plain(raw json.RawMessage) string {
	if s, ok := text(raw); ok {
		return s
	}
	items, ok := list(raw)
	if !ok {
		if missing(raw) {
			return ""
		}
		return compact(raw)
	}
	var b strings.Builder
	for _, item := range items {
		m := object(part(item))
		if raw := m["text"]; kindOf(raw) == '"' {
			b.WriteString(string(jsonobj.PieceOf(raw)))
		} else {
			b.WriteString(compact(item))
		}
	}
	return payload.Whole(b.String())
}
