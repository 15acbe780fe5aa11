package schemas

// MaxDiskFile is the greatest size of an encoded DiskFile, in bytes.
const MaxDiskFile = 16 << 10

// DiskFile describes the file that a call would write, as it was when the engine got the request. It
// contains only lines around the change. It is not part of the request or of the request's digest.
type DiskFile struct {
	// New means that the file did not exist.
	New bool `json:"new,omitempty"`
	// Note is a short reason why nod did not compare the call with the file. If Note is set, all other
	// fields are empty.
	Note string `json:"note,omitempty"`
	// Lines is the number of lines of the file or, if Cell is set, of the notebook's cell.
	Lines int  `json:"lines,omitempty"`
	Cell  bool `json:"cell,omitempty"`
	// Edits has an element for each edit of the call, in order. Each element describes the file as it is
	// after all earlier edits.
	Edits []DiskEdit `json:"edits,omitempty"`
	// Changes are the differences between the file's text and the text with which the call replaces it,
	// in the order of the lines. Lines that are in no change are the same in both texts.
	Changes []DiskChange `json:"changes,omitempty"`
	Later   Later        `json:"-"`
}

// DiskEdit says where an edit applies in a file. If Note is set, nod did not compare the edit with the
// file.
type DiskEdit struct {
	Note  string     `json:"note,omitempty"`
	Count int        `json:"count,omitempty"` // how often the file has the old text; the edit replaces every occurrence
	Hunks []DiskHunk `json:"hunks,omitempty"` // the first places with the old text, as many as fit
	Later Later      `json:"-"`
}

// DiskHunk is a piece of a file around one or more occurrences of an edit's old text.
type DiskHunk struct {
	Line int `json:"line"` // the number of the piece's first line, counted from 1
	// Around has the texts before, between and after the occurrences of the old text. Joined by the old
	// text, they give this piece of the file. Joined by the new text, they give the piece as the edit
	// leaves it.
	Around []string `json:"around"`
	Later  Later    `json:"-"`
}

// DiskChange is a block of lines of a file that other lines replace.
type DiskChange struct {
	Line    int    `json:"line"`              // the number of the first removed line, or of the line before which lines are added
	Removed string `json:"removed,omitempty"` // the first of the removed lines; a line with a secret is "[redacted]"
	More    int    `json:"more,omitempty"`    // the number of further removed lines
	Added   int    `json:"added,omitempty"`   // the number of added lines
	Later   Later  `json:"-"`
}
