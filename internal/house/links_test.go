package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *(```+|~~~+).*?^ *(```+|~~~+) *$")
	spans   = regexp.MustCompile("`[^`\n]*`")
	links   = regexp.MustCompile(`\]\(([^()\s]+)\)|(?:src|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	named   = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
)

// TestLinksLeadSomewhere: each link of a page to another file of the repository leads to one,
// and to a heading that is there.
func TestLinksLeadSomewhere(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "*.md").Output()
	if err != nil {
		t.Skipf("this is no clone: %v", err)
	}
	seen := 0
	for page := range strings.Lines(string(out)) {
		page = filepath.Join("../..", strings.TrimSpace(page))
		if strings.Contains(page, "testdata/") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(spans.ReplaceAllString(prose(t, page), ""), -1) {
			seen++
			if why := follow(t, page, m[1]+m[2]); why != "" {
				t.Errorf("%s: the link %s: %s", strings.TrimPrefix(page, "../../"), m[1]+m[2], why)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links were found", seen)
	}
}

// prose returns a page without its blocks of code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return fenced.ReplaceAllString(string(text), "")
}

// follow returns why a link of a page leads nowhere, "" if it does not. Links to other servers
// are not followed.
func follow(t *testing.T, page, link string) string {
	t.Helper()
	if strings.Contains(link, ":") || strings.HasPrefix(link, "/") {
		return ""
	}
	path, anchor, _ := strings.Cut(link, "#")
	file := page
	if path != "" {
		file = filepath.Join(filepath.Dir(page), path)
	}
	if _, err := os.Stat(file); err != nil {
		return "there is no such file"
	}
	if anchor != "" && strings.HasSuffix(file, ".md") && !anchors(prose(t, file))[anchor] {
		return "the page has no such heading"
	}
	return ""
}

// anchors returns what the headings of a page are called in links.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(m[1], "]")) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		all[b.String()] = true
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return all
}
