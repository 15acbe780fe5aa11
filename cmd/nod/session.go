package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type sessionCmd struct {
	Show sessionShowCmd `cmd:"" help:"Show a session."`
	Set  sessionSetCmd  `cmd:"" help:"Change a session."`
}

type sessionShowCmd struct {
	Session string `arg:"" help:"The session's id."`
	JSON    bool   `name:"json" help:"Print one JSON object."`
}

func (c *sessionShowCmd) Run(e *env) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	s, err := owner.Session(ctx, c.Session)
	if err != nil {
		return err
	}
	if err := e.printSession(s, c.JSON); err != nil || c.JSON {
		return err
	}
	return e.printRuns(c.Session)
}

// printRuns prints a summary of the session's contained runs, if there are any.
func (e *env) printRuns(session string) error {
	ctx, d, done, err := e.desk()
	if err != nil {
		return err
	}
	defer done()
	var runs people.RunTally
	if err := d.EachDecided(ctx, session, runs.Add); err != nil {
		return err
	}
	if text := runs.Text(); text != "" {
		fmt.Fprintf(e.stdout, "ran      %s\n", text)
	}
	return nil
}

type sessionSetCmd struct {
	Session    string         `arg:"" help:"The session's id."`
	WorkingDir *string        `name:"working-dir" placeholder:"DIR" help:"The directory that the session may read and write."`
	Read       []string       `sep:"none" placeholder:"PATH" help:"Another path that it may read; repeatable; an empty path removes all."`
	Write      []string       `sep:"none" placeholder:"PATH" help:"Another path that it may read and write; repeatable; an empty path removes all."`
	Network    *bool          `negatable:"" help:"Whether it may use the network."`
	Unmanaged  bool           `help:"Remove the session's permissions: the rules alone decide, unless another flag sets new ones."`
	Background *bool          `negatable:"" help:"Whether no person watches the session, so that its questions go to another session."`
	Timeout    *time.Duration `placeholder:"D" help:"How long its requests wait, such as 10m; 0 means as in the settings."`
	JSON       bool           `name:"json" help:"Print one JSON object."`
}

// Run changes a session. A property whose flag is absent keeps its value.
func (c *sessionSetCmd) Run(e *env) error {
	change, err := c.change()
	if err != nil {
		return err
	}
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	s, err := owner.ChangeSession(ctx, change)
	if err != nil {
		return err
	}
	return e.printSession(s, c.JSON)
}

func (c *sessionSetCmd) change() (schemas.SessionChange, error) {
	change := schemas.SessionChange{SessionID: c.Session, Background: c.Background, Unmanaged: c.Unmanaged}
	if c.Timeout != nil {
		if *c.Timeout < 0 || *c.Timeout > schemas.MaxTimeout || *c.Timeout%time.Second != 0 {
			return change, fmt.Errorf("--timeout is %s: use whole seconds, up to %s", *c.Timeout, schemas.FormatDuration(schemas.MaxTimeout))
		}
		seconds := int(*c.Timeout / time.Second)
		change.TimeoutSeconds = &seconds
	}
	var err error
	if change.Permissions, err = c.permissions(); err != nil {
		return change, err
	}
	if change.TimeoutSeconds == nil && change.Background == nil && change.Permissions == nil && !change.Unmanaged {
		return change, errors.New("nothing to set: name --working-dir, --read, --write, --network, --background or --timeout")
	}
	return change, nil
}

// permissions returns the change that the flags make to the session's permissions, or nil if
// they make none.
func (c *sessionSetCmd) permissions() (*schemas.PermissionsChange, error) {
	change := schemas.PermissionsChange{Network: c.Network}
	if c.WorkingDir != nil {
		dirs, err := trueDirs("--working-dir", []string{*c.WorkingDir})
		if err != nil {
			return nil, err
		}
		dir := strings.Join(dirs, "") // an empty flag removes the session's working directory
		change.WorkingDir = &dir
	}
	for _, named := range []struct {
		flag  string
		paths []string
		into  **[]string
	}{{"--read", c.Read, &change.ReadDirs}, {"--write", c.Write, &change.WriteDirs}} {
		if named.paths == nil {
			continue
		}
		dirs, err := trueDirs(named.flag, named.paths)
		if err != nil {
			return nil, err
		}
		*named.into = &dirs
	}
	if change == (schemas.PermissionsChange{}) {
		return nil, nil
	}
	return &change, nil
}

// trueDirs resolves the paths of a flag to absolute paths without symbolic links. It drops empty
// paths.
func trueDirs(flag string, paths []string) ([]string, error) {
	dirs := []string{}
	for _, p := range slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == "" }) {
		if strings.HasPrefix(p, "~") {
			return nil, fmt.Errorf("%s %q: %w", flag, p, policy.CheckPath(p))
		}
		if !strings.HasPrefix(p, "/") {
			cwd, err := os.Getwd()
			if err != nil {
				return nil, fmt.Errorf("find the current directory: %w", err)
			}
			p = cwd + "/" + p
		}
		dir, err := policy.OnDisk(p)
		if err == nil {
			err = policy.CheckPath(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

func (e *env) printSession(s schemas.Session, asJSON bool) error {
	if asJSON {
		return e.printJSON(s)
	}
	agent, timeout := s.Agent, "as in the settings"
	if agent == "" {
		agent = "(none: the session has had no request yet)"
	}
	if s.TimeoutSeconds > 0 {
		timeout = schemas.FormatDuration(time.Duration(s.TimeoutSeconds) * time.Second)
	}
	fmt.Fprintf(e.stdout, "session  %s\nagent    %s\ntimeout  %s\nsince    %s\n", s.SessionID, people.Line(agent), timeout, s.CreatedAt.Local().Format(time.DateTime))
	if s.Background {
		fmt.Fprintln(e.stdout, "kind     background")
	}
	if s.Uncontained {
		fmt.Fprintln(e.stdout, "host     ran a call without its container: no call of this session runs contained any more")
	}
	if s.Permissions == nil {
		fmt.Fprintln(e.stdout, "holds    no permissions of its own: the rules and grants decide")
	} else {
		for _, line := range permissionLines(s.Permissions) {
			fmt.Fprintf(e.stdout, "holds    %s\n", people.Line(line))
		}
	}
	for i := range s.Grants {
		if g := &s.Grants[i]; g.Live(time.Now()) {
			fmt.Fprintf(e.stdout, "%-8s %s%s\n", map[bool]string{true: "denied", false: "granted"}[g.Effect == schemas.EffectDeny], people.DescribeStanding(g, time.Now()).Covers, people.ScopeAndTerm(g))
		}
	}
	return nil
}

func permissionLines(set *schemas.SessionPermissions) []string {
	var lines []string
	if set.WorkingDir != "" {
		lines = append(lines, set.WorkingDir+" (working directory)")
	}
	for _, dir := range set.ReadDirs {
		lines = append(lines, "@read:"+dir)
	}
	for _, dir := range set.WriteDirs {
		lines = append(lines, "@write:"+dir)
	}
	if set.Network {
		lines = append(lines, "@network")
	}
	for _, host := range set.Hosts {
		lines = append(lines, "@network:"+host)
	}
	if len(lines) == 0 {
		return []string{"nothing"}
	}
	return lines
}
