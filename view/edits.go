package view

import (
	"bytes"
	"encoding/json"
	"strings"
)

// An edit is the effect of a tool call on one file.
type edit struct {
	Path    string `json:"path"`
	Added   int64  `json:"added"`
	Removed int64  `json:"removed"`
}

// editors are the file-editing tools of well-known coding agents. Their names
// are in lower case and without punctuation.
var editors = map[string]bool{
	"write": true, "edit": true, "multiedit": true, "notebookedit": true, // Claude Code, opencode
	"writefile": true, "replace": true, "editfile": true, "createfile": true, // Gemini CLI, Qwen Code and others
	"update": true, "create": true, "updatefile": true, "savefile": true, "writetofile": true, "overwritefile": true,
	"searchreplace": true, "searchandreplace": true, "replaceinfile": true, "strreplace": true, "stringreplace": true,
	"insert": true, "inserttext": true, "insertcontent": true, "applydiff": true, "applyedit": true,
	"applypatch": true, "patch": true, // Codex, opencode
	"strreplaceeditor": true, "strreplacebasededittool": true, // editors that models are trained on
}

// acpNewText occurs in the arguments of edits by ACP agents, whose tools can
// have any name.
var acpNewText = []byte(`"newText"`)

func isEditor(tool string) bool {
	if i := strings.LastIndex(tool, "__"); i >= 0 { // mcp__server__tool
		tool = tool[i+2:]
	}
	return editors[unpunctuated.Replace(strings.ToLower(tool))]
}

var unpunctuated = strings.NewReplacer("_", "", "-", "", " ", "")

// These lists have the names that agents give to the same argument.
var (
	pathNames = []string{
		"file_path", "filePath", "path", "notebook_path", "absolute_path",
		"file", "filename", "file_name", "fileName", "target_file", "targetFile", "relative_path",
	}
	wholeNames = []string{"content", "file_text", "contents", "text"}
	oldNames   = []string{"old_string", "oldString", "oldText", "old_str", "old", "old_text", "oldStr", "search", "find"}
	newNames   = []string{
		"new_string", "newString", "newText", "new_str", "new_source",
		"new", "new_text", "newStr", "replace", "replacement", "insert_text",
	}
	patchNames = []string{"input", "patch", "patchText", "diff"}
)

// editsOf returns the edits that a tool call makes, as far as its arguments
// show them. The arguments are hostile input; other shapes give no edits.
func editsOf(editor bool, args []byte) []edit {
	if !editor && !bytes.Contains(args, acpNewText) {
		return nil
	}
	var m members
	if nesting(args) > maxDepth || json.Unmarshal(args, &m) != nil {
		return readPatch(string(args)) // Codex gives the plain text of a patch
	}
	path, ok := m.text(pathNames)
	if !ok || path == "" {
		patch, _ := m.text(patchNames)
		return readPatch(patch)
	}
	if patch, ok := m.text([]string{"patch", "diff"}); ok {
		return patchOf(path, patch)
	}
	if whole, ok := m.text(wholeNames); ok {
		return []edit{{Path: path, Added: countLines(whole)}} // the old content is unknown
	}
	changes := []members{m}
	if list := m["edits"]; list != nil {
		changes = nil
		_ = json.Unmarshal(list, &changes)
	}
	sum, edited, budget := edit{Path: path}, false, maxDiff
	for _, c := range changes {
		after, replaces := c.text(newNames)
		before, _ := c.text(oldNames)
		mode, _ := c.text([]string{"edit_mode"})
		edited = edited || replaces || mode == "delete"
		added, removed := lineDiff(before, after, &budget)
		sum.Added, sum.Removed = plus(sum.Added, added), plus(sum.Removed, removed)
	}
	if !edited {
		return nil // the call only reads
	}
	return []edit{sum}
}

// A members map holds the members of a JSON object.
type members map[string]json.RawMessage

// text returns the first of the named members that is a string.
func (m members) text(names []string) (string, bool) {
	for _, name := range names {
		var s *string
		if raw, ok := m[name]; ok && json.Unmarshal(raw, &s) == nil && s != nil {
			return *s, true
		}
	}
	return "", false
}

// patchOf reads a patch whose file is named in another argument; such a patch
// may have no headers.
func patchOf(path, text string) []edit {
	if out := readPatch(text); len(out) > 0 {
		return out
	}
	return readPatch("+++ " + path + "\n" + text)
}

// readPatch reads patches in Codex's format and unified diffs. A header with a
// file name begins a section; in it, added lines begin with plus and removed
// lines with minus.
func readPatch(text string) []edit {
	var out []edit
	var from string // file name in the "---" header of a unified diff
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if next := ""; strings.HasPrefix(line, "--- ") {
			if i+1 < len(lines) {
				next = lines[i+1]
			}
			if strings.HasPrefix(next, "+++ ") {
				from = diffPath(line)
				continue
			}
		}
		switch path, header := patchHeader(line, from); {
		case header && len(out) >= maxPatched:
			return out
		case header:
			out = append(out, edit{Path: path})
		case len(out) == 0:
		case strings.HasPrefix(line, "+"):
			out[len(out)-1].Added++
		case strings.HasPrefix(line, "-"):
			out[len(out)-1].Removed++
		}
	}
	return out
}

// maxPatched is the largest number of files that are read from one patch.
const maxPatched = 1000

// diffPath returns the path in a header line of a unified diff.
func diffPath(line string) string {
	path, _, _ := strings.Cut(line[len("--- "):], "\t")
	if rest, ok := strings.CutPrefix(path, "a/"); ok {
		return rest
	}
	return strings.TrimPrefix(path, "b/")
}

func patchHeader(line, from string) (path string, ok bool) {
	if strings.HasPrefix(line, "+++ ") {
		if path = diffPath(line); path == "/dev/null" {
			path = from
		}
		return path, true
	}
	for _, p := range [...]string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
		if path, ok = strings.CutPrefix(line, p); ok {
			return path, true
		}
	}
	return "", false
}
