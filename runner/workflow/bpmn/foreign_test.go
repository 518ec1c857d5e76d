package bpmn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

// TestForeign: elements of tools are not read wherever they are, and each name is reported
// once.
func TestForeign(t *testing.T) {
	many := strings.Repeat("<other:note/>", 1000)
	file := strings.Replace(whole(many+`<task id="t">`+many+`<other:x/></task>`), "</process>", "</process>"+many, 1)
	d, err := bpmn.Read(strings.NewReader(file), bpmn.Options{})
	if err != nil {
		t.Fatal(problems(err))
	}
	const not = ` of the namespace "http://example.com/other" is not read`
	same(t, "warnings", warnings(d), []string{"p: the element note" + not, "t: the element x" + not})

	var names, bad strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&names, "<other:n%d/>", i)
		bad.WriteString("<zeebe:job/>")
	}
	if d, err = bpmn.Read(strings.NewReader(whole(names.String())), bpmn.Options{}); err != nil || len(d.Warnings) != 200 {
		t.Error(err, len(d.Warnings))
	}
	if _, err = bpmn.Read(strings.NewReader(whole(bad.String())), bpmn.Options{}); err == nil || strings.Count(problems(err), "\n") > 0 {
		t.Error(err)
	}
	// A condition in our form is ours, whatever the language of the file.
	for _, text := range []string{"= a == 1", "${a == 1}"} {
		file := whole(`<sequenceFlow id="f" sourceRef="t" targetRef="e"><conditionExpression>` + text + `</conditionExpression></sequenceFlow>`)
		if _, err := bpmn.Read(strings.NewReader(strings.Replace(file, `id="defs"`, `id="defs" expressionLanguage="http://example.com/basic"`, 1)), bpmn.Options{}); err != nil {
			t.Error(text, problems(err))
		}
	}
}
