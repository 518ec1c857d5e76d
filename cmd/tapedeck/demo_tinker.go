package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/llm"
)

// demoTinker is the session in which the agent tinker has worked.
const demoTinker = "demo_tinker"

// tinkerTask is its task. The text in brackets is for its scripted model.
const tinkerTask = `Read the notes, do what they say, and write down that it is done. [think] [tools]
[tool read_file {"path":"notes.md"}]
[tool write_file {"path":"done.md","content":"The notes were read, and the command was run.\n"}]`

// tinkerFiles are in the folder of every session at the beginning.
var tinkerFiles = map[string]string{
	"notes.md": "# Notes\n\nRun a command, and keep what it says.\n",
	"todo.txt": "one\ntwo\nthree\n",
}

// tinker returns an agent with real tools, which work on files, and a scripted model,
// which does what the task says in brackets. It has no policy of its own, so it asks
// before it changes a file or runs a command: anyone who reaches the server can give
// it a task.
func tinker(f *folders) deck.Agent {
	r := llm.New(llm.Options{
		Name: "demo", BaseURL: "http://model.invalid/v1", Model: "scripted",
		HTTPClient: &http.Client{Transport: testmodel.Transport(testmodel.New(testmodel.Options{}))},
	})
	return deck.Agent{
		Name: "tinker", Kind: "llm",
		Description: "uses real tools on files in a folder of its own; its model does what the task says in brackets",
		Runner:      r,
		Folder: func(session, _ string) (string, error) {
			path, err := f.session(session)
			if err != nil {
				return "", err
			}
			return path, writeFiles(path, tinkerFiles)
		},
	}
}

// permit answers the questions of a run of the demo with yes until the run ends, so
// that no user has to.
func (a *app) permit(ctx context.Context, s api.Started) error {
	for e, err := range a.Follow(ctx, s.Session, s.Offset) {
		if err != nil {
			return err
		}
		if e.Invocation != s.Invocation {
			continue
		}
		switch e.Type {
		case tapedeck.RunFinished, tapedeck.RunError:
			return nil
		case tapedeck.PermissionRequested:
			q, err := payload.DecodeAs[payload.PermissionRequested](e)
			if err != nil {
				return err
			}
			option, _ := chooseOption(q.Options, permitAllow)
			_, err = a.Session(s.Session).Answer(ctx, api.Answer{Permission: q.ID, Option: option, Offset: &e.Offset, Actor: "demo"})
			if err != nil && tapedeck.KindOf(err) != tapedeck.Conflict { // somebody else answered first
				return err
			}
		}
	}
	return nil
}

// writeFiles creates the files that do not exist yet.
func writeFiles(folder string, files map[string]string) error {
	for name, text := range files {
		file, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			continue
		}
		if err == nil {
			_, err = file.WriteString(text)
			if closing := file.Close(); err == nil {
				err = closing
			}
		}
		if err != nil {
			return tapedeck.Errorf(tapedeck.Unavailable, "the folder of the session cannot be written").Because(err)
		}
	}
	return nil
}
