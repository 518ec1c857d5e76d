package script

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/runner"
)

//go:embed builtin/*.jsonl
var builtin embed.FS

// Options configure a runner. The zero value plays the script hello.
type Options struct {
	Script  string  // the default script; "" for hello
	Scripts fs.FS   // additional scripts, files NAME.jsonl; they replace built-in scripts of the same name
	Speed   float64 // factor of the speed; 0 for 1
	Instant bool    // do not wait at all
	Limits  Limits  // of each run
}

// Limits are what a script may do in one run. A run that reaches one of them fails. 0 is
// no limit.
type Limits struct {
	Steps int   // steps and events together; so a repetition of nothing ends, too
	Bytes int64 // of the data of the events
}

// A Runner plays scripts.
type Runner struct {
	options Options
}

var _ tapedeck.Runner = (*Runner)(nil)

// New returns a runner. It does not check the scripts: a run returns the error of its
// script.
func New(o Options) *Runner {
	if o.Script == "" {
		o.Script = "hello"
	}
	if o.Speed <= 0 {
		o.Speed = 1
	}
	return &Runner{o}
}

// Names returns the names of the built-in scripts.
func Names() []string {
	files, _ := fs.Glob(builtin, "builtin/*.jsonl") // the pattern is well formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "builtin/"), ".jsonl")
	}
	return files
}

// Describe returns the kind of this runner and a description for people.
func (r *Runner) Describe() (kind, description string) {
	return "script", "plays the script " + r.options.Script
}

// Check returns why the script of the options cannot be played, nil if it can.
func (r *Runner) Check() error {
	_, _, err := r.load(nil)
	return err
}

// Config is the config of an invocation, which is JSON.
type Config struct {
	Script  string          `json:"script,omitempty"`  // the name of a script
	Steps   json.RawMessage `json:"steps,omitempty"`   // an array of steps, instead of a script
	Speed   float64         `json:"speed,omitempty"`   // multiplies [Options.Speed]; 0 for 1
	Seed    uint64          `json:"seed,omitempty"`    // the seed of the jitter; runs with the same seed have the same timing
	Instant bool            `json:"instant,omitempty"` // do not wait at all
}

// Run implements [tapedeck.Runner].
func (r *Runner) Run(ctx context.Context, in tapedeck.Invocation) iter.Seq2[tapedeck.Event, error] {
	return func(yield func(tapedeck.Event, error) bool) {
		c, steps, err := r.load(in.Config)
		if err != nil {
			yield(tapedeck.Event{}, err)
			return
		}
		p := &player{
			ctx: ctx, yield: yield, task: in.Task, prefix: in.ID,
			speed: r.options.Speed * c.Speed, instant: r.options.Instant || c.Instant,
			rate: defaultRate, random: rand.New(rand.NewPCG(c.Seed, 0)), limits: r.options.Limits,
		}
		p.play(steps)
	}
}

// CheckConfig implements runner.Configurable.
func (r *Runner) CheckConfig(config json.RawMessage) error {
	if len(config) == 0 { // then the script is the operator's, not the sender's
		return nil
	}
	_, _, err := r.load(config)
	return err
}

// load returns the config of an invocation and its steps.
func (r *Runner) load(config json.RawMessage) (Config, []step, error) {
	c, err := parseConfig(config)
	if err != nil {
		return c, nil, err
	}
	if c.Steps != nil {
		steps, err := parseArray(c.Steps)
		return c, steps, err
	}
	if c.Script == "" {
		c.Script = r.options.Script
	}
	text, err := r.find(c.Script)
	if err != nil {
		return c, nil, err
	}
	steps, err := parse("script "+c.Script, text)
	return c, steps, err
}

func parseConfig(config json.RawMessage) (Config, error) {
	var c Config
	if err := runner.CheckMembers(config, "script", "steps", "speed", "seed", "instant"); err != nil {
		return c, err
	}
	if len(config) > 0 {
		if err := strict(config, &c); err != nil {
			return c, tapedeck.Errorf(tapedeck.Invalid, "the script's config is not valid: %w", err)
		}
	}
	switch {
	case c.Script != "" && c.Steps != nil:
		return c, tapedeck.Errorf(tapedeck.Invalid, "the script's config has both a script and steps")
	case c.Speed < 0:
		return c, tapedeck.Errorf(tapedeck.Invalid, "the script's speed is %v, but it must be above 0", c.Speed)
	case c.Speed == 0:
		c.Speed = 1
	}
	return c, nil
}

// find returns the text of a script.
func (r *Runner) find(name string) ([]byte, error) {
	if err := tapedeck.CheckID("the script's name", name); err != nil { // so the name cannot be a path
		return nil, err
	}
	if r.options.Scripts != nil {
		text, err := fs.ReadFile(r.options.Scripts, name+".jsonl")
		if !errors.Is(err, fs.ErrNotExist) {
			return text, err
		}
	}
	text, err := builtin.ReadFile("builtin/" + name + ".jsonl")
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "there is no script %q", name).
			WithHint("there are %s", strings.Join(slices.Sorted(slices.Values(r.names())), ", "))
	}
	return text, nil
}

func (r *Runner) names() []string {
	names := Names()
	if r.options.Scripts != nil {
		more, _ := fs.Glob(r.options.Scripts, "*.jsonl")
		for _, f := range more {
			names = append(names, strings.TrimSuffix(f, ".jsonl"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
