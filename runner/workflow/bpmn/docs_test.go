package bpmn_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

const document = "../../../docs/workflows.md"

var diagrams = flag.String("diagrams", "", "a folder with .bpmn files of other tools, which TestModels reads")

// TestModels reads the files of other tools that can run. The package workflow runs them.
func TestModels(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*diagrams, "*.bpmn"))
	if *diagrams == "" {
		t.Skip("it takes a folder of diagrams: -args -diagrams FOLDER")
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no diagrams in %s: %v", *diagrams, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := bpmn.Read(bytes.NewReader(data), bpmn.Options{}); err == nil {
			checkModel(t, d)
		}
	}
}

// TestExamples reads the diagrams of the documentation, which have neither problems nor
// warnings.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../docs/workflows/*.bpmn")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := bpmn.Read(bytes.NewReader(data), bpmn.Options{})
		if err != nil {
			t.Fatalf("%s: %s", file, problems(err))
		}
		checkModel(t, d)
		same(t, file, warnings(d), []string(nil))
	}
}

var xmlBlock = regexp.MustCompile("(?s)```xml\n(.*?)```")

// TestDocument reads the examples of docs/workflows.md, each of which is a task.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	blocks := xmlBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 4 {
		t.Fatalf("the page has only %d examples", len(blocks))
	}
	for _, b := range blocks {
		inside := strings.ReplaceAll(b[1], "bpmn:", "")
		d, err := bpmn.Read(strings.NewReader(whole(inside)), bpmn.Options{})
		if err != nil {
			t.Errorf("%s\n%s", b[1], problems(err))
			continue
		}
		same(t, b[1], warnings(d), []string(nil))
	}
}
