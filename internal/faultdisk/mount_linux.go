package faultdisk

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// ErrNotPossible says that this process may not mount a file system here.
var ErrNotPossible = errors.New("FUSE cannot be used here (it needs /dev/fuse and root)")

// Mount makes the disk available to processes below a folder. unmount ends that, also if
// processes still have files open there.
func (d *Disk) Mount(folder string) (unmount func() error, err error) {
	second := time.Second
	server, err := fs.Mount(folder, &node{disk: d, file: d.root}, &fs.Options{
		AttrTimeout: &second, EntryTimeout: &second,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "faultdisk", Name: "faultdisk", MaxWrite: 1 << 20},
	})
	if err != nil {
		return nil, errors.Join(ErrNotPossible, err)
	}
	return func() error {
		err := server.Unmount()
		if err != nil {
			err = syscall.Unmount(folder, syscall.MNT_DETACH)
		}
		server.Wait()
		return err
	}, nil
}

// renameNoReplace is RENAME_NOREPLACE of renameat2(2).
const renameNoReplace = 1

// A node is a file of a mounted disk.
type node struct {
	fs.Inode
	disk *Disk
	file *file
}

var _ = (fs.NodeLookuper)((*node)(nil))
var _ = (fs.NodeReaddirer)((*node)(nil))
var _ = (fs.NodeCreater)((*node)(nil))
var _ = (fs.NodeMkdirer)((*node)(nil))
var _ = (fs.NodeUnlinker)((*node)(nil))
var _ = (fs.NodeRmdirer)((*node)(nil))
var _ = (fs.NodeRenamer)((*node)(nil))
var _ = (fs.NodeOpener)((*node)(nil))
var _ = (fs.NodeReader)((*node)(nil))
var _ = (fs.NodeWriter)((*node)(nil))
var _ = (fs.NodeFsyncer)((*node)(nil))
var _ = (fs.NodeGetattrer)((*node)(nil))
var _ = (fs.NodeSetattrer)((*node)(nil))
var _ = (fs.NodeStatfser)((*node)(nil))

func (n *node) lock() func() {
	n.disk.mu.Lock()
	return n.disk.mu.Unlock
}

func (n *node) child(ctx context.Context, f *file, out *fuse.EntryOut) *fs.Inode {
	f.attributes(&out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, file: f}, fs.StableAttr{Mode: f.mode & syscall.S_IFMT, Ino: f.ino})
}

func (f *file) attributes(out *fuse.Attr) {
	out.Ino, out.Mode, out.Size = f.ino, f.mode, uint64(len(f.data))
	out.Blocks = (out.Size + sector - 1) / sector
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	f := n.file.names[name]
	if f == nil {
		return nil, syscall.ENOENT
	}
	return n.child(ctx, f, out), 0
}

func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	defer n.lock()()
	var list []fuse.DirEntry
	for name, f := range n.file.names {
		list = append(list, fuse.DirEntry{Name: name, Mode: f.mode, Ino: f.ino})
	}
	return fs.NewListDirStream(list), 0
}

func (n *node) create(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	defer n.lock()()
	if n.disk.faults.writes != 0 {
		return nil, n.disk.faults.writes
	}
	if n.file.names[name] != nil {
		return nil, syscall.EEXIST
	}
	f := n.disk.newFile(mode)
	n.disk.set(entry{dir: n.file, name: name, file: f})
	return n.child(ctx, f, out), 0
}

func (n *node) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, errno := n.create(ctx, name, syscall.S_IFREG|mode&0o7777, out)
	return inode, nil, 0, errno
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.create(ctx, name, syscall.S_IFDIR|mode&0o7777, out)
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	defer n.lock()()
	return n.disk.remove(n.file, name)
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno { return n.Unlink(ctx, name) }

func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	defer n.lock()()
	to := parent.EmbeddedInode().Operations().(*node)
	if flags&renameNoReplace != 0 && to.file.names[newName] != nil {
		return syscall.EEXIST
	}
	return n.disk.move(n.file, name, to.file, newName)
}

func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	defer n.lock()()
	count, errno := n.disk.read(n.file, dest, off)
	return fuse.ReadResultData(dest[:count]), errno
}

func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	defer n.lock()()
	if errno := n.disk.write(n.file, data, off); errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	defer n.lock()()
	return n.disk.sync(n.file)
}

func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	defer n.lock()()
	n.file.attributes(&out.Attr)
	return 0
}

func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	defer n.lock()()
	if mode, ok := in.GetMode(); ok {
		n.file.mode = n.file.mode&syscall.S_IFMT | mode&0o7777
	}
	if size, ok := in.GetSize(); ok {
		n.disk.truncate(n.file, int64(size))
	}
	n.file.attributes(&out.Attr)
	return 0
}

// Statfs reports much free space. FailWrites makes the disk full.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 22
	*out = fuse.StatfsOut{Blocks: blocks, Bfree: blocks, Bavail: blocks, Files: blocks, Ffree: blocks, Bsize: 4096, Frsize: 4096, NameLen: 255}
	return 0
}
