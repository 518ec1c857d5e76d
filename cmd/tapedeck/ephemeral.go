package main

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"
)

// persistenceVariable switches persistence off for everything that would hold
// the data folder itself.
const persistenceVariable = "ENABLE_CONTEXT_PERSISTENCE"

const nothingKept = "tapedeck: nothing is kept: sessions are in memory only, and forgotten when this program ends"

func (e *env) ephemeralFlag(c *cobra.Command) {
	c.Flags().BoolVar(&e.ephemeral, "ephemeral", false, "keep everything in memory and forget it at the end (also $"+persistenceVariable+"=false)")
}

// forgets reports whether sessions are to be kept in memory only. A flag is
// nearer than the variable, so a data folder that is named is used.
func (e *env) forgets() (bool, error) {
	switch {
	case e.ephemeral && e.data != "":
		return false, usageError("--ephemeral keeps everything in memory, so --data cannot be used with it")
	case e.ephemeral && e.url != "":
		return false, usageError("a server keeps its sessions as it was told, so --ephemeral cannot be used with --url")
	case e.ephemeral:
		return true, nil
	case e.data != "" || os.Getenv(persistenceVariable) == "":
		return false, nil
	}
	keep, err := strconv.ParseBool(os.Getenv(persistenceVariable))
	if err != nil {
		return false, usageError("%s is %q; it takes true or false", persistenceVariable, os.Getenv(persistenceVariable))
	}
	return !keep, nil
}
