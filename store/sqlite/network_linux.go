package sqlite

import "golang.org/x/sys/unix"

// networkKind returns the kind of network file system that dir is on, "" for a local
// disk or if the kind is unknown.
func networkKind(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return ""
	}
	switch uint32(s.Type) { // the type is signed on some machines
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case unix.V9FS_MAGIC: // a folder of the host, in some virtual machines
		return "9P"
	}
	return ""
}
