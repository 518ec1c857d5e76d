package terminal

import (
	"encoding/json"
	"os"
	"testing"
)

// The screen has a test with the same table.
func TestVisible(t *testing.T) {
	b, err := os.ReadFile("testdata/visible.json")
	if err != nil {
		t.Fatal(err)
	}
	var table [][2]string
	if err := json.Unmarshal(b, &table); err != nil || len(table) == 0 {
		t.Fatal(err)
	}
	for _, row := range table {
		if got := Visible(row[0]); got != row[1] {
			t.Errorf("%q is shown as %q, not %q", row[0], got, row[1])
		}
		if got := Visible(row[1]); got != row[1] {
			t.Errorf("%q has no hidden character and is shown as %q", row[1], got)
		}
	}
	if got := Visible("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("invalid UTF-8 is shown as %q", got)
	}
}
