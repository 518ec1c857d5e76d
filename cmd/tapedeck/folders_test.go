package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// furnished returns folders with a file in the folder of session s. Beside the data
// folder is another folder, with a file that must stay.
func furnished(t *testing.T) (f *folders, file, outside string) {
	t.Helper()
	top := t.TempDir()
	outside = filepath.Join(top, "mine")
	f = &folders{data: filepath.Join(top, "data")}
	path, err := f.session("s")
	if err == nil {
		err = os.Mkdir(outside, 0o700)
	}
	for _, folder := range []string{path, outside} {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "file"), []byte("x"), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f, filepath.Join(path, "file"), filepath.Join(outside, "file")
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// entries lists the folder work.
func entries(t *testing.T, f *folders) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(f.data, workName))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

func TestDiscardFolder(t *testing.T) {
	f, file, outside := furnished(t)
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(filepath.Dir(file), "link")); err != nil {
		t.Skip(err)
	}
	if _, err := f.session("s2"); err != nil {
		t.Fatal(err)
	}
	remove, err := f.discard("s")
	if err != nil || isThere(filepath.Dir(file)) {
		t.Fatal("a recreated session would inherit it", err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, f); len(got) != 1 || got[0] != "s2" || !isThere(outside) {
		t.Errorf("there are %q, outside %v", got, isThere(outside))
	}
	if remove, err = f.discard("s"); err != nil || remove() != nil { // no agent has worked in it
		t.Error(err)
	}
}

func TestDiscardNoOtherFolder(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, f *folders, work, outside string) (id string){
		"an id that is a path": func(*testing.T, *folders, string, string) string { return "../../mine" },
		"no id":                func(*testing.T, *folders, string, string) string { return "" },
		"the folder is a link": func(t *testing.T, _ *folders, work, outside string) string {
			link(t, outside, filepath.Join(work, "l"))
			return "l"
		},
		"work is a link": func(t *testing.T, f *folders, _, outside string) string {
			f.data = t.TempDir()
			link(t, filepath.Dir(outside), filepath.Join(f.data, workName))
			return filepath.Base(outside)
		},
		"the configuration names it": func(_ *testing.T, f *folders, work, _ string) string {
			f.of(ptr(filepath.Join(work, "s")), nil, "")
			return "s"
		},
		"a session may choose it": func(_ *testing.T, f *folders, work, _ string) string {
			f.of(nil, []string{filepath.Join(work, "s")}, "")
			return "s"
		},
		"the configuration names one in it": func(_ *testing.T, f *folders, work, _ string) string {
			f.of(ptr("s/project"), nil, work)
			return "s"
		},
		"the configuration names it by a link": func(t *testing.T, f *folders, work, _ string) string {
			named := filepath.Join(t.TempDir(), "named")
			link(t, work, named)
			f.of(&named, nil, "")
			return "s"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, file, outside := furnished(t)
			id := harm(t, f, filepath.Dir(filepath.Dir(file)), filepath.Dir(outside))
			remove, _ := f.discard(id)
			_ = remove()
			if !isThere(file) || !isThere(outside) {
				t.Errorf("the file of the session exists: %v, the other one: %v", isThere(file), isThere(outside))
			}
		})
	}
}

func ptr(s string) *string { return &s }

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skip(err)
	}
}

// A process that died while it removed a folder left a part of it.
func TestSweepFolders(t *testing.T) {
	f, file, outside := furnished(t)
	if _, err := f.discard("s"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.session("s"); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Dir(outside), filepath.Join(f.data, workName, goneName+"link"))
	if got := entries(t, f); len(got) != 3 {
		t.Fatalf("there are %q", got)
	}
	f.sweep(slog.New(slog.DiscardHandler))
	if got := entries(t, f); len(got) != 1 || got[0] != "s" || !isThere(outside) || isThere(file) {
		t.Errorf("there are %q", got)
	}
	(&folders{}).sweep(nil) // a temporary one does not exist yet
}

func TestFolders(t *testing.T) {
	data := t.TempDir()
	f := &folders{data: data}
	path, err := f.of(nil, nil, "")("ses_1", "")
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o700 || path != filepath.Join(data, "work", "ses_1") {
		t.Errorf("%s, %v, %v", path, err, statErr)
	}
	for _, id := range []string{"..", "a/b", "", ".git", "/etc"} {
		if path, err := f.session(id); tapedeck.KindOf(err) != tapedeck.Invalid {
			t.Errorf("%q has the folder %s, %v", id, path, err)
		}
	}
	gone, here := "gone", "work"
	if _, err := f.of(&gone, nil, data)("s", ""); tapedeck.KindOf(err) != tapedeck.Unavailable || strings.Contains(err.Error(), data) {
		t.Errorf("got %v", err)
	}
	if path, err := f.of(&here, nil, data)("s", ""); err != nil || path != filepath.Join(data, "work") {
		t.Errorf("%s, %v", path, err)
	}
	other := t.TempDir()
	none := ""
	for _, c := range []struct {
		cwd    *string
		chosen string
		want   string
	}{{nil, "", filepath.Join(data, "work", "s")}, {nil, other, other}, {&none, "", ""}, {&none, other, other}, {&here, other, other}} {
		if path, err := f.of(c.cwd, []string{other}, data)("s", c.chosen); err != nil || path != c.want {
			t.Errorf("%v, %q: %s, %v; want %s", c.cwd, c.chosen, path, err, c.want)
		}
	}
	temp := &folders{}
	path, err = temp.session("s")
	if err != nil {
		t.Fatal(err)
	}
	if err := temp.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", path)
	}
}
