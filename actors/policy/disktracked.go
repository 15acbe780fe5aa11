package policy

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy/gitstore"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/secrets"
)

// Tracked lists the files with secrets that the repository of a directory tracks in its index or in any commit.
type Tracked = pathname.Tracked

// maxReading is the time after which a call of Tracked stops reading new commits. The result then has the
// reason in Unread, and later calls read the remaining commits.
const maxReading = 3 * time.Second

// maxRepositories is the number of repositories whose contents are kept in memory.
const maxRepositories = 16

// Repositories finds the secrets that the repositories on this machine track. It keeps its results in memory,
// and afterwards reads only new commits and changed indexes. The zero value is ready to use. Several
// goroutines may use it at once.
type Repositories struct {
	mu    sync.Mutex
	known map[string]*repository // the key is the directory of the repository's git files
}

type repository struct {
	mu      sync.Mutex // locked while a call reads the repository, so that only one call reads it at a time
	history *gitstore.History
	indexes map[string]index // the key is the path of the index file
}

// index holds the entries of one index file that are on the list of secrets.
type index struct {
	size    int64
	written time.Time
	entries []gitstore.Entry
}

// Tracked returns the secrets that the repository of dir tracks in its index or in any commit. If
// dir is in no repository, the list is empty. If nod cannot read all commits or the index, the
// result has the reason in Unread or UnreadIndex.
func (r *Repositories) Tracked(dir string) Tracked {
	top, err := ThisDisk{}.WorkTree(dir)
	if err != nil {
		return Tracked{UnreadIndex: err.Error()}
	}
	t := Tracked{Top: top}
	if t.Dir, err = OnDisk(dir); err != nil {
		return Tracked{UnreadIndex: err.Error()}
	}
	if is, err := isRepository(top); err != nil {
		t.UnreadIndex = err.Error()
		return t
	} else if !is {
		return t
	}
	admin, common := gitStore(top)
	repo := r.of(common)
	repo.mu.Lock()
	defer repo.mu.Unlock()
	if err := repo.history.Read(common, time.Now().Add(maxReading)); err != nil {
		t.Unread = err.Error()
	}
	files := map[string]*pathname.TrackedFile{}
	for _, file := range repo.history.Paths() {
		files[file] = &pathname.TrackedFile{Path: file}
		for id := range repo.history.Found()[file] {
			t.Contents = append(t.Contents, id.String())
		}
	}
	ix, err := repo.index(admin + "/index")
	if err != nil {
		t.UnreadIndex = err.Error()
	}
	for _, e := range ix.entries {
		if files[e.Path] == nil {
			files[e.Path] = &pathname.TrackedFile{Path: e.Path}
		}
		files[e.Path].Indexed = true
		files[e.Path].Changed = files[e.Path].Changed || ix.changed(e, path.Join(top, e.Path))
		t.Contents = append(t.Contents, e.Content.String())
	}
	for _, f := range files {
		f.Changed = f.Changed && f.Indexed
		t.Files = append(t.Files, *f)
	}
	slices.SortFunc(t.Files, func(a, b pathname.TrackedFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(t.Contents)
	return t
}

func (r *Repositories) of(common string) *repository {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[common] == nil {
		if r.known == nil || len(r.known) >= maxRepositories {
			r.known = map[string]*repository{}
		}
		names := secrets.CompileTracked()
		listed := func(file string) bool { return names.Listed("/project/" + file) } // secrets are recognised by full paths; any project directory serves, because only the names below it count
		r.known[common] = &repository{history: gitstore.NewHistory(listed), indexes: map[string]index{}}
	}
	return r.known[common]
}

// index returns the entries of an index file that are on the list of secrets. If the file has not changed
// since an earlier call, it returns that call's entries.
func (repo *repository) index(file string) (index, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return index{}, nil
	}
	if err != nil {
		return index{}, err
	}
	if ix, ok := repo.indexes[file]; ok && ix.size == info.Size() && ix.written.Equal(info.ModTime()) && time.Since(ix.written) > time.Second {
		return ix, nil
	}
	ix := index{size: info.Size(), written: info.ModTime()}
	if err := gitstore.Index(file, repo.history.Lists, func(e gitstore.Entry) { ix.entries = append(ix.entries, e) }); err != nil {
		return index{}, err
	}
	repo.indexes[file] = ix
	return ix, nil
}

// changed reports whether the file at this path may differ from its entry in the index, as git sees it: the
// entry has merge conflicts, or size or time differ. changed is also true if the file's time is not before
// the index's time, because a later change may then have kept size and time.
func (ix *index) changed(e gitstore.Entry, at string) bool {
	info, err := os.Lstat(at)
	return e.Merging || err != nil || info.Size() != int64(e.Size) || !info.ModTime().Equal(e.Time) || !e.Time.Before(ix.written)
}
