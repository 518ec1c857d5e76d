package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// always are variables that every confined program gets, if they are given.
var always = []string{"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TZ", "USER", "PAGER", "GIT_TERMINAL_PROMPT"}

// environment returns the variables of a confined program. The folder for temporary files
// is the one of the sandbox.
func (p *Policy) environment(given []string) []string {
	out := []string{}
	for _, pair := range given {
		name, _, _ := strings.Cut(pair, "=")
		if name != "TMPDIR" && (p.Env == nil || slices.Contains(always, name) || slices.Contains(p.Env, name)) {
			out = append(out, pair)
		}
	}
	return append(out, "TMPDIR=/tmp")
}

func homeOf(env []string) string {
	home := ""
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, "HOME="); ok && filepath.IsAbs(v) && filepath.Clean(v) != "/" {
			home = filepath.Clean(v)
		}
	}
	return home
}

// arguments returns the flags of bubblewrap. Each mount covers the earlier ones, so the
// order decides: the system, empty folders, what may be read, what is hidden, what may be
// written, and the folder of the agent. Nothing that is hidden is inside what may be
// written, because [Policy.Check] refuses that.
func (p *Policy) arguments(dir, home string) []string {
	a := slices.Clone(apart)
	if !p.Network {
		a = append(a, "--unshare-net")
	}
	for _, path := range system {
		if target, err := os.Readlink(path); err == nil {
			a = append(a, "--symlink", target, path)
		} else {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	for _, path := range settings {
		a = append(a, "--ro-bind-try", path, path)
	}
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--size", tmpSize, "--tmpfs", "/dev/shm", "--size", tmpSize, "--tmpfs", "/tmp")
	if home != "" && !within("/tmp", home) && !slices.ContainsFunc(system, func(s string) bool { return within(home, s) || within(s, home) }) {
		a = append(a, "--size", tmpSize, "--tmpfs", home)
	}
	for _, path := range p.Readable {
		a = append(a, "--ro-bind-try", path, path)
	}
	var covers []string // empty folders, which become read-only when all mounts are there
	for _, path := range append(slices.Clone(p.Hidden), p.Others) {
		if path == "" {
			continue
		}
		flags, empty := p.hide(resolve(path))
		a, covers = append(a, flags...), append(covers, empty...)
	}
	for _, path := range p.Writable {
		a = append(a, "--bind-try", path, path)
	}
	if dir == "" {
		dir = "/tmp"
	} else {
		a = append(a, "--bind", dir, dir)
	}
	// In a server of root, only the permissions of files protect /proc/sys, where a program
	// could let the kernel start one outside of the sandbox.
	for _, path := range append(covers, "/proc", "/dev", "/") {
		a = append(a, "--remount-ro", path)
	}
	return append(a, "--chdir", dir)
}

// hide covers a path if it is inside something that the program can see. It returns also
// the empty folders that cover others.
func (p *Policy) hide(path string) (a, empty []string) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil // there is nothing to hide
	}
	for _, seen := range slices.Concat(system, settings, p.Readable) {
		// bubblewrap mounts the target of a link at the path of the link, so what is
		// hidden has a second path there.
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(resolve(seen), "/"))
		if !ok || rest != "" && rest[0] != os.PathSeparator {
			continue
		}
		at := filepath.Join(seen, rest)
		if info.IsDir() {
			a, empty = append(a, "--tmpfs", at), append(empty, at)
		} else {
			a = append(a, "--ro-bind", os.DevNull, at)
		}
	}
	return a, empty
}

// limited returns the command that sets the limits of each process, and then executes the
// given one. It limits the data and not the address space, of which programs with a garbage
// collector reserve much more than they use. If a limit cannot be set, a lower one holds
// already. A core has the secrets of its process.
func (p *Policy) limited(command []string) []string {
	script := "ulimit -c 0"
	if n := p.Limits.Memory; n > 0 {
		script += fmt.Sprintf("; ulimit -d %d", max(n>>10, 1))
	}
	if p.File > 0 {
		script += fmt.Sprintf("; ulimit -f %d", max(p.File>>9, 1))
	}
	return append([]string{"-c", "{ " + script + "; } 2>/dev/null; exec \"$@\"", "sh"}, command...)
}
