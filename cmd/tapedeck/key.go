package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newKey(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Make, change and back up the keys of encrypted sessions",
		Long: `With --encryption-key, tapedeck serve and all other commands encrypt what new sessions
of the data folder have. Each session has a key of its own, in the file session-keys of
the folder; the encryption key, which only you have, encrypts that file. To delete a
session erases its key, so nobody can read the session in any backup any more.

Without the encryption key, or without the file session-keys, nobody can read the
sessions, you neither. A backup has neither of them: keep copies of both, elsewhere.`,
		Args: onlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newKeyNew(e), newKeyRotate(e), newKeyBackup(e))
	return c
}

func newKeyNew(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "new [FILE]",
		Short: "Make an encryption key, and print it or write it to a new file",
		Example: `  tapedeck key new /etc/tapedeck/master.key
  tapedeck serve --encryption-key /etc/tapedeck/master.key`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key := sessionkeys.NewMaster()
			if len(args) == 0 {
				_, err := fmt.Fprintln(e.stdout, key)
				return err
			}
			f, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return tapedeck.Errorf(tapedeck.Conflict, "the file %s exists", args[0]).WithHint("a key that encrypts sessions must not be lost: name a new file")
			}
			if err == nil {
				_, err = fmt.Fprintln(f, key)
				err = errors.Join(err, f.Sync(), f.Close())
			}
			if err != nil {
				return tapedeck.Errorf(tapedeck.Invalid, "the file %s cannot be written", args[0]).Because(err)
			}
			_, err = fmt.Fprintf(e.stdout, "%s has a new encryption key; keep a copy of it in another place\n", terminal.Clean(args[0]))
			return err
		},
	}
}

func newKeyRotate(e *env) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "rotate --to FILE",
		Short: "Replace the encryption key of the data folder",
		Long: `Rotate encrypts the keys of all sessions with another encryption key. The sessions
themselves do not change, so it takes a moment. Stop the server first.

If it is interrupted, the folder has one encryption key or the other: run the same
command again. Copies of session-keys from before still need the old key: make new ones
with tapedeck key backup, and remove the old ones.`,
		Example: `  tapedeck key new new.key
  tapedeck key rotate --encryption-key old.key --to new.key --data ./tapedeck-data`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := e.onlyFolder("key rotate works on a data folder, not through a server"); err != nil {
				return err
			}
			if to == "" {
				return usageError("key rotate needs --to FILE, env:NAME or cmd:COMMAND, the new encryption key")
			}
			if err := e.exists(); err != nil {
				return err
			}
			old, err := e.encryptionKey(c.Context())
			if err == nil && old == nil {
				err = errNoKeyGiven()
			}
			if err != nil {
				return err
			}
			next, err := readMaster(c.Context(), "--to", to)
			if err != nil {
				return err
			}
			return e.rotateKey(old, next)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the new encryption key: a file, env:NAME or cmd:COMMAND")
	return c
}

func (e *env) rotateKey(old, next []byte) error {
	lock, err := sqlite.TakeLock(e.folder())
	if err != nil {
		return err
	}
	defer lock.Release()
	n, err := sqlite.RotateKey(e.folder(), old, next)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(map[string]any{"keys": n})
	}
	if n == 0 {
		_, err = fmt.Fprintln(e.stdout, "the folder has the new encryption key already, or no keys of sessions")
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s encrypted with the new encryption key; make a new copy with tapedeck key backup\n", terminal.Count(n, "key"))
	return err
}

func newKeyBackup(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the keys of the sessions, also while a server runs",
		Long: `Backup copies the file session-keys of the data folder to FILE, which replaces an
earlier copy: the keys of sessions that were deleted since are overwritten there, too.
The keys in it are encrypted; to use them one needs the encryption key.

Keep one copy, away from the backups of the sessions, and make it after each of them.
A session that is newer than the copy cannot be read with it.`,
		Example: `  tapedeck key backup /safe/session-keys --data ./tapedeck-data`,
		Args:    oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := e.onlyFolder("key backup works on a data folder, not through a server"); err != nil {
				return err
			}
			from := filepath.Join(e.folder(), sessionkeys.FileName)
			switch err := sessionkeys.Copy(from, args[0]); {
			case errors.Is(err, fs.ErrNotExist):
				return tapedeck.Errorf(tapedeck.NotFound, "there are no keys of sessions in %s", e.folder()).
					WithHint("no session of it is encrypted, or --data names another folder; the folder of FILE must exist").Because(err)
			case err != nil:
				return tapedeck.Errorf(tapedeck.Invalid, "the keys cannot be copied to %s", args[0]).Because(err)
			}
			_, err := fmt.Fprintf(e.stdout, "%s has the keys of the sessions\n", terminal.Clean(args[0]))
			return err
		},
	}
}

// oneFile requires the name of a file as the only argument.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("%s takes the name of a file", c.CommandPath())
	}
	return nil
}
