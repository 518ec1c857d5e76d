package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// release is the version of the next release; a build from a tagged module says
// its own.
const release = "0.1.0-dev"

// pseudo is the end of a version that Go makes for a commit without a tag.
var pseudo = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}(\+.*)?$`)

// version returns the version, in one form for all builds: without v, and that of the next
// release for a commit without a tag.
func version() string {
	b, _ := debug.ReadBuildInfo()
	return versionOf(b)
}

// versionOf returns the version of a build, of which nothing may be known.
func versionOf(b *debug.BuildInfo) string {
	if b == nil || !strings.HasPrefix(b.Main.Version, "v") || pseudo.MatchString(b.Main.Version) {
		return release
	}
	return strings.TrimPrefix(b.Main.Version, "v")
}

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return e.printVersion() },
	}
}

func (e *env) printVersion() error {
	if e.json {
		return e.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	_, err := fmt.Fprintf(e.stdout, "tapedeck %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
