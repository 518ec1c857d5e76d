package agentconfig

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/bytesize"
	"github.com/tapedeck/tapedeck/internal/procgroup"
	"github.com/tapedeck/tapedeck/internal/sandbox"
)

// A confine says what the programs of a confined agent may use.
type confine struct {
	Network  bool     `toml:"network"`
	Writable []string `toml:"writable"`
	Readable []string `toml:"readable"`
	Env      []string `toml:"env"`

	Memory    string        `toml:"memory"`
	Processes int           `toml:"processes"`
	Output    string        `toml:"output"`
	File      string        `toml:"file"`
	Time      time.Duration `toml:"time"`
}

// Secrets are paths that no confined agent may see.
type Secrets struct {
	Hidden []string // neither may the folder of an agent be in them, nor they in it
	Work   string   // the folder with the folders of all sessions, of which an agent sees its own
}

// checkSandbox refuses settings of a sandbox that cannot be kept.
func (a *agent) checkSandbox() error {
	switch {
	case a.Sandbox == "" && a.Confine == nil:
		return nil
	case a.Sandbox == "":
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has confine, but no sandbox, so it would run unconfined", a.Name).
			WithHint(`set sandbox = "bubblewrap"`)
	case a.Sandbox != sandbox.Bubblewrap:
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has an unknown sandbox", a.Name).WithHint(`the only one is "bubblewrap"`)
	case a.Cwd != nil && *a.Cwd == "" && a.Kind != "llm":
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has a sandbox, but no folder", a.Name).
			WithHint("without one it would work in the folder of the server; leave out cwd, or name a folder")
	}
	_, err := a.confined("/", Secrets{})
	return err
}

// confined returns the sandbox of the agent, nil if it has none. Relative paths begin at
// base.
func (a *agent) confined(base string, s Secrets) (*sandbox.Policy, error) {
	if a.Sandbox == "" {
		return nil, nil
	}
	c := a.Confine
	if c == nil {
		c = &confine{}
	}
	p := &sandbox.Policy{
		Network: c.Network, Hidden: s.Hidden, Others: s.Work, Env: c.Env,
		Limits: procgroup.Limits{
			Time: c.Time, Memory: sandbox.DefaultMemory, Processes: sandbox.DefaultProcesses, Output: sandbox.DefaultOutput,
		},
		File: sandbox.DefaultFile,
	}
	if c.Time < 0 || c.Processes < 0 {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "confine of the agent %s has a limit below 0", a.Name)
	}
	if c.Processes > 0 {
		p.Limits.Processes = c.Processes
	}
	for given, limit := range map[*string]*int64{&c.Memory: &p.Limits.Memory, &c.Output: &p.Limits.Output, &c.File: &p.File} {
		if *given == "" {
			continue
		}
		n, err := bytesize.Parse(*given)
		if err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "confine of the agent %s has a limit that is no size: %w", a.Name, err)
		}
		*limit = n
	}
	for _, name := range c.Env {
		if name == "" || strings.ContainsAny(name, "= \x00") {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "env in confine of the agent %s takes names of variables", a.Name)
		}
	}
	var err error
	if p.Readable, err = a.places(c.Readable, base); err == nil {
		p.Writable, err = a.places(c.Writable, base)
	}
	return p, err
}

// places returns the absolute paths of a list. ~ is the home folder.
func (a *agent) places(list []string, base string) (out []string, err error) {
	for _, path := range list {
		if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, tapedeck.Errorf(tapedeck.Invalid, "the home folder of the agent %s is not known", a.Name).WithHint("write whole paths instead of ~")
			}
			path = home + rest
		}
		if path == "" || strings.ContainsRune(path, 0) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "confine of the agent %s has an empty path", a.Name)
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		if path = filepath.Clean(path); path == "/" {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "confine of the agent %s has the path /, which would show everything", a.Name).
				WithHint("name the folders that it needs")
		}
		out = append(out, path)
	}
	return out, nil
}
