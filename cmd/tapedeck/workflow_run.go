package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// workflowFlags are the flags of workflow run.
type workflowFlags struct {
	run    api.RunWorkflow
	vars   []string
	file   string // of variables
	agents []string
}

func newWorkflowRun(e *env) *cobra.Command {
	var f workflowFlags
	c := &cobra.Command{
		Use:   "run FILE.bpmn|NAME",
		Short: "Start a workflow and print how it proceeds",
		Long: `Run starts a workflow, from a file or by the name under which it is stored, and prints
a line for each element that begins or ends, and the last line of what its agent says. With --json it prints one event per line.
The session id goes to standard error. FILE - is the standard input.

A diagram can ask for variables at its start. Those that --var and --vars do not give
are asked for at the terminal. Nothing is started if something is wrong: the diagram,
an agent that the server does not have, or a variable.

User tasks ask here, or wait for tapedeck answer. If the run is interrupted, tapedeck
resume continues it where it was.

Ctrl-C and the exit codes are those of tapedeck run.`,
		Example: `  tapedeck workflow run triage.bpmn --var cve=CVE-2026-1337
  tapedeck workflow run triage --vars vars.json --agent Collect=coder`,
		Args: takes(1, "a file or the name of a workflow; list the stored ones with: tapedeck workflow ls"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.source(e, args[0]); err != nil {
				return err
			}
			e.startsAgents = true
			return e.with(context.WithoutCancel(c.Context()), func(conn *connection) error {
				if err := f.complete(c.Context(), e, conn); err != nil {
					return err
				}
				return e.attend(c.Context(), conn, true, func(ctx context.Context) (api.Started, error) { return conn.RunWorkflow(ctx, f.run) })
			})
		},
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.vars, "var", nil, "variable, as NAME=VALUE; may be repeated. VALUE is of the type that the start asks for; otherwise it is JSON or a text")
	fl.StringVar(&f.file, "vars", "", "file with a JSON object of variables")
	fl.StringArrayVar(&f.agents, "agent", nil, "agent of a task, as TASK=AGENT; TASK is the id of the element or its job type; may be repeated")
	fl.StringVar(&f.run.Version, "version", "", "digest of a version of a stored workflow, or its beginning (default: the current version)")
	fl.StringVar(&f.run.Process, "process", "", "id of the process to run, if the diagram has several")
	fl.StringVar(&f.run.Session, "session", "", "run in this session (default: a new one)")
	fl.StringVar(&f.run.Thread, "thread", "", "run in this thread of the session (default main)")
	fl.StringVar(&f.run.Title, "title", "", "title of a new session (default: the name of the process)")
	e.ephemeralFlag(c)
	e.permissionsFlag(c)
	return c
}

// source reads the file, or takes the argument as the name of a stored workflow.
func (f *workflowFlags) source(e *env, arg string) (err error) {
	f.run.Agents = map[string]string{}
	for _, a := range f.agents {
		task, agent, ok := strings.Cut(a, "=")
		if !ok || task == "" || agent == "" {
			return usageError("--agent takes TASK=AGENT, not %q", a)
		}
		f.run.Agents[task] = agent
	}
	if !isDiagramFile(arg) {
		f.run.Name = arg
		return nil
	}
	if f.run.Version != "" {
		return usageError("--version is for a stored workflow; %s is a file", arg)
	}
	if f.run.BPMN, err = e.readDiagram(arg); err == nil && f.run.BPMN == "" {
		err = tapedeck.Errorf(tapedeck.Invalid, "%s is empty", arg).WithHint("give a .bpmn file, BPMN 2.0 as XML")
	}
	return err
}

// isDiagramFile reports whether an argument means a file and not a name. A name has no
// folder and no such ending, and a file of that name is no diagram.
func isDiagramFile(arg string) bool {
	switch strings.ToLower(filepath.Ext(arg)) {
	case ".bpmn", ".xml", ".json", ".bpmn20":
		return true
	}
	return arg == "-" || strings.ContainsAny(arg, `/\`)
}

// complete reads the variables, and asks for those that are missing.
func (f *workflowFlags) complete(ctx context.Context, e *env, c *connection) error {
	about, err := c.CheckWorkflow(ctx, api.CheckWorkflow{BPMN: f.run.BPMN, Name: f.run.Name, Version: f.run.Version, Process: f.run.Process, Agents: f.run.Agents})
	if err != nil {
		return err
	}
	if f.run.Variables, err = assignments("var", f.vars, f.file, about.Fields); err != nil {
		return err
	}
	if !e.json {
		for i := range about.Warnings {
			e.notice("warning: %s", problemLine(&about.Warnings[i]))
		}
	}
	in, ok := e.stdin.(*os.File)
	if e.json || !ok || !term.IsTerminal(int(in.Fd())) || len(about.Unmet) > 0 {
		return nil // the server says what is missing
	}
	var missing []tapedeck.FormField
	for _, field := range openFields(about.Fields) {
		if _, given := f.run.Variables[field.ID]; !given {
			missing = append(missing, field)
		}
	}
	answers, err := e.askFields(ctx, in, missing)
	if f.run.Variables == nil && len(answers) > 0 {
		f.run.Variables = map[string]json.RawMessage{}
	}
	maps.Copy(f.run.Variables, answers)
	return err
}

// askFields asks for the values of fields, one line for each.
func (e *env) askFields(ctx context.Context, in io.Reader, fields []tapedeck.FormField) (tapedeck.Members, error) {
	f := &filling{fields: fields, input: tapedeck.Members{}}
	read := bufio.NewReader(in)
	for len(f.fields) > 0 {
		fmt.Fprintf(e.stderr, "%s: ", fieldPrompt(&f.fields[0]))
		line, err := readLine(ctx, read)
		if err != nil {
			fmt.Fprintln(e.stderr)
			if errors.Is(err, io.EOF) {
				break // the server says what is missing
			}
			return nil, err
		}
		if err := f.take(line); err != nil {
			e.printError(err)
		}
	}
	return f.input, nil
}

// readLine reads one line and no more: what follows belongs to later questions. A read from
// a terminal cannot be interrupted; after ctx it may last until the program ends.
func readLine(ctx context.Context, in *bufio.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := in.ReadString('\n')
		if line != "" {
			err = nil // the last line may have no end
		}
		done <- result{strings.TrimRight(line, "\r\n"), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-done:
		return r.line, r.err
	}
}
