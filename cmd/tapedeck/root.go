package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
)

// env is what all commands share: streams and global flags.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	data    string // the data folder
	config  string // the file with the configuration; "" to look for it
	url     string // of a server, instead of the folder
	json    bool
	noColor bool

	startsAgents bool // the command is there to run agents

	ephemeral   bool   // see forgets
	permissions string // see permissionsFlag
}

// goNumber is what the flag parser says of a number in words of Go.
var goNumber = regexp.MustCompile(`strconv\.Parse\w+: parsing "[^"]*": (invalid syntax|value out of range)`)

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tapedeck",
		Short: "The self-hosted durable session for AI agents",
		Long: `Tapedeck keeps every event of an agent's session in one log. From it a session
is streamed live, resumed after a disconnect or a crash, rewound, forked,
replayed and searched.

Commands work on the data folder. While a server holds that folder they go
through it; with --url they go through the server of that address, whatever
folder it holds.`,
		Example: `  tapedeck serve --demo                 start a server with something to look at
  tapedeck run "fix the build"          give a task to an agent and watch it
  tapedeck ls                           list sessions
  tapedeck tail SESSION                 follow the events of one
  tapedeck replay SESSION               play one with its own timing`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("there is no command %q; see: tapedeck --help", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&e.data, "data", "", "data folder (default $TAPEDECK_DATA, else "+defaultData()+")")
	f.StringVar(&e.url, "url", "", "URL of a server to use instead of the data folder (default $TAPEDECK_URL)")
	f.StringVar(&e.config, "config", "", "configuration of agents (default ./"+agentconfig.FileName+", else that in the data folder)")
	f.BoolVar(&e.json, "json", false, "print JSON, one value a line")
	f.BoolVar(&e.noColor, "no-color", false, "print without colour (also $NO_COLOR)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%s; see: %s --help", goNumber.ReplaceAllString(err.Error(), "it is not a whole number"), c.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	addCommands(e, root)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	return root
}

// addCommands adds all commands, in the groups in which help lists them.
func addCommands(e *env, root *cobra.Command) {
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run agents:", []*cobra.Command{newServe(e), newRun(e), newCancel(e), newResume(e), newPermissions(e), newAnswer(e), newAgents(e)}},
		{"Read sessions:", []*cobra.Command{
			newList(e), newShow(e), newTail(e), newReplay(e), newSearch(e), newTasks(e), newSummary(e), newContext(e), newBranches(e), newDiff(e),
		}},
		{"Go back, and another way:", []*cobra.Command{newRewind(e), newUndo(e), newOverwrite(e), newClear(e), newFork(e), newCopy(e)}},
		{"Keep sessions:", []*cobra.Command{
			newCreate(e), newAppend(e), newImport(e), newExport(e), newRename(e), newClose(e), newDelete(e), newErase(e), newVerify(e),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion(e))
}

// knownTopic refuses help for what is no command; without it there would be all
// that there is, and success.
func knownTopic(c *cobra.Command, args []string) error {
	if _, rest, err := c.Root().Find(args); err != nil || len(rest) > 0 {
		return usageError("there is no command %q; see: tapedeck --help", strings.Join(args, " "))
	}
	return nil
}

// folder returns the data folder.
func (e *env) folder() string {
	switch {
	case e.data != "":
		return e.data
	case os.Getenv("TAPEDECK_DATA") != "":
		return os.Getenv("TAPEDECK_DATA")
	}
	return defaultData()
}

func defaultData() string {
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "tapedeck")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "tapedeck-data"
	}
	return filepath.Join(home, ".local", "share", "tapedeck")
}

// color reports whether w is a terminal that wants colour.
func (e *env) color(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && !e.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
