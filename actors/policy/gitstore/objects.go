// Package gitstore reads the index and the objects of git repositories. It does not run git, so that
// no program of a repository's configuration runs, and it writes nothing. It limits how much it reads
// from a file, because a repository may come from a stranger.
//
// The library go-git could read the same files, but has no limits. For a repository of a few MB with
// one commit, whose tree inflates to 1 GiB, go-git took 7.9 GB of memory and 30 s, and this package
// 47 MB and 53 ms. For a repository with 1,600 commits, this package takes 0.37 s, and go-git 0.21 s.
// A second reading takes 49 ms, and with go-git 0.6 ms.
package gitstore

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// ID is the name of an object. This package does not read repositories with longer names (SHA-256).
type ID [20]byte

// String returns the ID in lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

type kind byte

// The kinds of objects, with the numbers that packs use.
const (
	kindCommit   kind = 1
	kindTree     kind = 2
	kindOfsDelta kind = 6
	kindRefDelta kind = 7
)

const (
	maxObject    = 16 << 20  // the largest commit or tree, in bytes
	maxFile      = 512 << 20 // the largest index of a pack or of a work tree, in bytes
	maxChain     = 4096      // the longest chain of deltas
	maxCached    = 32 << 20  // the total size, in bytes, of the objects that are kept because other objects may be deltas of them
	maxAlternate = 5         // the largest depth of alternates, as in git
)

// errMissing means that a repository does not have an object.
var errMissing = errors.New("the object is missing")

// objects reads the objects of one repository.
type objects struct {
	dirs   []string // the repository's own directory of objects, and the directories of its alternates
	packs  []*pack
	cache  map[place]object
	cached int // the size of the objects in cache, in bytes
	in     *bufio.Reader
	z      io.ReadCloser
}

type object struct {
	kind kind
	data []byte
}

// place tells in which pack, and at which offset, an object is.
type place struct {
	in *pack
	at int64
}

// alternates returns the object directories from which git reads for a repository. These are the
// directory dir and the directories that the file info/alternates in dir names. The argument depth
// limits the nesting of such files.
func alternates(dir string, depth int) []string {
	dirs := []string{dir}
	text, err := readBounded(dir+"/info/alternates", 64<<10)
	if err != nil || depth == maxAlternate {
		return dirs
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if !path.IsAbs(line) {
			line = path.Join(dir, line)
		}
		dirs = append(dirs, alternates(line, depth+1)...)
	}
	return dirs
}

// readBounded reads a regular file. A file longer than limit, in bytes, is an error.
func readBounded(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", name, limit)
	}
	return os.ReadFile(name)
}

func (o *objects) close() {
	for _, p := range o.packs {
		_ = p.file.Close() // an error of Close loses nothing, because the file was only read
	}
}

// read returns the kind and the content of a commit or a tree.
func (o *objects) read(id ID) (object, error) {
	for _, p := range o.packs {
		if at, ok := p.find(id); ok {
			return o.packed(place{p, at}, 0)
		}
	}
	for _, dir := range o.dirs {
		name := id.String()
		obj, err := o.loose(dir+"/"+name[:2]+"/"+name[2:], true)
		if !errors.Is(err, fs.ErrNotExist) {
			return obj, err
		}
	}
	return object{}, errMissing
}

