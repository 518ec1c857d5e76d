package store

import (
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

// NoWorkflow returns the error for a name, or a version of it, that is not stored. The
// digest is "" for the current version.
func NoWorkflow(name, digest string) error {
	if digest == "" {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no workflow %q", name)
	}
	return tapedeck.Errorf(tapedeck.NotFound, "the workflow %q has no version %.80q", name, digest)
}
