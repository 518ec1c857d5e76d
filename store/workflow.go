package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A Workflow describes a stored diagram: one version of a name.
type Workflow struct {
	Name   string
	Digest string    // of the diagram; identifies the version
	Title  string    // for people; may be empty
	Added  time.Time // when this version became the current one, in whole milliseconds
	Size   int64     // of the diagram, in bytes
}

// digestPrefix begins the digests of diagrams.
const digestPrefix = "sha256:"

// Check returns an error if a diagram is not the one that was stored. A digest of another form
// than sha256: says nothing.
func (w *Workflow) Check(diagram []byte) error {
	want, ok := strings.CutPrefix(w.Digest, digestPrefix)
	if sum := sha256.Sum256(diagram); !ok || hex.EncodeToString(sum[:]) == want {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Internal, "the stored diagram of workflow %q, version %s, is damaged, so it is not served", w.Name, w.Digest).
		WithHint("store the diagram again under its name, or restore a backup").Because(tapedeck.ErrDamaged)
}

// NoWorkflow returns the error for a name, or a version of it, that is not stored. The
// digest is "" for the current version.
func NoWorkflow(name, digest string) error {
	if digest == "" {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no workflow %q", name)
	}
	return tapedeck.Errorf(tapedeck.NotFound, "the workflow %q has no version %.80q", name, digest)
}
