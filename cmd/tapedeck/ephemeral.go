package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// persistenceVariable switches persistence off for everything that would hold
// the data folder itself.
const persistenceVariable = "ENABLE_CONTEXT_PERSISTENCE"

const nothingKept = "nothing is kept: sessions are in memory only, and forgotten when this program ends"

func (e *env) ephemeralFlag(c *cobra.Command) {
	c.Flags().BoolVar(&e.ephemeral, "ephemeral", false, "keep everything in memory and forget it at the end (also $"+persistenceVariable+"=false)")
}

// forgets reports whether sessions are to be kept in memory only. To be told both
// that nothing may be kept and where to keep it is an error.
func (e *env) forgets() (bool, error) {
	switch {
	case e.ephemeral && e.data != "":
		return false, usageError("--ephemeral keeps everything in memory, so --data cannot be used with it")
	case e.ephemeral && e.url != "":
		return false, usageError("a server keeps its sessions as it was told, so --ephemeral cannot be used with --url")
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

// switchedOn reads a variable that switches something off; it is on by default.
func switchedOn(value string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "1", "t", "true", "y", "yes", "on":
		return true, nil
	case "0", "f", "false", "n", "no", "off":
		return false, nil
	}
	return true, usageError("$%s is %q; it takes true or false", persistenceVariable, value)
}
