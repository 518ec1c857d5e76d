package apischema

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A section is what docs/http.md says about a route.
type section struct {
	text       string            // its first paragraph
	parameters map[string]string // descriptions, by name
}

var (
	heading = regexp.MustCompile(`^### ([A-Z]+ /.*)$`)
	row     = regexp.MustCompile(`^\| (.+?) \| ?(.*?) ?\|$`)
	quoted  = regexp.MustCompile("`([^`]+)`")
	mdLink  = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
)

// readSections reads the sections of docs/http.md, by method and path.
func readSections(root string) (map[string]*section, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "http.md"))
	if err != nil {
		return nil, err
	}
	out := map[string]*section{}
	var now *section
	table, open := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			now, open, table = &section{parameters: map[string]string{}}, true, ""
			out[m[1]] = now
			continue
		}
		if strings.HasPrefix(line, "#") {
			now = nil
		}
		if now == nil || strings.HasPrefix(line, "|---") {
			continue
		}
		m := row.FindStringSubmatch(line)
		switch {
		case m == nil:
			table = ""
			open = open && line != "" && !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "- ")
			if open {
				now.text = strings.TrimSpace(now.text + " " + plain(line))
			}
		case table == "":
			table, open = m[1], false
		case table == "parameter":
			for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
				now.parameters[name[1]] = plain(m[2])
			}
		}
	}
	return out, nil
}

// plain returns a line of Markdown without links, whose targets are relative to the
// document.
func plain(line string) string { return mdLink.ReplaceAllString(line, "$1") }
