package payload

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func TestMeta(t *testing.T) {
	want := Meta{Agent: "a", DurationMS: new(int64), Resumable: new(bool), Tools: []string{"x"}, Closed: tapedeck.StatusFailed}
	raw, err := json.Marshal(want.Metadata())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, MetaOf(raw)); diff != "" {
		t.Error(diff)
	}
	if got := string(raw); got != `{"tapedeck":{"agent":"a","closed":"failed","durationMs":0,"resumable":false,"tools":["x"]}}` {
		t.Error(got)
	}
}

// TestMetaOfOtherShapes: a member of another shape must not hide the others.
func TestMetaOfOtherShapes(t *testing.T) {
	got := MetaOf([]byte(`{"other":1,"tapedeck":{"agent":5,"context":"c","tools":"x","durationMs":1.5,"error":true,"more":{}}}`))
	if diff := cmp.Diff(Meta{Context: "c", Error: true}, got); diff != "" {
		t.Error(diff)
	}
	for _, raw := range []string{"", "null", "[]", "{", `{"tapedeck":null}`, `{"tapedeck":[]}`, `{"tapedeck":"x"}`, `{"tapedeck":{`} {
		if diff := cmp.Diff(Meta{}, MetaOf([]byte(raw))); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}
