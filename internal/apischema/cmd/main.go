// Command cmd writes the description of the HTTP API and the types generated from
// it. Run it in the root folder of the repository. With -check it writes nothing and
// fails if a file is out of date.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tapedeck/tapedeck/internal/apischema"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is out of date")
	flag.Parse()
	run := apischema.Write
	if *check {
		run = apischema.Check
	}
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
