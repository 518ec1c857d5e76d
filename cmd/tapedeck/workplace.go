package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// workVar names the folder below which agents work, instead of the default.
const workVar = "TAPEDECK_WORK"

// workPlace returns the folder that has the folders of the agents of a data
// folder. It lies apart from that, and nothing in its name or above it leads
// there: a data folder says where its server is, and an agent that knows this
// could answer its own questions.
func workPlace(data string) string {
	place := os.Getenv(workVar)
	if place == "" {
		place = defaultWork()
	}
	sum := sha256.Sum256([]byte(resolved(data)))
	return filepath.Join(place, hex.EncodeToString(sum[:8]))
}

func defaultWork() string {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "tapedeck")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "tapedeck-work")
	}
	return filepath.Join(home, ".local", "state", "tapedeck")
}
