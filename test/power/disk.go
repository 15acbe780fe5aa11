// Package power tests nod on a disk that loses its power. The disk is a FUSE file system that knows which
// data and names were synced. In a power cut it loses all other data and names.
package power

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// page is the size of the unit in which a disk writes data, in bytes.
const page = 4096

// faults are the errors of a disk's writes and syncs. 0 means no error.
type faults struct{ writes, syncs syscall.Errno }

// disk is a file system. The directory work has its files as the kernel has them. The fields data and
// names have the part that would survive a power cut. A sync of a file also makes the names of the file
// durable, as on ext4.
type disk struct {
	work, mount string
	server      *fuse.Server

	mu     sync.Mutex
	off    bool // true if the power is off; every sync then fails
	failed faults
	data   map[uint64][]byte            // the synced data of each file, by inode
	names  map[string]map[string]uint64 // the synced names in each directory, by the directory's path in work
	direct map[uint64]bool              // the inodes of the files that were opened with O_SYNC
	held   chan struct{}                // syncs wait until this Go channel is closed; if it is nil, they do not wait
	// strict lists the directories in which a sync of a block file does not make the file's names
	// durable. Only a sync of the directory does.
	strict []string

	rand   *rand.Rand // the source of chance that chooses which data survives a power cut
	grave  string     // the directory that has a hard link to each removed file
	buried int
}

func mountDisk(work, mount, grave string, random *rand.Rand) (*disk, error) {
	d := &disk{rand: random, work: work, mount: mount, grave: grave, data: map[uint64][]byte{}, names: map[string]map[string]uint64{}, direct: map[uint64]bool{}}
	err := filepath.WalkDir(work, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			d.keepDir(path)
			return err
		}
		return d.keepFile(path)
	})
	if err != nil {
		return nil, err
	}
	root := &fs.LoopbackRoot{Path: work}
	top := &node{&fs.LoopbackNode{RootData: root}, d}
	root.RootNode = top
	d.server, err = fs.Mount(mount, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true}})
	return d, err
}

type node struct {
	*fs.LoopbackNode
	disk *disk
}

// WrapChild makes each file and directory below a node a node of the same disk.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{child.(*fs.LoopbackNode), n.disk}
}

func (n *node) path() string { return filepath.Join(n.disk.work, n.Path(n.Root())) }

// slowSync is the longest duration of a sync. The longer a sync takes, the more data a power cut destroys
// if nod does not wait for the sync.
const slowSync = 20 * time.Millisecond

func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	<-time.After(rand.N(slowSync))
	if n.disk.awaitRelease() {
		return syscall.EIO
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	switch {
	case n.disk.off:
		return syscall.EIO
	case n.disk.failed.syncs != 0:
		return n.disk.failed.syncs
	}
	if n.IsDir() {
		n.disk.keepDir(n.path())
		return 0
	}
	if n.disk.keepFile(n.path()) != nil {
		return syscall.EIO
	}
	return 0
}

// Write writes data to an open file. It fails if the disk accepts no more data.
func (n *node) Write(ctx context.Context, h fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	if errno := n.disk.faultsNow().writes; errno != 0 {
		return 0, errno
	}
	return h.(fs.FileWriter).Write(ctx, data, at)
}

// OpendirHandle returns a handle of a directory. A sync of this handle is a sync of the simulated disk.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, f, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &dirHandle{h.(dirStream), n}, f, 0
}

type dirStream interface {
	fs.FileReaddirenter
	fs.FileReleasedirer
	fs.FileSeekdirer
}

type dirHandle struct {
	dirStream
	node *node
}

func (h *dirHandle) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	return h.node.Fsync(ctx, nil, flags)
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.disk.faultsNow().writes; errno != 0 {
		return nil, nil, 0, errno
	}
	inode, h, f, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	n.disk.noteDirect(filepath.Join(n.path(), name), flags)
	return inode, &file{h.(*fs.LoopbackFile)}, f, 0
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, f, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	n.disk.noteDirect(n.path(), flags)
	return &file{h.(*fs.LoopbackFile)}, f, 0
}

// noteDirect records the inode of a file that is opened with O_SYNC.
func (d *disk) noteDirect(path string, flags uint32) {
	if flags&syscall.O_SYNC == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.direct[inodeOf(path)] = true
}

// file is an open file. The kernel writes to the file through the file's node.
type file struct{ *fs.LoopbackFile }

// PassthroughFd returns false, so that the kernel does not write to the underlying file directly.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

// Unlink keeps the inode of the removed file in use, so that no new file gets the same inode number.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.disk.bury(filepath.Join(n.path(), name))
	return n.LoopbackNode.Unlink(ctx, name)
}

// Rename keeps the inode of a replaced file in use, as Unlink does.
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	n.disk.bury(filepath.Join(n.disk.work, parent.EmbeddedInode().Path(n.Root()), newName))
	return n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
}

func (d *disk) bury(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buried++
	_ = os.Link(path, filepath.Join(d.grave, strconv.Itoa(d.buried))) // Link fails if the removed file does not exist
}

