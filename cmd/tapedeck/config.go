package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/deck"
)

// findConfig returns the path of the configuration file, "" for none: that of
// --config, otherwise one in the working folder, otherwise one in the data folder.
func (e *env) findConfig() (string, error) {
	if e.config != "" {
		return e.config, nil
	}
	for _, path := range []string{agentconfig.FileName, filepath.Join(e.folder(), agentconfig.FileName)} {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // then the data folder is none, which its lock says
			return "", usageError("the configuration cannot be read: %w", err)
		}
	}
	return "", nil
}

// readConfig reads the configuration; without a file it is empty.
func (e *env) readConfig() (agentconfig.Config, error) {
	path, err := e.findConfig()
	if path == "" || err != nil {
		return agentconfig.Config{}, err
	}
	c, err := agentconfig.Read(path)
	if err != nil {
		return agentconfig.Config{}, &exitError{exitUsage, err}
	}
	if c.Secrets, err = secrets(e.folder(), path); err != nil {
		return agentconfig.Config{}, err
	}
	if path == agentconfig.FileName && e.config == "" && e.startsAgents {
		e.notice("using the agents of ./%s, which may run any program; choose another file with --config", agentconfig.FileName)
	}
	return c, nil
}

// secrets returns what confined agents may not see, in absolute paths: the data folder and
// some files. An agent that could write the configuration could end its own confinement.
func secrets(data string, files ...string) (s agentconfig.Secrets, err error) {
	if data, err = filepath.Abs(data); err != nil {
		return s, err
	}
	s.Hidden, s.Work = []string{data}, filepath.Join(workPlace(data), workName)
	for _, file := range files {
		if file, err = filepath.Abs(file); err != nil {
			return s, err
		}
		s.Hidden = append(s.Hidden, file)
	}
	return s, nil
}

// buildAgents returns the agents of a configuration. If it has none, or for the
// demo, the scripts follow.
func buildAgents(c *agentconfig.Config, folders *folders, demo bool) ([]deck.Agent, error) {
	out, err := c.Build(folders.of)
	if err != nil || len(out) > 0 && !demo {
		return out, err
	}
	ours := scriptAgents(c.ScriptLimits)
	if demo {
		ours = append(ours, tinker(folders), triage(folders))
	}
	for _, s := range ours {
		if slices.ContainsFunc(out, func(a deck.Agent) bool { return a.Name == s.Name }) {
			return nil, usageError("the demo has an agent %s of its own; rename yours in %s, or run without --demo", s.Name, c.Path)
		}
		out = append(out, s)
	}
	return out, nil
}
