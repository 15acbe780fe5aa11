package contain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// unreviewed is the content of a note. It contains what the review of a command needs if nod
// was killed before its own review.
type unreviewed struct {
	PID      int       `json:"pid"`     // the inner process
	Started  string    `json:"started"` // its start time; a later process with the same id has another one
	Project  string    `json:"project"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Write    []string  `json:"write,omitempty"`
	Before   time.Time `json:"before"`
	Trees    []oldTree `json:"trees"`
	Absent   []string  `json:"absent,omitempty"`
}

// oldTree and oldFinding are the JSON formats of tree and finding.
type oldTree struct {
	Top   string       `json:"top"`
	Dirs  []string     `json:"dirs"`
	Inos  []uint64     `json:"inos"`
	Found []oldFinding `json:"found,omitempty"`
}

type oldFinding struct {
	Path   string `json:"path"`
	Kind   kind   `json:"kind"`
	Dir    bool   `json:"dir,omitempty"`
	Dev    uint64 `json:"dev"`
	Ino    uint64 `json:"ino"`
	Target string `json:"target,omitempty"`
	Leads  string `json:"leads,omitempty"`
}

func (f oldFinding) finding() finding {
	return finding{path: f.Path, kind: f.Kind, dir: f.Dir, dev: f.Dev, ino: f.Ino, target: f.Target, leads: f.Leads}
}

// note calls Spec.Note, unless the command may write nothing.
func (v *view) note(pid int, before time.Time) (over func(), err error) {
	s := v.spec
	if s.Note == nil || s.ReadOnly && len(s.Write) == 0 {
		return func() {}, nil
	}
	u := unreviewed{PID: pid, Started: startTime(pid), Project: s.Project, ReadOnly: s.ReadOnly, Write: s.Write, Before: before, Absent: v.absent}
	linked := false
	for _, t := range v.trees {
		if v.readOnly(t.top) {
			continue
		}
		old := oldTree{Top: t.top, Dirs: t.dirs, Inos: t.inos}
		for _, f := range t.found {
			linked = linked || f.linkToSecret()
			old.Found = append(old.Found, oldFinding{f.path, f.kind, f.dir, f.dev, f.ino, f.target, f.leads})
		}
		u.Trees = append(u.Trees, old)
	}
	data, err := json.Marshal(u)
	if err == nil {
		over, err = s.Note(data, linked)
	}
	if err != nil {
		return func() {}, refused("keep a note of the command, by which its changes can be reviewed if nod is killed: %w", err)
	}
	return over, nil
}

// addOthers reads the notes of other commands. It adds to the view the links to secrets in these notes,
// and the secrets themselves, because another command may have removed such a link.
func (v *view) addOthers() error {
	if v.spec.Recent == nil {
		return nil
	}
	notes, err := v.spec.Recent()
	if err != nil {
		return fmt.Errorf("look for other contained commands: %w", err)
	}
	for _, note := range notes {
		var u unreviewed
		if json.Unmarshal(note, &u) != nil {
			continue // skip the note: a power cut has damaged it, and also ended its command
		}
		for _, t := range u.Trees {
			for _, f := range t.Found {
				if f := f.finding(); f.linkToSecret() {
					v.addLink(f)
				}
			}
		}
	}
	return nil
}

// addLink adds a link to a secret to the tree in which the secret is. It does nothing if no
// tree contains the secret.
func (v *view) addLink(link finding) {
	for i := range v.trees {
		t := &v.trees[i]
		known := slices.ContainsFunc(t.found, func(f finding) bool { return f.path == link.path && f.leads == link.leads })
		if known || !within(link.leads, t.top) {
			continue
		}
		if f, err := inspect(link.leads, secret); err == nil {
			t.found, v.extra = append(t.found, link), append(v.extra, f)
		}
	}
}

// errStillRuns means that nod was killed and that processes of its command still run.
var errStillRuns = errors.New("the command still runs")

// ReviewKilled reviews the changes of a command whose nod was killed before the review. note is the note
// that Run passed to Spec.Note. secret and protected are the functions Spec.Secret and Spec.Protected.
// After any error except ErrDamaged, the caller must call ReviewKilled again later.
func ReviewKilled(note []byte, secret, protected func(string) bool) (project string, r Report, err error) {
	var u unreviewed
	if err := json.Unmarshal(note, &u); err != nil {
		return "", r, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if u.Started != "" && startTime(u.PID) == u.Started {
		return u.Project, r, errStillRuns // the kernel kills the inner process soon, because its nod has ended
	}
	v := &view{
		spec:   &Spec{Project: u.Project, ReadOnly: u.ReadOnly, Write: u.Write, Secret: secret, Protected: protected},
		names:  names{secret: secret, protected: protected},
		absent: u.Absent,
	}
	for _, old := range u.Trees {
		t := tree{top: old.Top, dirs: old.Dirs, inos: old.Inos}
		for _, f := range old.Found {
			t.found = append(t.found, f.finding())
		}
		v.trees = append(v.trees, t)
	}
	v.review(u.Before, &r)
	return u.Project, r, nil
}

// startTime returns the start time of a process in clock ticks, or "" if the process does not run.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the fields begin after the name of the program, which may contain spaces and ends with )
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}
