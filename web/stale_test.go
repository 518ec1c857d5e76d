package web_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck/web"
)

const source = ".."

var isTest = regexp.MustCompile(`\.test\.tsx?$`)

// sources returns the names of the files from which the build is made. The list must be the
// same as in ui/scripts/source.mjs.
func sources(t *testing.T) []string {
	t.Helper()
	names := []string{"package-lock.json", "package.json", "ui/alias.ts", "ui/index.html", "ui/package.json",
		"ui/recording.config.ts", "ui/tsconfig.json", "ui/vite.config.ts"}
	for _, folder := range []string{"packages/client/src", "ui/public", "ui/scripts", "ui/src"} {
		err := fs.WalkDir(os.DirFS(source), folder, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !isTest.MatchString(name) {
				names = append(names, name)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return names
}

func sourceHash(t *testing.T) string {
	t.Helper()
	all := sha256.New()
	for _, name := range sources(t) {
		b, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256(b), name)
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

// TestBuildIsNotStale works without Node: after a change of the screen, its build
// must be committed, too.
func TestBuildIsNotStale(t *testing.T) {
	if _, err := os.Stat(filepath.Join(source, "ui/package.json")); err != nil {
		t.Skip("the source of the user interface is not available")
	}
	built, err := os.ReadFile("dist/source.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(built)); got != sourceHash(t) {
		t.Error("web/dist was not built from ui/ and packages/client as they are now: run make generated")
	}
}

// TestPageNamesOnlyFilesOfTheBuild checks that the page names only files of the build.
func TestPageNamesOnlyFilesOfTheBuild(t *testing.T) {
	files := web.Files()
	if files == nil {
		t.Fatal("there is no build")
	}
	page, err := fs.ReadFile(files, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllSubmatch(page, -1)
	for _, m := range found {
		name, local := bytes.CutPrefix(m[1], []byte("/"))
		if _, err := fs.Stat(files, string(name)); !local || err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
		}
	}
	if len(found) < 2 {
		t.Errorf("the page names %d files", len(found))
	}
	if regexp.MustCompile(`<script[^>]*>[^<]|<style|\son[a-z]+=`).Match(page) {
		t.Error("the page has inline code or style, which its Content-Security-Policy forbids")
	}
}

// TestPlayerFitsIntoAPage checks that the script and the style can be inlined: they do not
// end their element, do not begin a comment that would hide its end, and load no file.
func TestPlayerFitsIntoAPage(t *testing.T) {
	script, style := web.Player()
	if script == "" || style == "" {
		t.Fatal("there is no player")
	}
	if m := regexp.MustCompile(`(?i)</script|<!--`).FindString(script); m != "" {
		t.Errorf("the script has %q", m)
	}
	if m := regexp.MustCompile(`\bimport\s*\(|\bimport\.meta|\bnew Worker\b|sourceMappingURL`).FindString(script); m != "" {
		t.Errorf("the script has %q, which loads another file", m)
	}
	if m := regexp.MustCompile(`(?i)</style|@import|url\(`).FindString(style); m != "" {
		t.Errorf("the style has %q", m)
	}
	if len(script) > 1<<20 {
		t.Errorf("the script has %d bytes", len(script))
	}
}
