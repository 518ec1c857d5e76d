package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// workVar is the environment variable for the folder below which agents work.
const workVar = "TAPEDECK_WORK"

// workPlace returns the folder below which the agents of a data folder work. It is
// outside of the data folder, and its path does not reveal that folder: the data
// folder has the address of the server, and an agent that knows the address could
// answer its own questions.
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
