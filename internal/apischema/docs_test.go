package apischema

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	example    = regexp.MustCompile("(?m)^```json\n(.*)\n```$|`(\\{\"[^`]*\\})`")
	request    = regexp.MustCompile("(?s)```http (\\d+)\n([A-Z]+) ([^\n]+)\n(.*?)```")
	anyHeading = regexp.MustCompile(`(?m)^#{2,3} (.*)$`)
)

// Each answer in docs/http.md that is JSON, in a block or within a sentence, fits a
// schema of the section that it is in.
func TestDocsAnswersFit(t *testing.T) {
	c, checked := checker(t), 0
	for title, text := range docSections(t) {
		for _, m := range example.FindAllStringSubmatch(text, -1) {
			value := []byte(strings.ReplaceAll(m[1]+m[2], `,…`, ``))
			if !json.Valid(value) { // names of members without values, or a sketch
				continue
			}
			if string(value) == `{"erased":true}` { // the data of an event
				continue
			}
			checked++
			if !fitsOne(c, title, value) {
				t.Errorf("%s: no schema of this section fits %s", title, value)
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d answers were found", checked)
	}
}

// otherForms are what is shown in a section besides requests and answers of its
// route.
var otherForms = map[string][]string{
	"Going back":                  {"Rewound"},
	"Errors":                      {"Error"},
	"GET /sessions/{id}/stream":   {"StreamEnd", "CaughtUp"},
	"POST /sessions/{id}/events":  {"NewEvent"},
	"Presence":                    {"PresenceFrame"},
	"Contexts of instances":       {"ContextEvent"},
	"GET /sessions/{id}/presence": {"PresenceFrame"},
}

func fitsOne(c *Checker, title string, value []byte) bool {
	for _, name := range otherForms[title] {
		if c.Schema(name, value) == nil {
			return true
		}
	}
	method, path, ok := strings.Cut(title, " ")
	if !ok || !strings.HasPrefix(path, "/") {
		return false
	}
	for status := http.StatusOK; status < http.StatusMultipleChoices; status++ {
		if c.Answer(method, path, status, typeJSON, value) == nil {
			return true
		}
	}
	return c.Request(method, path, nil, typeJSON, value) == nil
}

// Each request in docs/http.md fits. Their answers are checked in protocol/rest,
// where the requests are sent.
func TestDocsRequestsFit(t *testing.T) {
	c, checked := checker(t), 0
	text, err := os.ReadFile(root + "/docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range request.FindAllStringSubmatch(string(text), -1) {
		if status, _ := strconv.Atoi(m[1]); status >= http.StatusBadRequest {
			continue
		}
		r, err := http.NewRequest(m[2], m[3], nil)
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(m[4], "\n\n")
		_, contentType, _ := strings.Cut(head, "Content-Type: ")
		contentType, _, _ = strings.Cut(contentType, "\n")
		checked++
		if err := c.Request(r.Method, strings.TrimPrefix(r.URL.Path, "/api/v1"), r.URL.Query(), contentType, []byte(strings.TrimSpace(body))); err != nil {
			t.Errorf("%s %s: %v", m[2], m[3], err)
		}
	}
	if checked < 25 {
		t.Errorf("only %d requests were found", checked)
	}
}

// docSections returns the sections of docs/http.md by title.
func docSections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	at := anyHeading.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out[string(text[m[2]:m[3]])] = string(text[m[1]:end])
	}
	return out
}
