package tool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sandbox"
)

// A Folder has the tools for the files of one folder. No tool for files leaves the folder,
// neither by ".." nor by a symbolic link, because [os.Root] prevents it. Commands are
// confined only by [Options.Sandbox]; [Options.Env] limits their environment.
type Folder struct {
	path    string // absolute
	root    *os.Root
	options Options
}

// Options configure the tools of a folder.
type Options struct {
	Env     []string        // variables of commands, see [Environment]
	Timeout Seconds         // default time limit of a command; 0 for 120
	Sandbox *sandbox.Policy // confines commands; nil for no sandbox
	Longest Seconds         // longest time limit that a call can set; 0 for 3000
}

// Seconds is a time in seconds, the unit of the calls.
type Seconds int

// OpenFolder opens a folder. Call [Folder.Close] in the end.
func OpenFolder(path string, o Options) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Internal, "the folder of the agent cannot be found: %w", err)
	}
	if err := o.Sandbox.Check(path); err != nil { // the tools for files do not run in the sandbox
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the folder of the agent cannot be opened").Because(err)
	}
	if o.Timeout <= 0 {
		o.Timeout = 120
	}
	if o.Longest <= 0 {
		o.Longest = 3000 // less than the time for which an agent may be silent
	}
	return &Folder{path, root, o}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Tools returns the tools: list_files, read_file, search, write_file, edit_file
// and run_command.
func (f *Folder) Tools() []Tool {
	return []Tool{f.list(), f.read(), f.search(), f.write(), f.edit(), f.command()}
}

// name returns a path of a call relative to the folder. Models often use absolute paths.
func (f *Folder) name(path string) string {
	if filepath.IsAbs(path) {
		if rel, err := filepath.Rel(f.path, path); err == nil {
			path = rel
		}
	}
	if path == "" {
		return "."
	}
	return filepath.Clean(path)
}

// maxFile is the limit of a file that is read or written, in bytes.
const maxFile = 8 << 20

// text reads a whole file of text.
func (f *Folder) text(path string) (string, Result) {
	file, bad := f.open(path, os.O_RDONLY)
	if file == nil {
		return "", bad
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", f.failed(path, err)
	case len(b) > maxFile:
		return "", Failed("%s has more than %d MiB. Use search, or a command.", path, maxFile>>20)
	case strings.ContainsRune(string(b), 0) || !utf8.Valid(b):
		return "", Failed("%s is not a file of UTF-8 text.", path)
	}
	return string(b), Result{}
}

// open opens a regular file. It never blocks on a named pipe, and never opens a device,
// because opening a device can have effects.
func (f *Folder) open(path string, flag int) (*os.File, Result) {
	name := f.name(path)
	if info, err := f.root.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, Failed("%s is not a file.", path)
	}
	file, err := f.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, f.failed(path, err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, Failed("%s is not a file.", path)
	}
	return file, Result{}
}

// failed returns why a path cannot be used. The text does not have the absolute path.
func (f *Folder) failed(path string, err error) Result {
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Failed("%s does not exist.", path)
	case errors.Is(err, fs.ErrPermission):
		return Failed("There is no permission to open %s.", path)
	case errors.Is(err, fs.ErrInvalid), errors.As(err, &at) && strings.Contains(at.Err.Error(), "escapes"):
		return Failed("%s is not a path in the folder.", path)
	case errors.As(err, &at):
		err = at.Err
	}
	return Failed("%s: %s.", path, err)
}
