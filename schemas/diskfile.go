package schemas

// MaxDiskFile bounds a DiskFile in its encoded form, in bytes.
const MaxDiskFile = 16 << 10

// DiskFile describes the file that a call writes, as the engine itself read it when the call was
// asked. It contains only the lines around a change. It is not part of the request or its digest.
type DiskFile struct {
	// New means that there was no file.
	New bool `json:"new,omitempty"`
	// Note says in a few words why the call is not compared with the file. The other fields are
	// then empty.
	Note string `json:"note,omitempty"`
	// Lines is the number of lines of the file, or of the notebook's cell if Cell is set.
	Lines int  `json:"lines,omitempty"`
	Cell  bool `json:"cell,omitempty"`
	// Edits has an element for each edit of the call, in their order. Each one describes the file
	// as the edits before it leave it.
	Edits []DiskEdit `json:"edits,omitempty"`
	// Changes are the differences between the file and the text that a call writes in its place,
	// in the order of the lines. All other lines of that text are the same in the file.
	Changes []DiskChange `json:"changes,omitempty"`
	Later   Later        `json:"-"`
}

// DiskEdit tells where an edit applies in a file. An edit with a Note is not compared with the
// file.
type DiskEdit struct {
	Note  string     `json:"note,omitempty"`
	Count int        `json:"count,omitempty"` // how often the old text occurs; all of them are replaced
	Hunks []DiskHunk `json:"hunks,omitempty"` // the first places, as many as fit
	Later Later      `json:"-"`
}

// DiskHunk is a piece of a file around one or more places of an edit's old text.
type DiskHunk struct {
	Line int `json:"line"` // the number of its first line, from 1
	// Around are the texts before the first place, between the places and after the last one.
	// Joined by the old text they are the file's text, and joined by the new text what the edit
	// makes of it.
	Around []string `json:"around"`
	Later  Later    `json:"-"`
}

// DiskChange is a block of lines of a file that other lines replace.
type DiskChange struct {
	Line    int    `json:"line"`              // the number of the first removed line, or of the line before which lines are added
	Removed string `json:"removed,omitempty"` // the first removed lines; lines with secrets are "[redacted]"
	More    int    `json:"more,omitempty"`    // the number of further removed lines
	Added   int    `json:"added,omitempty"`   // the number of added lines
	Later   Later  `json:"-"`
}
