package main

import (
	"net/http"
	"os"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/internal/testmodel"
	"github.com/tapedeck/tapedeck/runner/llm"
)

// demoTinker is the session in which the agent of that name has worked.
const demoTinker = "demo_tinker"

// tinkerTask is what it is asked. What is in brackets is for its model.
const tinkerTask = `Read the notes, do what they say, and write down that it is done. [think] [tools]
[tool read_file {"path":"notes.md"}]
[tool write_file {"path":"done.md","content":"The notes were read, and the command was run.\n"}]`

// tinkerFiles are in the folder of every session when it begins.
var tinkerFiles = map[string]string{
	"notes.md": "# Notes\n\nRun a command, and keep what it says.\n",
	"todo.txt": "one\ntwo\nthree\n",
}

// tinker returns an agent that is real but for its model, which does what the
// task says in brackets: its tools work on files.
func tinker(f *folders) deck.Agent {
	r := llm.New(llm.Options{
		Name: "demo", BaseURL: "http://model.invalid/v1", Model: "scripted",
		HTTPClient: &http.Client{Transport: testmodel.Transport(testmodel.New(testmodel.Options{}))},
		Policy:     llm.Policy{{Tool: "*", Decision: llm.Allow}},
	})
	return deck.Agent{
		Name: "tinker", Kind: "llm",
		Description: "really uses tools on files in a folder of its own; its model does what the task says in brackets",
		Runner:      r,
		Folder: func(session string) (string, error) {
			path, err := f.session(session)
			if err != nil {
				return "", err
			}
			return path, furnish(path)
		},
	}
}

// furnish makes the files that are not there yet.
func furnish(folder string) error {
	for name, text := range tinkerFiles {
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
