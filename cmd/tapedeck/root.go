package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
)

// An env has what all commands share: streams and global flags.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	data       string // the data folder
	config     string // path of the configuration file; "" for the default places
	url        string // of a server to use instead of the folder
	json       bool
	encryption string // where the encryption key is: a file, env:NAME or cmd:COMMAND
	noColor    bool

	startsAgents bool // the command starts agents
	reads        bool // the command only reads and ends at once; see deck.Options.LeaveRuns

	elsewhere          bool // another process serves the sessions
	cancelledElsewhere bool // another command has cancelled the run of this one

	ephemeral   bool   // see inMemory
	permissions string // see permissionsFlag
}

// goNumber matches the flag parser's text about a number; it contains names of Go
// functions.
var goNumber = regexp.MustCompile(`strconv\.Parse\w+: parsing "[^"]*": (invalid syntax|value out of range)`)

// flagError returns the text of an error of the flag parser for users.
func flagError(err error) string {
	var empty *pflag.ValueRequiredError
	if errors.As(err, &empty) {
		name, _ := pflag.UnquoteUsage(empty.GetFlag())
		if name != strings.ToUpper(name) { // it is the type of the value
			name = "a value"
		}
		return fmt.Sprintf("--%s needs %s", empty.GetFlag().Name, name)
	}
	return goNumber.ReplaceAllStringFunc(err.Error(), func(s string) string {
		switch {
		case strings.HasSuffix(s, "out of range"):
			return "the number is out of range"
		case strings.HasPrefix(s, "strconv.ParseFloat"):
			return "it is not a number"
		}
		return "it is not a whole number"
	})
}

func newRoot(e *env) *cobra.Command {
	var asked bool // for the version
	root := &cobra.Command{
		Use:   "tapedeck",
		Short: "A self-hosted, durable session log for AI agents",
		Long: `Tapedeck keeps every event of an agent's session in one log. You can stream a
session live, resume it after a disconnect or a crash, rewind it, fork it, replay
it and search it.

Commands work on the data folder. While a server uses that folder, commands go
through the server. With --url they go through the server at that address,
whichever folder it uses.`,
		Example: `  tapedeck serve --demo                 start a server with sample sessions
  tapedeck run "fix the build"          give a task to an agent and watch it work
  tapedeck ls                           list sessions
  tapedeck tail SESSION                 follow the events of a session
  tapedeck replay SESSION               play a session at its original speed`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlyCommands,
		RunE: func(c *cobra.Command, _ []string) error {
			if asked {
				return e.printVersion()
			}
			return c.Help()
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return cmp.Or(noEmptyFlag(c), requiredFlags(c)) },
	}
	root.Flags().BoolVar(&asked, "version", false, "print the version")
	f := root.PersistentFlags()
	f.StringVar(&e.data, "data", "", "data folder (default $"+dataVariable+", otherwise "+defaultData()+")")
	f.StringVar(&e.url, "url", "", "URL of a server to use instead of the data folder (default $"+urlVariable+")")
	f.StringVar(&e.config, "config", "", "configuration file of the agents (default ./"+agentconfig.FileName+", otherwise the one in the data folder)")
	f.StringVar(&e.encryption, "encryption-key", "", "key with which new sessions of the data folder are encrypted: a file, env:NAME or cmd:COMMAND (default $"+encryptionVariable+"); see tapedeck key")
	f.BoolVar(&e.json, "json", false, "print JSON, one value per line")
	f.BoolVar(&e.noColor, "no-color", false, "print without colour (also: set $NO_COLOR)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%s%s; see: %s --help", flagError(err), meantFlag(c, err), c.CommandPath())
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
		{"Run agents:", []*cobra.Command{newServe(e), newRun(e), newSay(e), newCancel(e), newResume(e), newInbox(e), newPermissions(e), newAnswer(e), newAgents(e), newWorkflow(e)}},
		{"Read sessions:", []*cobra.Command{
			newList(e), newShow(e), newTail(e), newReplay(e), newSearch(e), newTasks(e), newSummary(e), newUsage(e), newContext(e), newBranches(e), newDiff(e), newMCP(e),
		}},
		{"Rewind and branch:", []*cobra.Command{newRewind(e), newUndo(e), newOverwrite(e), newClear(e), newFork(e), newCopy(e)}},
		{"Manage sessions:", []*cobra.Command{
			newCreate(e), newAppend(e), newImport(e), newExport(e), newRename(e), newBudget(e), newClose(e), newDelete(e), newErase(e),
			newVerify(e), newSalvage(e), newBackup(e), newRestore(e), newMigrate(e), newDoctor(e), newStats(e), newKey(e), newToken(e), newAudit(e), newRetention(e),
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

// knownTopic refuses help about a command that does not exist. Without it, help
// would print the list of all commands and succeed.
func knownTopic(c *cobra.Command, args []string) error {
	if _, rest, err := c.Root().Find(args); err != nil || len(rest) > 0 {
		return usageError("there is no command %q; see: tapedeck --help", strings.Join(args, " "))
	}
	return nil
}

// The environment variables that stand for --data and --url.
const (
	dataVariable = "TAPEDECK_DATA"
	urlVariable  = "TAPEDECK_URL"
)

// folder returns the data folder.
func (e *env) folder() string {
	switch {
	case e.data != "":
		return e.data
	case os.Getenv(dataVariable) != "":
		return os.Getenv(dataVariable)
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

// color reports whether to print colours to w: it is a terminal, and the user did
// not switch colours off.
func (e *env) color(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && !e.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
