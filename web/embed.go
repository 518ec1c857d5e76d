// Package web has the screen as it was built from ui/, for a server to serve.
package web

import (
	"embed"
	"io/fs"
)

// The build is committed, so that the program has its screen also where nobody
// has Node. The prefix "all:" takes files in whose names begin with an underscore.
//
//go:embed all:dist
var dist embed.FS

// Files returns the files of the build, or nil if there is none.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil
	}
	return files
}

// Player returns the script and the style of a recording, both "" if there is no
// build. They go into a page of their own, see exchange.Player.
func Player() (script, style string) {
	s, err := dist.ReadFile("dist/recording/player.js")
	if err != nil {
		return "", ""
	}
	c, err := dist.ReadFile("dist/recording/player.css")
	if err != nil {
		return "", ""
	}
	return string(s), string(c)
}
