package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	var l load
	var c costs
	in := inputs(&l, &c)
	fs := flag.NewFlagSet("scale", flag.ContinueOnError)
	register(fs, in)
	databases := fs.Int("databases", 0, "number of databases; 0 finds the smallest one that is enough")
	seed := fs.Uint64("seed", 1, "the same seed gives the same day")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := check(in); err != nil {
		return err
	}
	if *databases < 0 || *databases > mostDatabases {
		return errDatabases
	}
	p := planned(l, c, *databases, func(n int) spread { return spreadOf(simulate(small(l), c, n, *seed).events) })
	report(os.Stdout, in, l, c, p, simulate(l, c, p.Databases, *seed))
	return nil
}

// small returns a load with a tenth of the sessions that are simulated, for a first look.
// Fewer sessions lie less evenly, so the plan is on the safe side.
func small(l load) load {
	l.Sessions = min(l.Sessions, sample/10)
	return l
}
