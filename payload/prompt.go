package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// NewPrompt returns the message that stores the system text with which a model is
// called from here on. It has the role system, and a mark in its metadata that
// tells it from what people write. The newest one of a thread replaces those
// before it. An empty text says that the model gets none any more.
func NewPrompt(text string) MessageAdded {
	m := NewMessage(tapedeck.NewID("msg_"), RoleSystem, text)
	m.Metadata = Meta{Prompt: PromptDigest(text)}.Metadata()
	return MessageAdded{Message: m}
}

// PromptDigest returns the digest by which a stored system text is known, so that
// it is stored again only when it changes.
func PromptDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PromptOf returns the digest in the metadata of a message that [NewPrompt] has
// made, "" for any other message.
func PromptOf(role string, metadata json.RawMessage) string {
	if role != RoleSystem {
		return ""
	}
	return MetaOf(metadata).Prompt
}
