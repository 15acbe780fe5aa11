// Package power tests nod on a disk that loses its power. The disk is a FUSE file system that knows
// which data and names were synced. In a power cut it loses all others.
package power

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// page is the unit in which a disk writes data.
const page = 4096

// disk is a file system. The directory work contains its files in their present state. The fields data
// and names contain the state that a power cut would leave. As on ext4, a sync of a file also makes
// the names of the file durable.
type disk struct {
	work, mount string
	server      *fuse.Server

	mu     sync.Mutex
	off    bool                         // the power is off, so every sync fails
	fail   syscall.Errno                // the error of every sync, if not 0
	data   map[uint64][]byte            // the synced data of each file, by inode
	names  map[string]map[string]uint64 // the synced names in each directory, by the directory's path in work
	direct map[uint64]bool              // files that were opened with O_SYNC

	grave  string // a directory with links to removed files
	buried int
}

func mountDisk(work, mount, grave string) (*disk, error) {
	d := &disk{work: work, mount: mount, grave: grave, data: map[uint64][]byte{}, names: map[string]map[string]uint64{}, direct: map[uint64]bool{}}
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
	root.NewNode = func(*fs.LoopbackRoot, *fs.Inode, string, *syscall.Stat_t) fs.InodeEmbedder {
		return &node{LoopbackNode: fs.LoopbackNode{RootData: root}, disk: d}
	}
	top := root.NewNode(root, nil, "", nil)
	root.RootNode = top
	d.server, err = fs.Mount(mount, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true}})
	return d, err
}

// node is a file or a directory of a disk.
type node struct {
	fs.LoopbackNode
	disk *disk
}

func (n *node) path() string { return filepath.Join(n.disk.work, n.Path(n.Root())) }

// slowSync is the longest duration of a sync. The slower a sync is, the more data a power cut destroys
// if nod does not wait for the sync.
const slowSync = 20 * time.Millisecond

func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	<-time.After(rand.N(slowSync))
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	switch {
	case n.disk.off:
		return syscall.EIO
	case n.disk.fail != 0:
		return n.disk.fail
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

// OpendirHandle returns a handle whose sync is a sync of the directory on this disk.
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
	inode, h, f, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno == 0 && flags&syscall.O_SYNC != 0 {
		n.disk.mu.Lock()
		defer n.disk.mu.Unlock()
		n.disk.direct[inodeOf(filepath.Join(n.path(), name))] = true
	}
	return inode, h, f, errno
}

// Unlink keeps the inode of the file, so that no new file gets the same number.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.disk.bury(filepath.Join(n.path(), name))
	return n.LoopbackNode.Unlink(ctx, name)
}

// Rename keeps the inode of a file that it replaces.
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	n.disk.bury(filepath.Join(n.disk.work, parent.EmbeddedInode().Path(n.Root()), newName))
	return n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
}

func (d *disk) bury(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buried++
	_ = os.Link(path, filepath.Join(d.grave, strconv.Itoa(d.buried))) // fails if there is no such file
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
	for path != d.work {
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
	entries, _ := os.ReadDir(path) // a directory that was removed in the meantime has no names
	d.names[path] = map[string]uint64{}
	for _, e := range entries {
		inode := inodeOf(filepath.Join(path, e.Name()))
		if d.direct[inode] {
			d.data[inode], _ = os.ReadFile(filepath.Join(path, e.Name()))
		}
		d.names[path][e.Name()] = inode
	}
}

// cut cuts the power. From now on every sync fails.
func (d *disk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// failSyncs makes every sync fail with err. 0 makes syncs succeed again.
func (d *disk) failSyncs(err syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// restore writes the state after the power cut to a directory. A name or page that was not synced
// survives with the probability keep.
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
				kept[inode] = mix(d.data[inode], now, keep)
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
	for name, inode := range d.names[dir] {
		if now := inodeOf(filepath.Join(dir, name)); now != inode && rand.Float64() < keep {
			continue // the removal or the replacement reached the disk
		}
		names[name] = inode
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		inode := inodeOf(filepath.Join(dir, e.Name()))
		if _, ok := names[e.Name()]; !ok && (d.names[dir][e.Name()] != inode && rand.Float64() < keep || d.names[dir][e.Name()] == inode) {
			names[e.Name()] = inode
		}
	}
	for name, inode := range names {
		path := filepath.Join(dir, name)
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

// mix returns the synced data, in which some pages have newer data. The last page may be torn.
func mix(synced, now []byte, keep float64) []byte {
	if keep == 0 || bytes.Equal(synced, now) {
		return synced
	}
	out := bytes.Clone(synced)
	for at := 0; at < len(now); at += page {
		end := min(at+page, len(now))
		if end > len(synced) && end == len(now) {
			end = at + rand.IntN(end-at+1)
		}
		if rand.Float64() >= keep || at < len(synced) && end <= len(synced) && bytes.Equal(synced[at:end], now[at:end]) {
			continue
		}
		if end > len(out) {
			out = append(out, make([]byte, end-len(out))...)
		}
		copy(out[at:end], now[at:end])
	}
	return out
}
