package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// private lists glob patterns for the files in the data directory that other users must not read or
// write.
var private = []string{".", "keys", "keys/*", "nats", "settings.json", "tokens.json", "logs", "hooks", "replies", "web", "web/*", "http", "http/*", "mcp-token", "acp-token", "tls", "tls/*", "backups", "waiting"}

func files(dataDir string) []Finding {
	const check = "files"
	info, err := os.Stat(dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{note(check, "there is no data directory "+dataDir+" yet", "nod up makes it; or name another with --data")}
	case err != nil:
		return []Finding{wrong(check, "the data directory cannot be read: "+err.Error(), "name another with --data")}
	case !info.IsDir():
		return []Finding{wrong(check, dataDir+" is no directory", "name another with --data")}
	}
	var found []Finding
	for _, pattern := range private {
		paths, _ := filepath.Glob(filepath.Join(escapeGlob(dataDir), pattern)) // Glob fails only for an invalid pattern
		for _, path := range paths {
			if f, exposed := exposed(check, path); exposed {
				found = append(found, f)
			}
		}
	}
	if len(found) == 0 {
		return []Finding{ok(check, dataDir+" is for its owner alone")}
	}
	return found
}

// exposed returns a finding if other users have too much access to a file. Other users may read but not
// write the settings, which are no secret.
func exposed(check, path string) (Finding, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return failed(check, fmt.Errorf("look at %s: %w", path, err)), true
	}
	open, fix := fs.FileMode(0o077), "chmod go-rwx "+path
	if name := filepath.Base(path); name == "settings.json" || name == "tokens.json" {
		open, fix = 0o022, "chmod go-w "+path
	}
	if runtime.GOOS == "windows" || info.Mode().Perm()&open == 0 {
		return Finding{}, false
	}
	return wrong(check, fmt.Sprintf("other users may access %s (mode %04o)", path, info.Mode().Perm()), fix), true
}

// escapeGlob returns a pattern that matches only the given path.
func escapeGlob(path string) string {
	var out []byte
	for i := range len(path) {
		if c := path[i]; c == '*' || c == '?' || c == '[' || c == '\\' && runtime.GOOS != "windows" {
			out = append(out, '\\')
		}
		out = append(out, path[i])
	}
	return string(out)
}
