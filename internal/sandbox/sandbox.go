// Package sandbox confines the programs of agents with bubblewrap. A confined program sees
// the programs and libraries of the system, its own folder, and what its policy adds;
// all other files, processes, users' sockets and, unless allowed, the network do not exist
// for it. It has limits of memory, processes, output and time.
package sandbox

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/procgroup"
)

// Bubblewrap is the name of the only kind of sandbox.
const Bubblewrap = "bubblewrap"

// program is the name of the program of bubblewrap.
const program = "bwrap"

// A Policy says what confined programs may use. A nil policy confines nothing.
type Policy struct {
	Network  bool     // whether they have the network of the machine
	Writable []string // absolute paths that they may read and write, besides their folder
	Readable []string // absolute paths that they may read, besides the system

	// Hidden are paths that do not exist for them, even below a path that they may read:
	// the data folder, and files with tokens and keys.
	Hidden []string

	// Others is the folder with the folders of all sessions. A program sees only its own
	// there. "" for none.
	Others string

	Env    []string // names of the variables that they may get; nil for all of the given environment
	Limits procgroup.Limits
	File   int64 // the largest file that one can write, in bytes; 0 for no limit
}

// The limits of a policy that sets none.
const (
	DefaultMemory    = 4 << 30
	DefaultProcesses = 512
	DefaultOutput    = 256 << 20
	DefaultFile      = 1 << 30
)

// tmpSize is the size of each file system in memory that the program may write: /tmp,
// /dev/shm and its home folder.
const tmpSize = "268435456"

// system are the folders of programs and libraries. Some are links on many systems.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// settings are the files of /etc that programs need. The others may have keys.
var settings = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/protocols",
	"/etc/resolv.conf", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone", "/etc/zoneinfo",
}

// apart are the flags that take everything away from a program. The namespace of users
// cannot be nested, because code of the kernel that only root reaches otherwise is
// reached in a nested one. No capability is left, also if the server runs as root.
var apart = []string{
	"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
	"--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--hostname", "sandbox",
}

// Available returns nil if command can be started in the sandbox, and otherwise an error
// that says what is missing. The first call that succeeds starts a sandbox once.
func (p *Policy) Available(command string) error {
	if p == nil {
		return nil
	}
	if _, err := works(); err != nil {
		return err
	}
	return p.sees(command)
}

var proven struct {
	sync.Mutex
	path string // of the program that has worked
}

// works tries the sandbox and returns the path of its program. It remembers a success
// only, so that a repair is noticed.
func works() (path string, err error) {
	if runtime.GOOS != "linux" {
		return "", tapedeck.Errorf(tapedeck.Unavailable, "the sandbox bubblewrap exists only on Linux").
			WithHint("run the server in a container or a virtual machine, and leave out sandbox")
	}
	if path, err = exec.LookPath(program); err != nil {
		return "", tapedeck.Errorf(tapedeck.Unavailable, "the sandbox bubblewrap is not installed").
			WithHint("install it, such as with: apt-get install bubblewrap").Because(err)
	}
	proven.Lock()
	defer proven.Unlock()
	if proven.path == path {
		return path, nil
	}
	args := append(slices.Clone(apart), "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/sh", "-c", ":")
	if out, err := exec.CommandContext(context.Background(), path, args...).CombinedOutput(); err != nil {
		return "", tapedeck.Errorf(tapedeck.Unavailable, "the sandbox bubblewrap does not work here: %s", cmp.Or(lastLine(string(out)), err.Error())).
			WithHint("it needs version 0.8 or newer, and user namespaces: look at the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; a container may forbid them")
	}
	proven.path = path
	return path, nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// sees returns an error if a program exists on this machine, but not in the sandbox.
func (p *Policy) sees(command string) error {
	path, _ := exec.LookPath(command)
	if command == "" || !filepath.IsAbs(path) {
		return nil // a program that does not exist is an error of its own, and a relative one is in the folder
	}
	for _, file := range []string{path, resolve(path)} {
		if !slices.ContainsFunc(slices.Concat(system, p.Readable, p.Writable), func(dir string) bool { return within(file, dir) || within(file, resolve(dir)) }) {
			return tapedeck.Errorf(tapedeck.Unavailable, "the program %s is not visible in the sandbox", file).
				WithHint("add its folder, %s, to readable in the agent's confine", filepath.Dir(file))
		}
	}
	return nil
}

// Check returns an error if the program could change or read through its folder what must
// be hidden. folder may be "".
func (p *Policy) Check(folder string) error {
	if p == nil {
		return nil
	}
	for _, open := range append(slices.Clone(p.Writable), folder) {
		if open != "" && p.Others != "" && within(resolve(p.Others), resolve(open)) {
			return tapedeck.Errorf(tapedeck.Forbidden, "a confined agent may not write in %s, because the folders of all sessions are in it", open).
				WithHint("choose a folder for the agent that does not contain them")
		}
		for _, hidden := range p.Hidden {
			if open != "" && (within(resolve(open), resolve(hidden)) || within(resolve(hidden), resolve(open))) {
				return tapedeck.Errorf(tapedeck.Forbidden, "a confined agent may not write in %s, because %s must stay hidden from it", open, hidden).
					WithHint("choose a folder for the agent that does not contain %s and is not in it, or move that", filepath.Base(hidden))
			}
		}
	}
	return nil
}

// Confine returns the program that runs another one in the sandbox, in the folder of spec,
// which is an absolute path; "" for an empty folder.
// It returns spec if p is nil.
func (p *Policy) Confine(spec procgroup.Spec) (procgroup.Spec, error) {
	if p == nil {
		return spec, nil
	}
	wrapper, err := works()
	if err == nil {
		err = p.sees(spec.Path)
	}
	if err != nil {
		return spec, err
	}
	dir := spec.Dir
	if err := p.Check(dir); err != nil {
		return spec, err
	}
	env := p.environment(spec.Env)
	args := p.arguments(dir, homeOf(env))
	command := append(append([]string{wrapper}, args...), "--", spec.Path)
	spec.Path, spec.Args = "/bin/sh", p.limited(append(command, spec.Args...))
	spec.Env, spec.Limits, spec.Apart = env, p.Limits, true
	spec.Dir = "/" // bubblewrap changes to the folder
	return spec, nil
}

// resolve returns a path without links; the path itself if it does not exist.
func resolve(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

// within reports whether a path is a folder or inside it.
func within(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == os.PathSeparator)
}
