package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/secrets"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/people"
)

const networkTag = "@network:"

// containSpec returns the limits of a contained command: the project, and the permissions in tags. All
// paths must be absolute.
func containSpec(project, dir string, command, tags []string) (contain.Spec, error) {
	names, protected := secrets.Compile(), secrets.CompileProtected()
	s := contain.Spec{
		Project: project, Dir: dir, Command: command, Env: os.Environ(),
		Secret: names.Listed, SecretBelow: names.MayBegin, Protected: protected.Has,
	}
	for _, tag := range tags {
		if host, ok := strings.CutPrefix(tag, networkTag); ok {
			e, err := contain.ParseEndpoint(host)
			if err != nil {
				return s, err
			}
			s.Network = append(s.Network, e)
			continue
		}
		p, err := policy.ParsePermission(tag)
		if err != nil {
			return s, err
		}
		switch p.Access {
		case policy.AccessNetwork:
			s.AnyNetwork = true
		case policy.AccessRead:
			s.Read = append(s.Read, p.Path)
		case policy.AccessWrite:
			s.Write = append(s.Write, p.Path)
		default:
			return s, fmt.Errorf("%s: a contained command can have @read:DIR, @write:DIR, @network:HOST:PORT or @network", tag)
		}
	}
	return s, nil
}

// scratchAge is the time after which the directory of an unused session is removed.
const scratchAge = 7 * 24 * time.Hour

// scratchDir returns the directory for /tmp and for changed caches of toolchains, which the contained
// commands of one session in one project share. It also removes the directories of sessions that were
// unused for scratchAge.
func scratchDir(session, project string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	all := filepath.Join(cache, "nod", "contain")
	sum := sha256.Sum256([]byte(session + "\x00" + project))
	dir := filepath.Join(all, hex.EncodeToString(sum[:8]))
	entries, _ := os.ReadDir(all)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > scratchAge && e.Name() != filepath.Base(dir) {
			_ = os.RemoveAll(filepath.Join(all, e.Name()))
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	return dir, os.Chtimes(dir, now, now)
}

// contained runs the command in a container, and prints the accesses that the kernel refused.
func (c *execCmd) contained(e *env) error {
	args, err := commandAfter(c.Command)
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	if cwd, err = filepath.EvalSymlinks(cwd); err != nil {
		return err
	}
	project := c.Project
	if project == "" {
		project = projectAround(cwd)
	} else if project, err = filepath.EvalSymlinks(project); err != nil {
		return err
	}
	s, err := containSpec(project, cwd, args, c.Permission)
	if err != nil {
		return err
	}
	if err := e.keepNotes(&s); err != nil {
		return err
	}
	s.ReadOnly = c.ReadOnly
	s.AllowLandlockAlone = c.AllowLandlockAlone
	s.Limits = contain.Limits{Memory: c.MemoryMB << 20, Processes: c.Processes, Time: c.Time}
	if c.Session != "" {
		if s.Scratch, err = scratchDir(c.Session, project); err != nil {
			return err
		}
	}
	if e.ctx.Err() != nil {
		return errors.New("stopped before the command ran")
	}
	// The context must outlive e.ctx, because the command gets the signals that end e.ctx and handles
	// them itself.
	report, err := contain.Run(context.WithoutCancel(e.ctx), s)
	if err != nil {
		return err
	}
	e.printContained(report, c.Time, "nod exec --contain --permission "+networkTag+"%s -- COMMAND", " --permission "+networkTag)
	if report.ExitCode != 0 {
		return exit(report.ExitCode)
	}
	return nil
}

// printContained prints the accesses that the kernel refused to a contained command, and the command
// with which the user can ask for them. grant is the text of that command, with %s in place of the
// hosts, and join is the text between two hosts.
func (e *env) printContained(r contain.Report, limit time.Duration, grant, join string) {
	if r.TimedOut {
		fmt.Fprintf(e.stderr, "nod: the command was killed after %s\n", limit)
	}
	asked := make([]string, 0, len(r.Refused))
	for _, f := range r.Refused {
		if f.Reason != "" {
			fmt.Fprintf(e.stderr, "nod: no connection to %s: it %s\n", people.Line(f.String()), people.Line(f.Reason))
		} else if !slices.Contains(asked, f.String()) {
			asked = append(asked, people.Line(f.String()))
		}
	}
	if len(asked) > 0 {
		fmt.Fprintf(e.stderr, "nod: the command could not reach %s, which is not granted; to get it: %s\n", strings.Join(asked, ", "), fmt.Sprintf(grant, strings.Join(asked, join)))
	}
	if names := unasked(r); len(names) > 0 {
		shown := names[:min(len(names), maxNamed)]
		fmt.Fprintf(e.stderr, "nod: the command looked up %s%s; only programs that use the proxy in http_proxy reach hosts, and only granted ones; to get one: %s\n",
			people.Line(strings.Join(shown, ", ")), more(len(names)-len(shown)), fmt.Sprintf(grant, "HOST:PORT"))
	}
	if len(r.Undone) > 0 {
		fmt.Fprintf(e.stderr, "nod: the command made files that other programs would obey, so nod moved them to %s: %s\n", people.Line(r.UndoneTo), people.Line(strings.Join(r.Undone, ", ")))
	}
}

// maxNamed is the largest number of host names in one line.
const maxNamed = 8

// unasked returns the host names that a contained command looked up without asking the proxy to connect
// to them.
func unasked(r contain.Report) []string {
	return slices.DeleteFunc(slices.Clone(r.LookedUp), func(name string) bool {
		return slices.ContainsFunc(r.Refused, func(f contain.RefusedHost) bool { return f.Host == name })
	})
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// projectAround returns the root of the git work tree that contains dir. Without a work tree it
// returns dir.
func projectAround(dir string) string {
	for at := dir; at != "/"; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return dir
}
