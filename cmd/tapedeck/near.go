package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tapedeck/tapedeck/payload"
)

// otherNames are what other programs call a flag, with what to write here.
var otherNames = map[string]string{
	"port": "listen 127.0.0.1:PORT", "host": "listen HOST:PORT", "bind": "listen HOST:PORT", "addr": "listen HOST:PORT", "address": "listen HOST:PORT",
	"dir": "data", "folder": "data", "server": "url", "key": "encryption-key",
}

// meantFlag returns a question for an error about an unknown flag: which one is meant. It
// returns "" if none is near, or the error is another one.
func meantFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	name := strings.ToLower(unknown.GetSpecifiedName())
	if whole := unknown.GetSpecifiedShortnames(); len(whole) > 1 { // -json
		name = strings.ToLower(whole)
	}
	name, _, _ = strings.Cut(name, "=")
	if flag, _, _ := strings.Cut(otherNames[name], " "); flag != "" && c.Flags().Lookup(flag) == nil {
		return "" // this command has nothing of the kind
	}
	best, near := "", maxWrong+1
	consider := func(known, write string) {
		d := distance(name, known)
		if len(name) > 1 && strings.HasPrefix(known, name) {
			d = min(d, 1)
		} else if 2*d >= len(name) { // of a short name, nothing would be left
			return
		}
		if d < near || d == near && write < best {
			best, near = write, d
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			consider(f.Name, f.Name)
		}
	})
	for known, write := range otherNames {
		if flag, _, _ := strings.Cut(write, " "); c.Flags().Lookup(flag) != nil {
			consider(known, write)
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; is it --%s?", best)
}

// nearType returns the type of the catalogue that is meant by a name that is nearly one of
// them. It returns "" if none is near, or if the name is one.
func nearType(name string) (meant string) {
	all := payload.EventTypes()
	if slices.Contains(all, name) {
		return ""
	}
	near := maxWrong + 1
	for _, known := range all {
		if d := distance(strings.ToUpper(name), strings.ToUpper(known)); d < near {
			meant, near = known, d
		}
	}
	return meant
}

// maxWrong is how many letters may be wrong.
const maxWrong = 2

// distance returns how many letters to insert, remove, replace, or exchange with the next, to
// make b from a.
func distance(a, b string) int {
	var before, last []int // rows of the table, for two letters and one letter less of a
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			other := 1
			if a[i] == b[j] {
				other = 0
			}
			row[j+1] = slices.Min([]int{last[j+1] + 1, row[j] + 1, last[j] + other})
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
