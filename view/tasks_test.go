package view_test

import (
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

func TestTaskFixtures(t *testing.T) {
	testFixtures(t, "tasks", func(_ *testing.T, _ viewFixture, events []tapedeck.Event) any {
		return view.Tasks(fold(events).Snapshot())
	})
}
