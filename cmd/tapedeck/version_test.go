package main

import (
	"runtime/debug"
	"testing"
)

// TestVersion: the version has one form, whichever way the program was built.
func TestVersion(t *testing.T) {
	for built, want := range map[string]string{
		"":                                   release,
		"(devel)":                            release,
		"v0.0.0-20261127231542-14ec7d63a0b1": release,
		"v0.0.0-20261127231542-14ec7d63a0b1+dirty":  release,
		"v0.2.1-0.20261127231542-14ec7d63a0b1":      release,
		"v0.3.0-rc.1.0.20261127231542-14ec7d63a0b1": release,
		"v0.3.0":      "0.3.0",
		"v0.3.0-rc.1": "0.3.0-rc.1",
	} {
		b := &debug.BuildInfo{Main: debug.Module{Version: built}}
		if got := versionOf(b); got != want {
			t.Errorf("a build of %q says %q, want %q", built, got, want)
		}
	}
	if got := versionOf(nil); got != release {
		t.Errorf("a build of which nothing is known says %q", got)
	}
}
