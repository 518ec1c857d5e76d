package main

import (
	"context"
	"os"
	"os/signal"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run the test binary as the program.
func TestMain(m *testing.M) {
	tests := testscript.TestingM(m)
	if os.Getenv(workVar) == "" { // tests must not write to the home folder
		dir, err := os.MkdirTemp("", "tapedeck-work-")
		if err != nil {
			panic(err)
		}
		_ = os.Setenv(workVar, dir)
		tests = working{m, dir}
	}
	testscript.Main(tests, map[string]func(){
		"tapedeck": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			code := Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
			stop()
			os.Exit(code)
		},
	})
}

// working removes a folder after the tests: testscript.Main ends the process.
type working struct {
	testscript.TestingM
	folder string
}

func (w working) Run() int {
	defer func() { _ = os.RemoveAll(w.folder) }()
	return w.TestingM.Run()
}

// TestScripts runs testdata/script/*.txtar: commands of a user and their expected
// output. Run with -update to accept new output.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TAPEDECK_DATA", e.WorkDir+"/data")
			e.Setenv("TAPEDECK_WORK", e.WorkDir+"/work")
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}
