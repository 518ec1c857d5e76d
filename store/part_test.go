package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func TestArrange(t *testing.T) {
	part := func(cluster string, number, of int) *Part {
		return &Part{Cluster: cluster, Number: number, Of: of, Complete: true}
	}
	begun := func(cluster string, number, of int) *Part { return &Part{Cluster: cluster, Number: number, Of: of} }
	for name, test := range map[string]struct {
		found   []*Part
		names   string
		cluster string
		kind    tapedeck.Kind
		message string
		hint    string
	}{
		"new ones":               {found: []*Part{nil, nil}},
		"all of them":            {found: []*Part{part("c", 1, 2), part("c", 2, 2)}, cluster: "c"},
		"a start that died":      {found: []*Part{nil, begun("c", 2, 2)}, cluster: "c"},
		"a start that died late": {found: []*Part{part("c", 1, 2), begun("c", 2, 2)}, cluster: "c"},
		"twice":                  {found: []*Part{nil, nil}, names: "a a", kind: tapedeck.Invalid, message: "a was given twice"},
		"another order": {
			found: []*Part{part("c", 3, 3), part("c", 1, 3), part("c", 2, 3)}, kind: tapedeck.Conflict,
			message: "a is database 3 of 3, and was given as number 1", hint: "b, c, a",
		},
		"missing":   {found: []*Part{part("c", 1, 4), part("c", 3, 4)}, kind: tapedeck.Conflict, message: "missing: number 2 and 4"},
		"too many":  {found: []*Part{begun("c", 1, 1), nil}, kind: tapedeck.Conflict, message: "are in 1 databases, and 2 were given", hint: "cannot be added"},
		"an empty":  {found: []*Part{part("c", 1, 2), nil}, kind: tapedeck.Conflict, message: "a is database 1 of 2, but b is none of these"},
		"a foreign": {found: []*Part{nil, part("c", 2, 3), part("d", 3, 3)}, kind: tapedeck.Conflict, message: "b and c do not belong together"},
	} {
		names := strings.Fields("a b c")[:len(test.found)]
		if test.names != "" {
			names = strings.Fields(test.names)
		}
		cluster, err := Arrange(test.found, names)
		if cluster != test.cluster || tapedeck.KindOf(err) != test.kind {
			t.Errorf("%s: the cluster is %q, the error %v", name, cluster, err)
		}
		var e *tapedeck.Error
		if errors.As(err, &e) && (!strings.Contains(e.Message, test.message) || !strings.Contains(e.Hint, test.hint)) {
			t.Errorf("%s: the error is %q, the hint %q", name, e.Message, e.Hint)
		}
	}
}
