package gitstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"sort"
)

// pack is a file with many objects, and the index of this file.
type pack struct {
	file    *os.File
	ids     []byte // the names of the objects, sorted, 20 bytes each
	offsets []byte // 4 bytes for each object
	large   []byte // the offsets that need more than 31 bits, 8 bytes each
}

// openPack opens a pack. The name has no extension.
func openPack(name string) (*pack, error) {
	idx, err := readBounded(name+".idx", maxFile)
	if err != nil {
		return nil, err
	}
	const head = 8 + 256*4
	if len(idx) < head+40 || !bytes.HasPrefix(idx, []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, fmt.Errorf("%s.idx is not an index of version 2", name)
	}
	n := int(binary.BigEndian.Uint32(idx[head-4:]))
	if len(idx) < head+n*28+40 {
		return nil, fmt.Errorf("%s.idx is too short", name)
	}
	p := &pack{ids: idx[head : head+n*20], offsets: idx[head+n*24 : head+n*28], large: idx[head+n*28 : len(idx)-40]}
	if info, err := os.Stat(name + ".pack"); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s.pack is no file", name)
	}
	p.file, err = os.Open(name + ".pack")
	return p, err
}

func (p *pack) len() int { return len(p.ids) / 20 }

func (p *pack) id(i int) ID { return ID(p.ids[i*20 : i*20+20]) }

// offset returns the offset of the object i in the pack, or -1 if the index is damaged.
func (p *pack) offset(i int) int64 {
	at := binary.BigEndian.Uint32(p.offsets[i*4:])
	if at&(1<<31) == 0 {
		return int64(at)
	}
	if at &^= 1 << 31; int(at)*8+8 > len(p.large) {
		return -1
	}
	return int64(binary.BigEndian.Uint64(p.large[at*8:]))
}

func (p *pack) find(id ID) (int64, bool) {
	i := sort.Search(p.len(), func(i int) bool { return bytes.Compare(p.ids[i*20:i*20+20], id[:]) >= 0 })
	if i == p.len() || p.id(i) != id {
		return 0, false
	}
	return p.offset(i), true
}

// header describes an object in a pack.
type header struct {
	kind   kind
	size   int64 // the size of the inflated data
	body   int64 // the offset of the compressed data
	base   int64 // for a delta, the offset of its base in the same pack
	baseID ID    // for a delta, the name of its base
}

func (p *pack) header(at int64) (h header, err error) {
	var buf [48]byte
	n, err := p.file.ReadAt(buf[:], at)
	if at < 12 || n < 20 { // every object has 20 bytes after it, because the pack ends with its own hash
		return h, fmt.Errorf("%s is too short: %w", p.file.Name(), err)
	}
	i, shift := 1, 4
	h.kind, h.size = kind(buf[0]>>4&7), int64(buf[0]&15)
	for b := buf[0]; b&0x80 != 0; i++ {
		if shift > 53 {
			return h, fmt.Errorf("%s is damaged", p.file.Name())
		}
		b = buf[i]
		h.size |= int64(b&0x7f) << shift
		shift += 7
	}
	switch h.kind {
	case kindOfsDelta:
		back := int64(buf[i] & 0x7f)
		for ; buf[i]&0x80 != 0 && i < 30; i++ {
			back = (back+1)<<7 | int64(buf[i+1]&0x7f)
		}
		i++
		if h.base = at - back; back <= 0 || h.base < 12 {
			return h, fmt.Errorf("%s is damaged", p.file.Name())
		}
	case kindRefDelta:
		i += copy(h.baseID[:], buf[i:])
	}
	h.body = at + int64(i)
	return h, nil
}

// kindOf returns the kind of an object in a pack. It does not read the content.
func (o *objects) kindOf(at place) (kind, error) {
	for range maxChain {
		h, err := at.in.header(at.at)
		if err != nil {
			return 0, err
		}
		switch h.kind {
		case kindOfsDelta:
			at.at = h.base
		case kindRefDelta:
			next, ok := at.in.find(h.baseID)
			if !ok {
				obj, err := o.read(h.baseID)
				return obj.kind, err
			}
			at.at = next
		default:
			return h.kind, nil
		}
	}
	return 0, errDelta
}
