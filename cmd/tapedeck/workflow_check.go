package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

func newWorkflowCheck(e *env) *cobra.Command {
	var process string
	c := &cobra.Command{
		Use:   "check FILE.bpmn...",
		Short: "Check whether a diagram can run",
		Long: `Check reads diagrams in BPMN 2.0 and prints what cannot run (error) and what a run
leaves out (warning), with file, line and element. It starts nothing and needs no
server, so it does not know which agents exist; it prints the agents and the variables
that a run needs. FILE - is the standard input. docs/workflows.md lists what is supported.

The exit code is 0 if all diagrams can run, and 1 if one of them cannot.`,
		Example: `  tapedeck workflow check triage.bpmn
  tapedeck workflow check --json *.bpmn`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("check takes the names of .bpmn files; see: %s --help", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			bad := 0
			for _, file := range args {
				ok, err := e.checkDiagram(file, process)
				if err != nil {
					return err
				}
				if !ok {
					bad++
				}
			}
			if bad == 0 {
				return nil
			}
			if e.json || len(args) == 1 {
				return &exitError{exitFailed, nil} // the output says it
			}
			return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Invalid, "%d of %d diagrams cannot run", bad, len(args))}
		},
	}
	c.Flags().StringVar(&process, "process", "", "id of the process to run, if the file has several")
	return c
}

// A checkedDiagram is what check prints of a file with --json.
type checkedDiagram struct {
	File     string   `json:"file"`
	OK       bool     `json:"ok"`
	Process  string   `json:"process,omitempty"`
	Name     string   `json:"name,omitempty"`
	Elements int      `json:"elements"`
	Agents   []string `json:"agents"` // names that the diagram has
	Types    []string `json:"types"`  // types of work for which a run names an agent

	Fields    []startField          `json:"fields"`    // variables for which the start asks
	Variables []api.DiagramVariable `json:"variables"` // that a run or a message has to give beside the fields
	Problems  []bpmn.Problem        `json:"problems"`
	More      int                   `json:"more_problems,omitempty"`
	Warnings  []bpmn.Problem        `json:"warnings"`
}

// A startField is a variable for which the start of a diagram asks.
type startField struct {
	Name     string `json:"name"`
	Label    string `json:"label,omitempty"`
	Type     string `json:"type"`
	Required bool   `json:"required"` // it has no default, and a run without it is refused
}

// checkDiagram prints what is wrong with a file, and reports whether it can run.
func (e *env) checkDiagram(file, process string) (bool, error) {
	in, name := io.NopCloser(e.stdin), "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return false, fileError(file, err)
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			_ = f.Close()
			return false, tapedeck.Errorf(tapedeck.Invalid, "%s is a folder, not a .bpmn file", file)
		}
		in, name = f, file
	}
	defer func() { _ = in.Close() }()
	result := checkedDiagram{File: name, Agents: []string{}, Types: []string{}, Fields: []startField{}, Variables: []api.DiagramVariable{}, Problems: []bpmn.Problem{}, Warnings: []bpmn.Problem{}}
	d, err := bpmn.Read(in, bpmn.Options{Process: process, Outside: true})
	var bad *bpmn.Error
	switch {
	case errors.As(err, &bad):
		result.Problems, result.More = bad.Problems, bad.More
	case err != nil:
		return false, fileError(file, err)
	default:
		result.describe(d)
	}
	if e.json {
		return result.OK, e.printJSON(result)
	}
	return result.OK, e.printChecked(&result)
}