func inodeOf(path string) uint64 {
	var s syscall.Stat_t
	if syscall.Stat(path, &s) != nil {
		return 0
	}
	return s.Ino
}

// keepFile makes the data and the names of a file durable.
func (d *disk) keepFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	d.data[inodeOf(path)] = data
	named := filepath.Ext(path) != ".blk" || !slices.ContainsFunc(d.strict, func(s string) bool { return strings.Contains(path, s) })
	for named && path != d.work {
		dir, name := filepath.Split(path)
		path = filepath.Clean(dir)
		d.keepName(path, name, inodeOf(filepath.Join(path, name)))
	}
	return nil
}

func (d *disk) keepName(dir, name string, inode uint64) {
	if d.names[dir] == nil {
		d.names[dir] = map[string]uint64{}
	}
	d.names[dir][name] = inode
}

// keepDir makes the names in a directory durable.
func (d *disk) keepDir(path string) {
	entries, _ := os.ReadDir(path) // if the directory has been removed, it has no names
	d.names[path] = map[string]uint64{}
	for _, e := range entries {
		inode := inodeOf(filepath.Join(path, e.Name()))
		if d.direct[inode] {
			d.data[inode], _ = os.ReadFile(filepath.Join(path, e.Name()))
		}
		d.names[path][e.Name()] = inode
	}
}

// The method cut cuts the power. All later syncs fail.
func (d *disk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// The method fail makes all later writes and syncs fail with the given errors.
func (d *disk) fail(f faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = f
}

func (d *disk) faultsNow() faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// The method hold makes all syncs wait until the returned function is called. The syncs then fail.
func (d *disk) hold() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := make(chan struct{})
	d.held = held
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held = nil
		close(held)
	}
}

// awaitRelease waits until held syncs are released. It reports whether syncs were held.
func (d *disk) awaitRelease() (held bool) {
	d.mu.Lock()
	released := d.held
	d.mu.Unlock()
	if released == nil {
		return false
	}
	<-released
	return true
}

// unmount removes the mount, even if it is in use.
func (d *disk) unmount() {
	if d.server.Unmount() != nil {
		_ = syscall.Unmount(d.mount, syscall.MNT_DETACH) // Unmount fails if the disk is not mounted
	}
}

// The method clean reports whether all data in the disk's block files is synced.
func (d *disk) clean() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dirty := filepath.WalkDir(d.work, func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blk" {
			return nil
		}
		now, err := os.ReadFile(path)
		if dir, name := filepath.Split(path); err == nil && len(now) > 0 && (!bytes.Equal(now, d.data[inodeOf(path)]) || d.names[filepath.Clean(dir)][name] != inodeOf(path)) {
			return os.ErrInvalid
		}
		return nil
	})
	return dirty == nil
}

// restore writes to a directory what survives the power cut. A name or page that was not synced survives with
// the probability in the parameter keep.
func (d *disk) restore(to string, keep float64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := map[uint64][]byte{}
	_ = filepath.WalkDir(d.work, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			now, _ := os.ReadFile(path)
			inode := inodeOf(path)
			kept[inode] = now
			if !d.direct[inode] {
				kept[inode] = d.mix(d.data[inode], now, keep)
			}
		}
		return nil
	})
	return d.restoreDir(d.work, to, keep, kept)
}

func (d *disk) restoreDir(dir, to string, keep float64, kept map[uint64][]byte) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	names := map[string]uint64{}
	for _, name := range slices.Sorted(maps.Keys(d.names[dir])) { // the names are sorted, because their order decides which random number each of them gets
		inode := d.names[dir][name]
		if now := inodeOf(filepath.Join(dir, name)); now != inode && d.rand.Float64() < keep {
			continue // the removal or the replacement of the name has survived
		}
		names[name] = inode
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		inode := inodeOf(filepath.Join(dir, e.Name()))
		if _, ok := names[e.Name()]; !ok && (d.names[dir][e.Name()] != inode && d.rand.Float64() < keep || d.names[dir][e.Name()] == inode) {
			names[e.Name()] = inode
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inode, path := names[name], filepath.Join(dir, name)
		if _, ok := d.names[path]; ok || isDir(path) {
			if err := d.restoreDir(path, filepath.Join(to, name), keep, kept); err != nil {
				return err
			}
			continue
		}
		data, ok := kept[inode]
		if !ok {
			data = d.data[inode] // the file was removed, but the removal did not reach the disk
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func isDir(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.IsDir()
}

// The method mix returns the synced data with some pages of newer data. The last page may be torn.
func (d *disk) mix(synced, now []byte, keep float64) []byte {
	if keep == 0 || bytes.Equal(synced, now) {
		return synced
	}
	out := bytes.Clone(synced)
	for at := 0; at < len(now); at += page {
		end := min(at+page, len(now))
		if end > len(synced) && end == len(now) {
			end = at + d.rand.IntN(end-at+1)
		}
		if d.rand.Float64() >= keep || at < len(synced) && end <= len(synced) && bytes.Equal(synced[at:end], now[at:end]) {
			continue
		}
		if end > len(out) {
			out = append(out, make([]byte, end-len(out))...)
		}
		copy(out[at:end], now[at:end])
	}
	return out
}
