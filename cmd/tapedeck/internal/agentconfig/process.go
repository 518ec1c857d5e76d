package agentconfig

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sandbox"
	"github.com/tapedeck/tapedeck/runner/process"
)

func processPreset(name string) (process.Preset, bool) {
	i := slices.IndexFunc(process.Presets, func(p process.Preset) bool { return p.Name == name })
	if i < 0 {
		return process.Preset{}, false
	}
	return process.Presets[i], true
}

func (a *agent) process(confined *sandbox.Policy, base string) (tapedeck.Runner, error) {
	env := environment{}
	p, _ := processPreset(a.Preset)
	o := process.Options{
		Name: a.Name, Dialect: a.Dialect, Mapping: a.Mapping, Env: env.of(a.Env), Install: cmp.Or(p.Install, a.namesProgram()),
		Command: p.Command, Resume: p.Resume, Folder: a.namedFolder(base), Sandbox: confined,
	}
	switch {
	case a.Preset != "":
		o.Command, o.Resume = a.adapt(p.Command), a.adapt(p.Resume)
	case a.Command != "":
		o.Command = append([]string{a.Command}, a.Args...)
		if a.Resume != nil {
			o.Resume = append([]string{a.Command}, a.Resume...)
		}
	}
	r, err := process.New(o)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the agent %s: %s", a.Name, err).WithHint("%s", hintOf(err))
	}
	return env.guard(r), nil
}

// namesProgram says where the program of an agent is named, for when it is not there.
func (a *agent) namesProgram() string {
	return "command of the agent " + a.Name + " (" + a.at + ") names it; it takes the name of a program in the PATH, or a whole path"
}

// adapt changes the command of a preset to the settings of the file: the program, and
// more arguments before the task.
func (a *agent) adapt(command []string) []string {
	if command == nil {
		return nil
	}
	out := slices.Clone(command)
	out[0] = cmp.Or(a.Command, out[0])
	at := slices.IndexFunc(out, func(s string) bool { return s == "--" || strings.Contains(s, "{task}") })
	if at < 0 {
		at = len(out)
	}
	return slices.Insert(out, at, a.Args...)
}

func (a *agent) applyProcessPreset() error {
	p, ok := processPreset(a.Preset)
	if !ok {
		var names []string
		for _, p := range process.Presets {
			names = append(names, p.Name)
		}
		return tapedeck.Errorf(tapedeck.Invalid, "there is no preset %q of kind process", a.Preset).WithHint("the presets are %s", strings.Join(names, ", "))
	}
	a.Dialect, a.Env = cmp.Or(a.Dialect, p.Dialect), append(slices.Clone(p.Env), a.Env...)
	return nil
}
