package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// denySyscalls makes system calls of this process fail with EIO, as on a broken disk.
// It cannot be undone.
func denySyscalls(numbers ...uint32) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for i, n := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(numbers) - i), K: n})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// brokenDisks are the ways in which a disk fails: the system calls that fail, and
// whether a refused append can come back.
var brokenDisks = map[string]struct {
	calls   []uint32
	certain bool
	returns bool // the refused events may be there after a restart
}{
	"writes":                {[]uint32{unix.SYS_PWRITE64}, true, false},
	"syncs":                 {[]uint32{unix.SYS_FDATASYNC, unix.SYS_FSYNC}, false, false},
	"syncs and truncations": {[]uint32{unix.SYS_FDATASYNC, unix.SYS_FSYNC, unix.SYS_FTRUNCATE}, false, true},
}

// childOnBrokenDisk appends three events, lets the disk break, and prints the answers
// to its next calls.
func childOnBrokenDisk(dir, disk string) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err == nil {
		_, err = s.Create(ctx, tapedeck.Spec{ID: "a"})
	}
	if err == nil {
		_, err = s.Append(ctx, tapedeck.Append{Session: "a", Events: chunks(3)})
	}
	if err == nil {
		err = denySyscalls(brokenDisks[disk].calls...)
	}
	if err != nil {
		fmt.Println("skip", err)
		return
	}
	for range 2 {
		_, err = s.Append(ctx, tapedeck.Append{Session: "a", Events: chunks(1)})
		fmt.Println(tapedeck.KindOf(err), err)
	}
	_, err = s.Create(ctx, tapedeck.Spec{ID: "b", Events: chunks(1)})
	fmt.Println(tapedeck.KindOf(err), err)
	p, err := s.Read(ctx, "a", tapedeck.Range{})
	fmt.Println(len(p.Records), err)
	fmt.Println("now")
	select {}
}

// TestRefusedDoesNotComeBack kills a process whose disk has failed. After a restart an
// append and a session that were refused do not exist.
func TestRefusedDoesNotComeBack(t *testing.T) {
	for name, disk := range brokenDisks {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, out := child(t, "broken disk: "+name, dir)
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // reports that it was killed
			}()
			for range 3 {
				answer := line(t, out)
				if !strings.HasPrefix(answer, "unavailable ") || strings.Contains(answer, "not certain") == disk.certain {
					t.Errorf("the answer is %q", answer)
				}
			}
			if read := line(t, out); read != "3 <nil>" {
				t.Errorf("reading, while the disk is broken: %s", read)
			}
			line(t, out)
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // reports that it was killed
			if !disk.returns {
				checkRefused(t, dir)
			}
		})
	}
}

func line(t *testing.T, out *bufio.Scanner) string {
	t.Helper()
	if !out.Scan() {
		t.Fatal("the child ended", out.Err())
	}
	if reason, skip := strings.CutPrefix(out.Text(), "skip "); skip {
		t.Skip("no system calls can be made to fail here: ", reason)
	}
	return out.Text()
}

func checkRefused(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir, sqlite.Options{})
	if n := count(t, s, "a"); n != 3 {
		t.Errorf("%d events are there, want 3", n)
	}
	if _, err := s.Head(t.Context(), "b"); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Errorf("the session that was refused: %v", err)
	}
	add(t, s, "a", 1)
	if r, err := s.Verify(t.Context(), nil); err != nil || len(r.Problems) > 0 {
		t.Errorf("after it: %v, %v", r.Problems, err)
	}
}

func init() {
	if disk, ok := strings.CutPrefix(os.Getenv(childVar), "broken disk: "); ok {
		childOnBrokenDisk(os.Args[1], disk)
		os.Exit(0)
	}
}
