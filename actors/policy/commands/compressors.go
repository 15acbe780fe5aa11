package commands

import (
	"sync"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

type Compressor struct {
	Keeps bool // the program keeps its input files unless a flag says otherwise
	list  *Command
}

// Outputs compares a command's words with its harmless flags. It returns the files that the command
// writes, and the reason to ask, or "". With a harmless flag the command does not delete or
// overwrite files, and reads no file names from a file.
func (c Compressor) Outputs(words []string) (writes []string, why string) {
	if c.list == nil {
		return nil, "is a compressor whose flags nod does not know"
	}
	a, why := c.list.parse("", word.Literals(words))
	for _, f := range a.flags {
		if f.name == "o" {
			writes = append(writes, f.value)
		}
	}
	return writes, why
}

// Compressors returns the programs that compress files, by name. The caller must not change the
// map.
var Compressors = sync.OnceValue(func() map[string]Compressor {
	lists := map[string]*Command{
		"gzip":  {short: "acdhklLnNqrtvV123456789", value: "bS", long: "ascii stdout to-stdout decompress uncompress help keep list license no-name name quiet recursive rsyncable test verbose version fast best suffix:"},
		"bzip2": {short: "dzktcqvLVs123456789h", long: "decompress compress keep test stdout quiet verbose license version small fast best help"},
		"xz":    {short: "zdtlkceQqvhHV0123456789", value: "TMF", long: "compress decompress uncompress test list keep stdout to-stdout extreme threads: memlimit: memlimit-compress: memlimit-decompress: no-adjust quiet verbose no-warn robot info-memory help long-help version single-stream no-sparse format: check: ignore-check fast best"},
		"zstd":  {short: "dlktcvqhHVC0123456789", value: "oD", tail: "TMB", long: "decompress uncompress compress keep list test stdout ultra long= threads: single-thread adaptive= memory: fast= check no-check no-dictID content-size no-content-size verbose quiet no-progress progress help version rsyncable auto-threads: format: sparse no-sparse pass-through no-pass-through"},
		"lz4":   {short: "dztckvqhHV123456789", long: "decompress compress test stdout keep list verbose quiet version help multiple best fast= content-size no-frame-crc no-sparse sparse favor-decSpeed"},
	}
	for name, l := range lists {
		if l.operands = unlimited; name == "lz4" {
			l.operands = 1 // the second operand of lz4 is the file to write
		}
	}
	compile(lists)
	out := map[string]Compressor{}
	for _, family := range []struct {
		list  string
		keeps bool
		names []string
	}{
		{"gzip", false, []string{"gzip", "gunzip", "pigz", "unpigz"}}, {"bzip2", false, []string{"bzip2", "bunzip2"}}, {"xz", false, []string{"xz", "unxz", "lzma", "unlzma"}},
		{"zstd", true, []string{"zstd", "unzstd", "zstdmt"}}, {"lz4", true, []string{"lz4", "unlz4", "lz4c"}}, {"", false, []string{"compress", "uncompress", "lzip", "lzop", "brotli", "pzstd", "pbzip2", "lbzip2", "plzip", "rzip", "lrzip", "gzexe", "bzexe", "zforce", "znew"}},
	} {
		for _, name := range family.names {
			out[name] = Compressor{family.keeps, lists[family.list]}
		}
	}
	return out
})