// loose reads an object that is not in a pack, from the file name. If the argument whole is false, it
// returns the kind of every object, but the content only of a commit.
func (o *objects) loose(name string, whole bool) (object, error) {
	f, err := os.Open(name)
	if err != nil {
		return object{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return object{}, fmt.Errorf("%s is no file", name)
	}
	z, err := o.inflater(f)
	if err != nil {
		return object{}, fmt.Errorf("read %s: %w", name, err)
	}
	head := bufio.NewReader(io.LimitReader(z, maxObject+64))
	text, err := head.ReadString(0)
	if err != nil || len(text) > 64 {
		return object{}, fmt.Errorf("%s is no object of git", name)
	}
	var obj object
	switch word, _, _ := strings.Cut(text, " "); word {
	case "commit":
		obj.kind = kindCommit
	case "tree":
		obj.kind = kindTree
	default:
		return obj, nil
	}
	if whole || obj.kind == kindCommit {
		obj.data, err = io.ReadAll(head)
	}
	return obj, err
}

// inflater returns a reader that inflates the data of r. The reader is valid until the next call of
// inflater.
func (o *objects) inflater(r io.Reader) (io.Reader, error) {
	if o.in == nil {
		o.in = bufio.NewReaderSize(r, 4096)
	} else {
		o.in.Reset(r)
	}
	if o.z == nil {
		z, err := zlib.NewReader(o.in)
		if err != nil {
			return nil, err
		}
		o.z = z
		return z, nil
	}
	return o.z, o.z.(zlib.Resetter).Reset(o.in, nil)
}

// packed reads an object of a pack. If the object is a delta, packed also reads the objects on which
// it is based.
func (o *objects) packed(at place, depth int) (object, error) {
	if obj, ok := o.cache[at]; ok {
		return obj, nil
	}
	if depth > maxChain {
		return object{}, errors.New("a chain of deltas is too long")
	}
	h, err := at.in.header(at.at)
	if err != nil {
		return object{}, err
	}
	if h.size > maxObject {
		return object{}, fmt.Errorf("an object has %d bytes, more than %d", h.size, maxObject)
	}
	z, err := o.inflater(io.NewSectionReader(at.in.file, h.body, 1<<62))
	if err != nil {
		return object{}, err
	}
	data := make([]byte, h.size)
	if _, err := io.ReadFull(z, data); err != nil {
		return object{}, fmt.Errorf("read an object of %s: %w", at.in.file.Name(), err)
	}
	obj := object{h.kind, data}
	if h.kind == kindOfsDelta || h.kind == kindRefDelta {
		base, err := o.base(at.in, h, depth)
		if err != nil {
			return object{}, err
		}
		if obj.data, err = applyDelta(base.data, data); err != nil {
			return object{}, err
		}
		obj.kind = base.kind
	}
	o.keep(at, obj)
	return obj, nil
}

func (o *objects) base(in *pack, h header, depth int) (object, error) {
	if h.kind == kindOfsDelta {
		return o.packed(place{in, h.base}, depth+1)
	}
	if at, ok := in.find(h.baseID); ok {
		return o.packed(place{in, at}, depth+1)
	}
	return o.read(h.baseID)
}

func (o *objects) keep(at place, obj object) {
	if o.cached += len(obj.data); o.cached > maxCached || o.cache == nil {
		o.cache, o.cached = map[place]object{}, len(obj.data)
	}
	o.cache[at] = obj
}

var errDelta = errors.New("a delta is damaged")

// applyDelta returns the object that results from a delta and its base.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, n := binary.Uvarint(delta)
	if n <= 0 || from != uint64(len(base)) {
		return nil, errDelta
	}
	delta = delta[n:]
	size, n := binary.Uvarint(delta)
	if n <= 0 || size > maxObject {
		return nil, errDelta
	}
	delta = delta[n:]
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) {
				return nil, errDelta
			}
			out, delta = append(out, delta[:op]...), delta[op:]
			continue
		}
		var v [7]byte // four bytes of the offset, and three bytes of the length
		for i := range v {
			if op&(1<<i) != 0 {
				if len(delta) == 0 {
					return nil, errDelta
				}
				v[i], delta = delta[0], delta[1:]
			}
		}
		at := int64(binary.LittleEndian.Uint32(v[:4]))
		length := int64(v[4]) | int64(v[5])<<8 | int64(v[6])<<16
		if length == 0 {
			length = 0x10000
		}
		if at+length > int64(len(base)) || int64(len(out))+length > maxObject {
			return nil, errDelta
		}
		out = append(out, base[at:at+length]...)
	}
	if uint64(len(out)) != size {
		return nil, errDelta
	}
	return out, nil
}

// treeOf returns the id of the tree in a commit.
func treeOf(commit []byte) (id ID, err error) {
	text, ok := bytes.CutPrefix(commit, []byte("tree "))
	if !ok || len(text) < 40 {
		return id, errors.New("a commit names no tree")
	}
	_, err = hex.Decode(id[:], text[:40])
	return id, err
}
