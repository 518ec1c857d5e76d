package rest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// docs/http.md describes each route under a heading of its own, and no other.
func TestDocsHaveEveryRoute(t *testing.T) {
	var want, got []string
	for _, r := range Routes() {
		want = append(want, r.Method+" "+r.Path)
	}
	for _, m := range regexp.MustCompile(`(?m)^### ([A-Z]+ /.*)$`).FindAllStringSubmatch(readDoc(t, "http.md"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/http.md has\n%s\nthe handler has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The parameters and limits in the docs are those of the code.
func TestDocsTellTheLimits(t *testing.T) {
	http, log := readDoc(t, "http.md"), readDoc(t, "log.md")
	h := New(Options{}).(*handler)
	for _, want := range []string{
		fmt.Sprintf("at most %d MiB and %d,000 events", h.MaxAppend>>20, h.MaxEvents/1000),
		fmt.Sprintf("at most %d GiB", h.MaxImport>>30),
		fmt.Sprintf("at most %d MiB where nothing else is said", h.MaxBody>>20),
		fmt.Sprintf("1 to %d; %d without it", pageLimit, listDefault),
		fmt.Sprintf("1 to %d; %d without it", pageLimit, pageLimit),
		fmt.Sprintf("looked at %d,000 events", scanLimit/1000),
		fmt.Sprintf("nothing to send for %d seconds", int(h.Heartbeat.Seconds())),
		"1 to 128 letters",
	} {
		if !strings.Contains(http, want) {
			t.Errorf("docs/http.md does not say %q", want)
		}
	}
	for _, want := range []string{
		fmt.Sprintf("| %d MiB and %d,000 events |", h.MaxAppend>>20, h.MaxEvents/1000),
		fmt.Sprintf("| %d bytes of UTF-8", longestName()),
	} {
		if !strings.Contains(log, want) {
			t.Errorf("docs/log.md does not say %q", want)
		}
	}
	for _, name := range filterNames {
		if !strings.Contains(http, "`"+name+"`") {
			t.Errorf("docs/http.md does not have the parameter %s", name)
		}
	}
}

// longestName returns the length of the longest name that is accepted, in bytes.
func longestName() int {
	n := 0
	for tapedeck.CheckName("the name", strings.Repeat("x", n+1)) == nil {
		n++
	}
	return n
}
