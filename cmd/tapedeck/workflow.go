package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
)

func newWorkflow(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "workflow",
		Short: "Run, keep and look at workflows",
		Long: `Workflow has the commands for workflows: diagrams in BPMN 2.0, such as Camunda
Modeler writes.`,
		Example: `  tapedeck workflow run triage.bpmn --var cve=CVE-2026-1337
  tapedeck workflow check triage.bpmn
  tapedeck workflow put triage triage.bpmn
  tapedeck workflow ls
  tapedeck workflow show ses_01J…`,
		Args: onlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newWorkflowRun(e), newWorkflowCheck(e), newWorkflowList(e), newWorkflowPut(e), newWorkflowGet(e), newWorkflowDelete(e),
		newWorkflowShow(e), newWorkflowMessage(e),
	)
	return c
}

// takes checks for n arguments that are not empty; usage describes them.
func takes(n int, usage string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		bad := len(args) != n
		for _, a := range args {
			bad = bad || a == ""
		}
		if bad {
			return usageError("%s takes %s; see: %s --help", c.CommandPath(), usage, c.CommandPath())
		}
		return nil
	}
}

func newWorkflowList(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "ls [NAME]",
		Aliases: []string{"list"},
		Short:   "List the stored workflows, or the versions of one",
		Long: `Ls lists the stored workflows: name, digest of the current version, size, age and
title. With a name it lists the versions of that workflow, the current one first. The beginning
of a digest is enough for --version.`,
		Example: `  tapedeck workflow ls
  tapedeck workflow ls triage`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return takes(1, "at most one name of a workflow")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				list, err := listWorkflows(c.Context(), conn, args)
				if err != nil {
					return err
				}
				return e.printWorkflows(list, len(args) > 0)
			})
		},
	}
}

func listWorkflows(ctx context.Context, c *connection, args []string) ([]api.DiagramVersion, error) {
	if len(args) == 0 {
		return c.Workflows(ctx)
	}
	w, err := c.Workflow(ctx, args[0], "")
	return w.Versions, err
}

// printWorkflows prints workflows, or the versions of one, of which the first is current.
func (e *env) printWorkflows(list []api.DiagramVersion, versions bool) error {
	pen := e.pen()
	for i, w := range list {
		if e.json {
			if err := e.printJSON(w); err != nil {
				return err
			}
			continue
		}
		line := fmt.Sprintf("%-20s  %s  %8d  %s", w.Name, shortDigest(w.Digest), w.Size, instant(w.Added.Time))
		if versions && i == 0 {
			line += "  current"
		} else if versions {
			line += "         "
		}
		if err := pen.Printf("%s  %s\n", line, terminal.Brief(terminal.Visible(w.Title), max(20, pen.Width-len(line)-2))); err != nil {
			return err
		}
	}
	return nil
}

// shortDigest returns as much of a digest as people need to tell versions apart.
func shortDigest(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }

func newWorkflowPut(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "put NAME FILE.bpmn",
		Short: "Store a diagram under a name",
		Long: `Put stores a diagram as the current version of a workflow. A diagram that cannot run
is refused with all that is wrong with it. FILE - is the standard input. Workflows that
run keep the version that they began with.`,
		Example: `  tapedeck workflow put triage triage.bpmn`,
		Args:    takes(2, "a name and a file"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := e.readDiagram(args[1])
			if err != nil {
				return err
			}
			return e.with(c.Context(), func(conn *connection) error {
				done, err := conn.PutWorkflow(c.Context(), api.NewWorkflow{Name: args[0], BPMN: text})
				if err != nil {
					return err
				}
				return e.printStored(&done)
			})
		},
	}
}

// printStored prints what was stored, and what a run of it lacks.
func (e *env) printStored(d *api.Diagram) error {
	if !e.json {
		for _, list := range []struct {
			what string
			of   []tapedeck.Problem
		}{{"warning", d.Warnings}, {"missing", d.Unmet}} {
			for i := range list.of {
				e.notice("%s: %s", list.what, terminal.VisibleLine(problemLine(&list.of[i])))
			}
		}
	}
	return e.printDone(d, "stored %s %s", d.Name, shortDigest(d.Digest))
}

// readDiagram reads a file with a diagram, "-" for the standard input. It returns a text in
// UTF-8, because JSON takes no other.
func (e *env) readDiagram(file string) (string, error) {
	in := e.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fileError(file, err)
		}
		defer func() { _ = f.Close() }()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return "", tapedeck.Errorf(tapedeck.Invalid, "%s is a folder, not a .bpmn file", file)
		}
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, api.MaxDiagram+1))
	if err != nil {
		return "", fileError(file, err)
	}
	if len(b) > api.MaxDiagram {
		return "", tapedeck.Errorf(tapedeck.TooLarge, "%s is larger than %d MiB", file, api.MaxDiagram>>20).WithHint("a diagram cannot be that large")
	}
	return string(bpmn.UTF8(b)), nil
}

func fileError(file string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no file %s", file).WithHint("name a file that exists, or - for standard input")
	}
	failed := tapedeck.Errorf(tapedeck.Invalid, "%s cannot be read", file).Because(err)
	if errors.Is(err, fs.ErrPermission) {
		return failed.WithHint("this user has no right to read it")
	}
	return failed
}

func newWorkflowGet(e *env) *cobra.Command {
	var version string
	c := &cobra.Command{
		Use:   "get NAME",
		Short: "Print a stored diagram",
		Long: `Get prints the diagram of a stored workflow as XML. With --json it prints what the
diagram does and what a run of it needs.`,
		Example: `  tapedeck workflow get triage > triage.bpmn`,
		Args:    takes(1, "the name of a workflow; list them with: tapedeck workflow ls"),
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				d, err := conn.Workflow(c.Context(), args[0], version)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(d)
				}
				_, err = io.WriteString(e.stdout, d.BPMN)
				return err
			})
		},
	}
	c.Flags().StringVar(&version, "version", "", "digest of a version, or its beginning (default: the current version)")
	return c
}

func newWorkflowDelete(e *env) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"rm"},
		Short:   "Delete a stored workflow with all its versions",
		Long: `Delete removes a stored workflow with all its versions. Workflows that run continue,
because each has its own diagram. You cannot undo a delete.`,
		Example: `  tapedeck workflow delete triage --yes`,
		Args:    takes(1, "the name of a workflow; list them with: tapedeck workflow ls"),
		RunE: func(c *cobra.Command, args []string) error {
			return e.withExisting(c.Context(), func(conn *connection) error {
				d, err := conn.Workflow(c.Context(), args[0], "")
				if err != nil {
					return err
				}
				if err := e.confirm(c.Context(), yes, "Delete %s (%s)?", args[0], terminal.Count(len(d.Versions), "version")); err != nil {
					return err
				}
				if err := conn.DeleteWorkflow(c.Context(), args[0]); err != nil {
					return err
				}
				return e.printDone(map[string]any{"deleted": args[0]}, "deleted %s", args[0])
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}
