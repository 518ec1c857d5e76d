package procgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/tapedeck/tapedeck"
)

// Installed returns nil if the command of an agent can be started. It returns an error
// if the command is empty, or if the program is not there. A relative path begins at folder,
// which is the folder of this process if it is "". install is the hint of that error.
func Installed(agent string, command []string, folder, install string) error {
	if len(command) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "the agent %s has no command", agent)
	}
	_, err := find(command[0], folder)
	if err == nil {
		return nil
	}
	e := Failed(command[0], err)
	if errors.Is(err, exec.ErrNotFound) {
		e = tapedeck.Errorf(tapedeck.Unavailable, "the program %s is not installed", command[0]).Because(err)
	}
	e.Hint = install
	return e
}

// find returns the path of a program that starts in a folder. It looks up a name without a
// separator in the PATH of this process.
func find(path, folder string) (string, error) {
	switch info, err := os.Stat(folder); {
	case folder == "":
	case err != nil:
		return "", unusable("its working folder does not exist", err)
	case !info.IsDir():
		return "", unusable("its working folder is a file", nil)
	case strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path):
		path = folder + string(filepath.Separator) + path // a joined one may have no separator
	}
	found, err := exec.LookPath(path)
	switch {
	case errors.Is(err, exec.ErrNotFound) && !strings.ContainsRune(path, filepath.Separator):
		return "", unusable("no program of this name is in the PATH", err)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound):
		return "", unusable("there is no such file", errors.Unwrap(err))
	case errors.Is(err, syscall.EISDIR):
		return "", unusable("it is a folder", err)
	case errors.Is(err, fs.ErrPermission):
		return "", unusable("the server has no right to execute it", err)
	case err != nil:
		return "", err
	}
	return found, interpreted(found)
}

// maxFirstLine is how much of its first line a system reads of a script.
const maxFirstLine = 256

// interpreted returns an error if a program is a script and its interpreter does not exist. The
// error of the system would say that the script does not exist.
func interpreted(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil // it may be executed although it cannot be read
	}
	defer func() { _ = f.Close() }() // it was only read
	first := make([]byte, maxFirstLine)
	n, _ := f.Read(first) // a file that cannot be read is no script that names something
	line, ok := strings.CutPrefix(string(first[:n]), "#!")
	line, _, _ = strings.Cut(line, "\n")
	fields := strings.Fields(line)
	if !ok || len(fields) == 0 || !filepath.IsAbs(fields[0]) {
		return nil
	}
	if _, err := os.Stat(fields[0]); errors.Is(err, fs.ErrNotExist) {
		return unusable("its first line names an interpreter that does not exist", err)
	}
	return nil
}

func unusable(why string, err error) error {
	return tapedeck.Errorf(tapedeck.Unavailable, "%s", why).Because(err)
}

// Failed returns the error of a program that [Start] or [Process.Begin] could not start.
func Failed(program string, err error) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Unavailable, "the program %s cannot be started: %s", program, Reason(err)).Because(err)
}

// Reason returns why a program could not be started, as the end of a sentence.
func Reason(err error) string {
	var e *tapedeck.Error
	var errno syscall.Errno
	switch {
	case errors.As(err, &e):
		return e.Message
	case errors.Is(err, syscall.ENOEXEC):
		return "the system cannot execute a file of its form; a script begins with a line such as #!/bin/sh"
	case errors.Is(err, syscall.E2BIG):
		return "its arguments and its environment are too long"
	case errors.Is(err, fs.ErrNotExist):
		return "the interpreter or the loader that it needs does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "the server has no right to execute it, or its interpreter"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}
