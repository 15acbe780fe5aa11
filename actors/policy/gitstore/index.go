package gitstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// Entry is a file in the index of a work tree.
type Entry struct {
	Path    string // relative to the top of the work tree
	Content ID
	Merging bool // the file has conflicts
	Size    uint32
	Time    time.Time // the file's modification time at git's last comparison
}

// Index calls the function each with every file of an index for which the function listed returns true. It
// returns an error if it cannot read the whole index. It cannot read an index that is split over two files.
func Index(file string, listed func(path string) bool, each func(Entry)) error {
	data, err := readBounded(file, maxFile)
	if err != nil {
		return err
	}
	damaged := fmt.Errorf("%s is no index that nod can read", file)
	if len(data) < 32 || string(data[:4]) != "DIRC" {
		return damaged
	}
	version, n := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return damaged
	}
	rest, name := data[12:len(data)-20], []byte(nil)
	for range n {
		if len(rest) < 64 {
			return damaged
		}
		entry := rest
		flags, head := binary.BigEndian.Uint16(entry[60:]), 62
		if version > 2 && flags&0x4000 != 0 {
			head = 64
		}
		rest = rest[head:]
		if version == 4 {
			cut, size := stripped(rest)
			if size == 0 || cut > len(name) {
				return damaged
			}
			rest, name = rest[size:], name[:len(name)-cut]
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return damaged
		}
		name = append(name, rest[:end]...)
		next := end + 1
		if version < 4 {
			next = (head+end+8)/8*8 - head
		}
		if next > len(rest) {
			return damaged
		}
		rest = rest[next:]
		if listed(string(name)) {
			each(Entry{
				Path: string(name), Content: ID(entry[40:60]), Merging: flags&0x3000 != 0, Size: binary.BigEndian.Uint32(entry[36:]),
				Time: time.Unix(int64(binary.BigEndian.Uint32(entry[8:])), int64(binary.BigEndian.Uint32(entry[12:]))),
			})
		}
	}
	for len(rest) >= 8 { // extensions follow the files
		size := binary.BigEndian.Uint32(rest[4:])
		if string(rest[:4]) == "link" || int64(size) > int64(len(rest)-8) {
			return damaged
		}
		rest = rest[8+size:]
	}
	return nil
}

// stripped reads a number from an index of version 4, in which a name may begin like the previous
// name. The result cut is this number: how many bytes to remove at the previous name's end. The
// result size is the length of the number's bytes, or 0 if they are damaged.
func stripped(data []byte) (cut, size int) {
	for i, b := range data[:min(len(data), 4)] {
		if i > 0 {
			cut++
		}
		cut = cut<<7 | int(b&0x7f)
		if b&0x80 == 0 {
			return cut, i + 1
		}
	}
	return 0, 0
}
