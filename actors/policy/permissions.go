package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/schemas"
)

// Access is the kind of access that a permission gives.
type Access string

// The kinds of access.
const (
	AccessRead    Access = "read"
	AccessWrite   Access = "write" // and read
	AccessNetwork Access = "network"
)

// Permission is a parsed permission tag. Its path is absolute; symbolic links in it are
// resolved only if Missing returned the permission.
type Permission struct {
	Access Access
	Path   string // "" for the network
}

// ParsePermission reads a tag: @read:<path>, @write:<path> or @network. Agents are sent its
// errors, so the errors contain no path.
func ParsePermission(tag string) (Permission, error) {
	kind, dir, _ := strings.Cut(tag, ":")
	switch {
	case tag == "@network":
		return Permission{Access: AccessNetwork}, nil
	case kind == "@read":
		return pathPermission(AccessRead, dir, "Read")
	case kind == "@write":
		return pathPermission(AccessWrite, dir, "Write")
	}
	return Permission{}, schemas.Errorf(schemas.CodeValidation, "Permission must be @read:<path>, @write:<path> or @network.")
}

func pathPermission(access Access, dir, word string) (Permission, error) {
	if strings.TrimSpace(dir) == "" {
		return Permission{}, schemas.Errorf(schemas.CodeValidation, "%s permission requires a path.", word)
	}
	if err := CheckPath(dir); err != nil {
		return Permission{}, err
	}
	return Permission{access, path.Clean(dir)}, nil
}

// CheckPath returns an error for a text that cannot be the path of a permission. It refuses
// ".." because its meaning depends on the links before it, and ~ because its meaning depends
// on the reader.
func CheckPath(dir string) error {
	var why string
	switch {
	case !path.IsAbs(dir):
		why = "Path must be absolute."
	case utf8.RuneCountInString(dir) > schemas.MaxPath:
		why = fmt.Sprintf("Path must have at most %d characters.", schemas.MaxPath)
	case !utf8.ValidString(dir) || strings.ContainsFunc(dir, unicode.IsControl):
		why = "Path must not contain control characters."
	case slices.Contains(strings.Split(dir, "/"), ".."):
		why = `Path must not contain "..".`
	default:
		return nil
	}
	return schemas.Errorf(schemas.CodeValidation, "%s", why)
}

// String returns p's tag.
func (p Permission) String() string {
	if p.Access == AccessNetwork {
		return "@network"
	}
	return "@" + string(p.Access) + ":" + p.Path
}

// resolved returns p with its path's links resolved.
func (p Permission) resolved(resolve Resolver) (Permission, error) {
	if p.Access == AccessNetwork {
		return p, nil
	}
	at, err := resolve(p.Path)
	if err == nil {
		err = CheckPath(at)
	}
	return Permission{p.Access, at}, err
}

// Missing returns the permissions of perms that set does not include, in their order, with
// links resolved: a person is shown these true paths, and Apply adds them. A nil set includes
// nothing. If a path cannot be resolved, Missing returns an error.
//
// Links in the directories of set are not resolved again: a program that may write beside
// such a directory could have replaced it by a link.
func Missing(set *schemas.SessionPermissions, perms []Permission, resolve Resolver) ([]Permission, error) {
	var missing []Permission
	for _, p := range perms {
		at, err := p.resolved(resolve)
		if err != nil {
			return nil, err
		}
		if !includes(set, at) && !slices.Contains(missing, at) {
			missing = append(missing, at)
		}
	}
	return missing, nil
}

// Covers reports whether set includes p with its links resolved; false if they cannot be
// resolved.
func Covers(set *schemas.SessionPermissions, p Permission, resolve Resolver) bool {
	missing, err := Missing(set, []Permission{p}, resolve)
	return err == nil && len(missing) == 0
}

// includes reports whether set includes p, by name alone. The working directory may be read
// and written, and a directory that may be written may be read.
func includes(set *schemas.SessionPermissions, p Permission) bool {
	if set == nil {
		return false
	}
	inside := func(dir string) bool { return pathname.Within(p.Path, dir) }
	switch p.Access {
	case AccessNetwork:
		return set.Network
	case AccessWrite:
		return inside(set.WorkingDir) || slices.ContainsFunc(set.WriteDirs, inside)
	case AccessRead:
		return inside(set.WorkingDir) || slices.ContainsFunc(set.WriteDirs, inside) || slices.ContainsFunc(set.ReadDirs, inside)
	}
	return false
}

// Apply returns set with perms added. It removes nothing, and adding a permission that
// set includes changes nothing; set itself is not changed. It resolves no links: perms
// should come from Missing.
func Apply(set schemas.SessionPermissions, perms ...Permission) schemas.SessionPermissions {
	set.ReadDirs, set.WriteDirs = slices.Clone(set.ReadDirs), slices.Clone(set.WriteDirs)
	for _, p := range perms {
		switch p.Access {
		case AccessNetwork:
			set.Network = true
		case AccessWrite:
			set.WriteDirs = withDir(set.WriteDirs, p.Path)
			set.ReadDirs = withDir(set.ReadDirs, p.Path)
		case AccessRead:
			set.ReadDirs = withDir(set.ReadDirs, p.Path)
		}
	}
	return set
}

// Held returns the permissions that a session has: the set that its owner gave it (nil for
// none) and those of its grants, none of which may have ended.
func Held(set *schemas.SessionPermissions, grants []schemas.StandingAnswer) schemas.SessionPermissions {
	var held schemas.SessionPermissions
	if set != nil {
		held = *set
	}
	for _, g := range grants {
		for _, tag := range g.Permissions {
			if p, err := ParsePermission(tag); err == nil { // no other tag was ever granted
				held = Apply(held, p)
			}
		}
	}
	return held
}

func withDir(dirs []string, dir string) []string {
	if CheckPath(dir) != nil || slices.ContainsFunc(dirs, func(d string) bool { return pathname.Within(dir, d) }) {
		return dirs
	}
	return append(dirs, dir)
}

// ExecScope returns the permissions of a command that a session with set starts: its working
// directory and the given tags, which set must include. The command gets nothing else of set.
// If set may lack a tag, ExecScope returns an error and no permissions.
func ExecScope(set schemas.SessionPermissions, tags []string, resolve Resolver) (schemas.SessionPermissions, error) {
	scope := schemas.SessionPermissions{WorkingDir: set.WorkingDir}
	for _, tag := range tags {
		p, err := ParsePermission(tag)
		if err == nil {
			p, err = p.resolved(resolve)
		}
		if err != nil {
			return schemas.SessionPermissions{}, fmt.Errorf("permission %q: %w", tag, err)
		}
		if !includes(&set, p) {
			return schemas.SessionPermissions{}, schemas.Errorf(schemas.CodeForbidden, "Cannot attach permission '%s' - you don't have it.", tag)
		}
		scope = Apply(scope, p)
	}
	return scope, nil
}
