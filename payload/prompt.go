package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// NewPrompt returns the message that stores the system text of a model from
// here on. It has the role system; its metadata has a digest that distinguishes
// it from other system messages. The newest one of a thread replaces the
// earlier ones. An empty text means that the model gets no system text any
// more.
func NewPrompt(text string) MessageAdded {
	m := NewMessage(tapedeck.NewID("msg_"), RoleSystem, text)
	m.Metadata = tapedeck.Meta{Prompt: PromptDigest(text)}.In(nil)
	return MessageAdded{Message: m}
}

// PromptDigest returns the digest of a system text, so that a text is stored
// again only when it changes.
func PromptDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PromptOf returns the digest in the metadata of a message from [NewPrompt], ""
// for any other message.
func PromptOf(role string, metadata json.RawMessage) string {
	if role != RoleSystem {
		return ""
	}
	return tapedeck.MetaOf(metadata).Prompt
}