func (r *checkedDiagram) describe(d *bpmn.Definitions) {
	r.OK, r.Process, r.Name = true, d.Main.ID, d.Main.Name
	r.Warnings = append(r.Warnings, d.Warnings...)
	for _, v := range d.Wanted() {
		if v.Name != "task" { // every run has it
			r.Variables = append(r.Variables, api.DiagramVariable(v))
		}
	}
	if start := d.Main.Start; start != nil && start.Form != nil {
		for i := range start.Form.Fields {
			f := &start.Form.Fields[i]
			r.Fields = append(r.Fields, startField{f.ID, f.Label, string(f.Type), f.Required && f.Default == nil})
		}
	}
	agents, types := map[string]bool{}, map[string]bool{}
	for n := range d.Reached() {
		r.Elements++
		switch {
		case n.Agent == nil:
		case n.Agent.Agent != "":
			agents[n.Agent.Agent] = true
		default:
			types[n.Agent.Type] = true
		}
	}
	r.Agents = append(r.Agents, slices.Sorted(maps.Keys(agents))...)
	r.Types = append(r.Types, slices.Sorted(maps.Keys(types))...)
}

func (e *env) printChecked(r *checkedDiagram) error {
	p := e.pen()
	line := func(color terminal.Style, level string, problem *bpmn.Problem) error {
		where := fmt.Sprintf("%s:%d", terminal.VisibleLine(r.File), problem.Line)
		text := problem.Message
		if problem.Element != "" {
			element := problem.Element
			if problem.Name != "" {
				element += " (" + problem.Name + ")"
			}
			text = element + ": " + text
		}
		if err := p.Printf("%s: %s: %s\n", where, p.Paint(color, level), terminal.VisibleLine(text)); err != nil || problem.Hint == "" {
			return err
		}
		return p.Printf("    %s\n", p.Paint(terminal.Dim, terminal.VisibleLine(problem.Hint)))
	}
	for i := range r.Problems {
		if err := line(terminal.Red, "error", &r.Problems[i]); err != nil {
			return err
		}
	}
	if r.More > 0 {
		if err := p.Printf("%s: … and %d more\n", terminal.VisibleLine(r.File), r.More); err != nil {
			return err
		}
	}
	for i := range r.Warnings {
		if err := line(terminal.Yellow, "warning", &r.Warnings[i]); err != nil {
			return err
		}
	}
	if !r.OK {
		return p.Printf("%s cannot run: %s\n", terminal.VisibleLine(r.File), terminal.Count(len(r.Problems)+r.More, "error"))
	}
	text := fmt.Sprintf("%s can run: process %s, %s, %s", r.File, r.Process, terminal.Count(r.Elements, "element"), terminal.Count(len(r.Warnings), "warning"))
	if err := p.Printf("%s\n", terminal.VisibleLine(text)); err != nil {
		return err
	}
	return e.printNeeded(r)
}

// printNeeded prints which agents and variables a run needs, which variables it can have,
// and which ones a message may bring.
func (e *env) printNeeded(r *checkedDiagram) error {
	var needs, can, brought []string
	for _, f := range r.Fields {
		text := fmt.Sprintf("the variable %s (%s), for which its start asks", f.Name, f.Type)
		if f.Required {
			needs = append(needs, text)
		} else {
			can = append(can, text)
		}
	}
	for _, v := range r.Variables {
		text := fmt.Sprintf("the variable %s, which no element sets (line %d: %s)", v.Name, v.Line, v.Element)
		if v.FromMessage {
			brought = append(brought, text)
		} else {
			needs = append(needs, text)
		}
	}
	for _, a := range r.Agents {
		needs = append(needs, "the agent "+a)
	}
	for _, t := range r.Types {
		needs = append(needs, "an agent for "+t)
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"A run needs:", needs}, {"A run can have:", can}, {"A message may bring, or the run:", brought}} {
		if err := e.printList(list.title, list.lines); err != nil {
			return err
		}
	}
	return nil
}

// printList prints lines under a title, nothing if there are no lines.
func (e *env) printList(title string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	p := e.pen()
	err := p.Printf("%s\n", title)
	for _, line := range lines {
		if err == nil {
			err = p.Printf("  %s\n", terminal.VisibleLine(line))
		}
	}
	return err
}
