package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// persistenceVariable is the environment variable that switches persistence off, for
// a command that would hold the data folder itself.
const persistenceVariable = "ENABLE_CONTEXT_PERSISTENCE"

const nothingKept = "nothing is kept: sessions are in memory only and are lost when this program ends"

func (e *env) ephemeralFlag(c *cobra.Command) {
	c.Flags().BoolVar(&e.ephemeral, "ephemeral", false, "keep everything in memory and lose it at the end (also $"+persistenceVariable+"=false)")
}

// inMemory reports whether to keep sessions in memory only. It is an error to ask for
// that and to name a data folder or a server.
func (e *env) inMemory() (bool, error) {
	switch {
	case e.ephemeral && e.data != "":
		return false, usageError("--ephemeral keeps everything in memory, so --data cannot be used with it")
	case e.ephemeral && e.url != "":
		return false, usageError("the server at --url decides how it keeps sessions, so --ephemeral cannot be used with --url")
	case e.ephemeral:
		return true, nil
	}
	keep, err := switchedOn(os.Getenv(persistenceVariable))
	if err == nil && !keep && e.data != "" {
		err = usageError("$%s is %s, which keeps everything in memory, so --data cannot be used with it; unset it to use the folder",
			persistenceVariable, os.Getenv(persistenceVariable))
	}
	return !keep, err
}

// switchedOn reads the value of a variable that is on by default.
func switchedOn(value string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "1", "t", "true", "y", "yes", "on":
		return true, nil
	case "0", "f", "false", "n", "no", "off":
		return false, nil
	}
	return true, usageError("$%s is %q; it takes true or false", persistenceVariable, value)
}
