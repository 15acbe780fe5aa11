package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Access is the kind of access that a permission gives.
type Access string

// The kinds of access.
const (
	AccessRead    Access = "read"
	AccessWrite   Access = "write" // access to read and to write
	AccessNetwork Access = "network"
)

// Permission is a parsed permission tag. Its path is absolute. The path may contain symbolic links,
// unless the permission comes from Missing.
type Permission struct {
	Access Access
	Path   string // an absolute path; "" for AccessNetwork
	Host   string // for AccessNetwork: HOST:PORT, or "" for the whole network
}

// ParsePermission reads a tag such as @read:<path>, @write:<path>, @network or
// @network:<host>:<port>. Its errors contain no path, because agents see them.
func ParsePermission(tag string) (Permission, error) {
	kind, dir, _ := strings.Cut(tag, ":")
	switch {
	case tag == "@network":
		return Permission{Access: AccessNetwork}, nil
	case kind == "@network":
		if !hostAndPort.MatchString(dir) {
			return Permission{}, schemas.Errorf(schemas.CodeValidation, "Network permission must be @network or @network:<host>:<port>, in lower case.")
		}
		return Permission{Access: AccessNetwork, Host: dir}, nil
	case kind == "@read":
		return pathPermission(AccessRead, dir, "Read")
	case kind == "@write":
		return pathPermission(AccessWrite, dir, "Write")
	}
	return Permission{}, schemas.Errorf(schemas.CodeValidation, "Permission must be @read:<path>, @write:<path> or @network.")
}

var hostAndPort = lazyregexp.New(`^[a-z0-9][a-z0-9.-]*:[1-9][0-9]{0,4}$`)

func pathPermission(access Access, dir, word string) (Permission, error) {
	if strings.TrimSpace(dir) == "" {
		return Permission{}, schemas.Errorf(schemas.CodeValidation, "%s permission requires a path.", word)
	}
	if err := CheckPath(dir); err != nil {
		return Permission{}, err
	}
	return Permission{Access: access, Path: path.Clean(dir)}, nil
}

// CheckPath returns an error if dir cannot be the path of a permission. It refuses a path with "..", because
// the meaning of ".." depends on the symbolic links before it. It refuses a leading ~, because the meaning of
// ~ depends on the user.
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

// String returns the tag of p.
func (p Permission) String() string {
	if p.Access == AccessNetwork {
		return strings.TrimSuffix("@network:"+p.Host, ":")
	}
	return "@" + string(p.Access) + ":" + p.Path
}

// resolved returns p with its path resolved to a path without symbolic links.
func (p Permission) resolved(resolve Resolver) (Permission, error) {
	if p.Access == AccessNetwork {
		return p, nil
	}
	at, err := resolve(p.Path)
	if err == nil {
		err = CheckPath(at)
	}
	return Permission{Access: p.Access, Path: at}, err
}

// Missing returns those of the permissions perms that the permission set does not include, in the same order.
// It resolves the symbolic links in their paths, because people see the resolved paths and Apply adds them. A
// nil set includes nothing. If a path cannot be resolved, Missing returns an error.
//
// Missing does not resolve links in the set's own directories, because a program that may write beside such a
// directory could have replaced the directory by a link.
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

// Covers reports whether the permission set includes p after the links in the path of p are resolved. If a
// link cannot be resolved, Covers returns false.
func Covers(set *schemas.SessionPermissions, p Permission, resolve Resolver) bool {
	missing, err := Missing(set, []Permission{p}, resolve)
	return err == nil && len(missing) == 0
}

// includes reports whether the permission set includes p. It compares paths without resolving links. The
// set's working directory may be read and written, and every directory that may be written may also be read.
func includes(set *schemas.SessionPermissions, p Permission) bool {
	if set == nil {
		return false
	}
	inside := func(dir string) bool { return pathname.Within(p.Path, dir) }
	switch p.Access {
	case AccessNetwork:
		return set.Network || p.Host != "" && slices.Contains(set.Hosts, p.Host)
	case AccessWrite:
		return inside(set.WorkingDir) || slices.ContainsFunc(set.WriteDirs, inside)
	case AccessRead:
		return inside(set.WorkingDir) || slices.ContainsFunc(set.WriteDirs, inside) || slices.ContainsFunc(set.ReadDirs, inside)
	}
	return false
}

// Apply returns a copy of the permission set with the permissions perms added. It removes no permission. It
// resolves no symbolic links, so the permissions should come from Missing.
func Apply(set schemas.SessionPermissions, perms ...Permission) schemas.SessionPermissions {
	set.ReadDirs, set.WriteDirs = slices.Clone(set.ReadDirs), slices.Clone(set.WriteDirs)
	set.Hosts = slices.Clone(set.Hosts)
	for _, p := range perms {
		switch p.Access {
		case AccessNetwork:
			if p.Host == "" {
				set.Network = true
			} else if !slices.Contains(set.Hosts, p.Host) {
				set.Hosts = append(set.Hosts, p.Host)
			}
		case AccessWrite:
			set.WriteDirs = withDir(set.WriteDirs, p.Path)
			set.ReadDirs = withDir(set.ReadDirs, p.Path)
		case AccessRead:
			set.ReadDirs = withDir(set.ReadDirs, p.Path)
		}
	}
	return set
}

// Held returns all permissions of a session: those that nod's owner has given to the session, which are in set,
// and those of the session's grants. A nil set means none. The caller must leave out grants that have ended.
func Held(set *schemas.SessionPermissions, grants []schemas.StandingAnswer) schemas.SessionPermissions {
	var held schemas.SessionPermissions
	if set != nil {
		held = *set
	}
	for _, g := range grants {
		for _, tag := range g.Permissions {
			if p, err := ParsePermission(tag); err == nil { // nod never grants a tag that cannot be parsed
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

// ExecScope returns the permissions of a command that a session starts. The command may use only the
// session's working directory and the permissions in tags. If the session itself lacks one of them, ExecScope
// returns an error.
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
