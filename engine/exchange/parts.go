package exchange

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// content returns the content of a user or tool message as AG-UI has it: a
// string, or an array of parts. raw is a string, an array of parts as OpenAI or
// Anthropic have them, or anything else, which becomes its JSON.
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

// parts returns parts as AG-UI has them; a single text is a string.
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
		return quoted("") // cannot be: all items are JSON
	}
	return b
}

// part returns one part as AG-UI has it. One of a kind that we do not know stays
// as it is; one without a kind becomes its text or its JSON.
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
		return textPart(compact(raw)) // these would mean something else to us
	}
	return encode(m)
}

// wordsPart returns the part of a text. What else a part of type text has, such
// as annotations, stays.
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

// linked returns the part of a URL, which may hold the data itself.
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

// media returns the part of a medium as Anthropic has it, or as AG-UI has it
// already.
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

// plain returns the text of a content, for messages that can have only text.
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
		if s, ok := text(m["text"]); ok {
			b.WriteString(s)
		} else {
			b.WriteString(compact(item))
		}
	}
	return b.String()
}
