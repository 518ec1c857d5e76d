package workflow

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

var diagrams = flag.String("diagrams", "", "a folder with diagrams of other tools, which TestDiagrams runs")

// TestDiagrams runs the diagrams of a folder: each ends, or fails with a sentence, or is
// refused with one. People answer with the defaults, and every message arrives.
func TestDiagrams(t *testing.T) {
	folder := *diagrams
	if folder == "" {
		folder = "bpmn/testdata"
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.bpmn"))
	more, _ := filepath.Glob(filepath.Join(folder, "*", "*.bpmn"))
	if files = append(files, more...); len(files) == 0 {
		t.Fatal("there are no diagrams")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			xml, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				h, err := attended(t, string(xml))
				var refused *bpmn.Error
				var known *tapedeck.Error
				switch {
				case err == nil:
					t.Logf("%s: it ended %s", filepath.Base(file), h.state().Outcome)
				case errors.As(err, &refused):
					t.Logf("%s: it is refused: %s", filepath.Base(file), firstOf(err))
				case errors.As(err, &known) && h.state().Outcome != "":
					t.Logf("%s: it failed: %s", filepath.Base(file), firstOf(err))
				default:
					t.Errorf("%s: %v, trace %s", filepath.Base(file), err, h.trace())
				}
			})
		})
	}
}

var missing = regexp.MustCompile(`uses the variable "?(\w+)"?, which does not exist`)

// attended runs a process, again with each variable that it misses.
func attended(t *testing.T, xml string) (*host, error) {
	given := []any{}
	for {
		h := newHost(t, xml, given...)
		h.config.Agents = map[string]string{"*": "a"}
		err := h.attend()
		if err == nil {
			return h, nil
		}
		m := missing.FindStringSubmatch(err.Error())
		if m == nil || len(given) > 20 {
			return h, err
		}
		var value any = 1
		if strings.Contains(strings.ToLower(m[1]), "timeout") {
			value = "PT1H"
		}
		given = append(given, m[1], value)
	}
}

func firstOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// attend runs a process, with people and other programs that do what it waits for.
func (h *host) attend() error {
	h.runner.options.MaxEntries = 100
	ctx, cancel := context.WithTimeout(context.Background(), 10*365*24*time.Hour)
	defer cancel()
	for name := range h.needed() {
		h.config.Variables[name] = encode(1)
	}
	if err := h.begin(ctx, ""); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- h.walk(ctx, "") }()
	for range 10_000 {
		synctest.Wait()
		select {
		case err := <-ended:
			return err
		default:
		}
		h.help()
		time.Sleep(time.Hour)
	}
	cancel()
	return errors.Join(errors.New("it does not end"), <-ended)
}

// help answers the questions and sends the messages that the process waits for.
func (h *host) help() {
	w := h.state()
	waits := w.Waits
	for _, a := range w.Activations {
		waits = append(waits, a.Waits...)
	}
	for _, wait := range waits {
		switch wait.For {
		case "user":
			h.send(payload.PermissionAnswered{Choice: tapedeck.Choice{ID: wait.Permission, Option: "submit"}})
		case "message":
			h.send(payload.WorkflowMessage{Name: wait.Message, Correlation: wait.Correlation})
		}
	}
}

// needed returns the variables that the start event asks for.
func (h *host) needed() map[string]bool {
	out := map[string]bool{}
	d, err := bpmn.Read(strings.NewReader(h.config.BPMN), bpmn.Options{})
	if err != nil || d.Main == nil || d.Main.Start == nil || d.Main.Start.Form == nil {
		return out
	}
	for _, f := range d.Main.Start.Form.Fields {
		out[f.ID] = true
	}
	return out
}
