package hook

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/agents"
)

// InstallOptions say where and how a hook is installed.
type InstallOptions struct {
	// Settings is the file to change. Where it is empty, it is the host's file
	// in the current directory's project, or else the user's own.
	Settings  string
	Project   bool
	Strict    bool // gate every tool call, not only what the host would ask about
	Uninstall bool
	DryRun    bool // change nothing, only say what would
	// Program is the absolute path of nod that the hook runs, one that outlives
	// upgrades; hosts may run hooks without any PATH. Uninstall needs none.
	Program string
	// HostVersion is the version of the host that reads the file; empty where it is
	// not known.
	HostVersion string
	// Args are added to the command, such as --on-unavailable deny.
	Args []string
}

// Install adds nod's hooks to host's settings, or takes them out, and returns
// what it changed. It is idempotent, keeps every other byte of the file, and
// on an error has changed nothing. An installation never loosens: hooks of an
// earlier strict one stay, brought up to date, until they are uninstalled.
func Install(host Host, o InstallOptions) (Change, error) {
	path, err := settingsPath(host, o)
	if err != nil {
		return Change{}, err
	}
	change, err := open(path)
	if err != nil {
		return Change{}, err
	}
	doc, err := parseDocument(change.Path, change.Before)
	if err != nil {
		return Change{}, err
	}
	if o.Uninstall {
		change.After = change.Before
		if doc.removeHooks(host.Setup.names(), ownCommand(host)) {
			change.After = doc.bytes()
		}
	} else {
		if err := install(doc, host, o); err != nil {
			return Change{}, err
		}
		change.After = doc.bytes()
		if change.Changed() {
			change.Note = host.Setup.Note
		}
		if doc.isTrue(host.Setup.Off) {
			change.Warning = fmt.Sprintf("%s says %q: no hook runs until that is removed", change.Path, host.Setup.Off)
		}
	}
	if o.DryRun {
		return change, nil
	}
	return change, change.Write()
}

func settingsPath(host Host, o InstallOptions) (string, error) {
	s := host.Setup
	if o.Settings != "" {
		return filepath.Abs(o.Settings)
	}
	if o.Project {
		return filepath.Abs(filepath.Join(cmp.Or(s.ProjectDir, s.Dir), s.File))
	}
	if dir := os.Getenv(s.DirEnv); dir != "" {
		return filepath.Abs(filepath.Join(dir, s.File))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find %s's settings: %w; name the file with --settings", host.Agent, err)
	}
	return filepath.Join(home, s.Dir, s.File), nil
}

func install(doc *document, host Host, o InstallOptions) error {
	command, err := hookCommand(host, o)
	if err != nil {
		return err
	}
	ours := ownCommand(host)
	s := host.Setup
	entry := hookEntry{names: s.names(), matcher: s.Matcher, command: command, timeout: int64(s.Timeout / s.Unit)}
	if s.Version != 0 && agents.Member(doc.top, "version") < 0 {
		if err := doc.addMember(doc.top, 1, "version", s.Version); err != nil {
			return err
		}
	}
	for _, event := range append(slices.Clone(s.Events), s.Strict...) {
		wanted := o.Strict || slices.Contains(s.Events, event)
		if entry.command = command; slices.Contains(s.Blocks, event) {
			entry.command += orBlock
		}
		if err := doc.setHook(event, entry, ours, wanted); err != nil {
			return err
		}
	}
	// No host waits for these for long.
	entry.command = command
	entry.timeout = int64(signalTimeout / s.Unit)
	for _, event := range s.Signals {
		if err := doc.setHook(event, entry, ours, true); err != nil {
			return err
		}
	}
	for _, event := range s.Newer {
		known := o.HostVersion != "" && !Older(o.HostVersion, host.Tested[0])
		if err := doc.setHook(event, entry, ours, known); err != nil {
			return err
		}
	}
	return nil
}

// signalTimeout is what a hook is given that only hears how the host went on.
const signalTimeout = 10 * time.Second

func (s Setup) names() entryNames {
	if s.Flat {
		return entryNames{command: "bash", timeout: "timeoutSec", flat: true}
	}
	return entryNames{command: "command", timeout: "timeout"}
}

// orBlock stands behind the command of a hook whose death would let the call run:
// nod was killed, or its program is gone. It is plain enough for the shells that
// users have, since Codex runs hooks by $SHELL; and Codex takes exit code 2 for a
// refusal only if stderr says something.
const orBlock = " || /bin/sh -c 'echo nod: the hook did not let this call through: it is blocked. See nod doctor. >&2; false' || exit 2"

// hookCommand is the shell command that the host runs.
func hookCommand(host Host, o InstallOptions) (string, error) {
	if o.Program == "" {
		return "", errors.New("a hook needs the path of the nod that it runs")
	}
	words := []string{quote(o.Program), "hook", host.Name, timeoutFlag, fmt.Sprintf("%ds", int(host.Setup.Timeout.Seconds()))}
	for _, a := range o.Args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " "), nil
}

const timeoutFlag = "--host-timeout"

// ownCommand recognises the commands that Install writes for host, wherever
// nod was at the time: a program called nod, or nod's own flag behind it. What
// stands behind them (orBlock, or nothing before nod wrote that) does not matter.
func ownCommand(host Host) func(command string) bool {
	call := `\s+hook\s+` + regexp.QuoteMeta(host.Name)
	named := regexp.MustCompile(`^(?:'(?:[^']|'\\'')*[/\\]nod(?:\.exe)?'|"[^"]*[/\\]nod(?:\.exe)?"|(?:\S*[/\\])?nod(?:\.exe)?)` + call + `(?:\s|$)`)
	flagged := regexp.MustCompile(call + `\s+` + timeoutFlag + `\s`)
	return func(command string) bool {
		command = strings.TrimSpace(command)
		return named.MatchString(command) || flagged.MatchString(command)
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./+,:@%=-]+$`)

// quote makes s one word of a POSIX shell.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
