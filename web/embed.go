// Package web has the build of the user interface in ui/, which the server serves.
package web

import (
	"embed"
	"io/fs"
)

// dist has the build. It is committed, so that the program can be built without Node. The
// prefix "all:" includes files whose names begin with an underscore.
//
//go:embed all:dist
var dist embed.FS

// Files returns the files of the build; nil if there is no build.
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

// Player returns the script and the style of an exported recording; both are "" if there is
// no build. The HTML export puts them into its page, see exchange.Player.
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
