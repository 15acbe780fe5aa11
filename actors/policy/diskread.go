package policy

import (
	"encoding/json"
	"io"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/schemas"
)

// maxReplaced is the size, in bytes, of the largest file that ReadWritten reads.
const maxReplaced = 1 << 20

// unreadError is the reason, in a few words, why nod does not read a file.
type unreadError string

func (e unreadError) Error() string { return string(e) }

const errWhichFile = unreadError("nod does not know which file it is")

// readFile returns the text of the file that a call names.
func (p *Policy) readFile(c *Call, name string) (string, error) {
	if strings.HasSuffix(name, "/") {
		return "", errWhichFile
	}
	loc := c.location()
	full, real, err := placeOf(&loc, name)
	if err != nil {
		return "", err
	}
	loc.LeadsToSecret = p.shell.Secrets.MayLeadFrom(&loc)
	paths := append([]string{full, real}, loc.Follow(full)...)
	for _, at := range append(paths, name) {
		if p.IsSecretFile(at) || p.shell.Secrets.MayBe(at, &loc, false) {
			return "", unreadError("nod does not read files that may hold secrets")
		}
	}
	for _, at := range paths {
		if err := p.mayRead(*c, at); err != nil {
			return "", err
		}
	}
	if strings.Contains("/"+name+"/", "/../") && !strings.HasPrefix(name, "~") { // a program may follow a link before it applies the ".."
		at := name
		if !path.IsAbs(at) {
			at = loc.Dirs[0] + "/" + name
		}
		if other, err := OnDisk(at); err != nil || other != real {
			return "", errWhichFile
		}
	}
	return readText(real)
}

// placeOf returns the full path of the file that a call names, and the file's true path.
func placeOf(loc *pathname.Location, name string) (full, real string, err error) {
	spelled := loc.Spelled(name)
	if len(spelled) != 1 || !path.IsAbs(spelled[0]) {
		return "", "", errWhichFile
	}
	real, err = OnDisk(spelled[0])
	return spelled[0], real, err
}

// mayRead returns an error unless the rules let the agent of a call read the file without a question. nod
// shows the file's text on every channel, so it must not read more than the agent may.
func (p *Policy) mayRead(c Call, file string) error {
	input, err := json.Marshal(map[string]string{"file_path": file})
	if err != nil {
		return err
	}
	c.ToolName, c.ActionType, c.Input = "Read", schemas.ActionFileRead, input
	if v := p.Check(c); v.Effect == Deny || v.Effect == Ask && v.Rule != Default {
		return unreadError("your rules do not let nod read it")
	}
	return nil
}

// readText returns the text of a regular file of at most maxReplaced bytes. It returns an error if a part of
// the path is a symbolic link. It does not wait for a named pipe.
func readText(file string) (string, error) {
	before, err := os.Lstat(file)
	switch {
	case err != nil:
		return "", err
	case !before.Mode().IsRegular():
		return "", unreadError("it is no ordinary file")
	case before.Size() > maxReplaced:
		return "", unreadError("the file is larger than 1 MiB")
	}
	f, err := openPlain(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // an error of Close loses nothing, because the file was only read
	if info, err := f.Stat(); err != nil || !os.SameFile(before, info) {
		return "", unreadError("the file has just been replaced")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxReplaced+1))
	text := string(data)
	switch {
	case err != nil:
		return "", err
	case len(data) > maxReplaced:
		return "", unreadError("the file is larger than 1 MiB")
	case !utf8.Valid(data) || strings.Contains(text, "\x00"):
		return "", unreadError("the file is not text")
	case strings.Contains(text, "PRIVATE KEY-----") || strings.Contains(text, "PRIVATE KEY BLOCK-----"):
		return "", unreadError("the file holds a private key")
	}
	return text, nil
}
