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

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/internal/lazyregexp"
)

// InstallOptions describe an installation of nod's hooks.
type InstallOptions struct {
	// Settings is the file to change. If it is empty, the file is the host's usual one: the file of the
	// project in the current directory if Project is true, and otherwise the file of the user.
	Settings  string
	Project   bool
	Strict    bool // nod checks every tool call; otherwise, only those about which the host would ask its user
	Uninstall bool
	// KeepEmptyHooks makes an uninstallation leave an empty list of hooks in the file, as it was before
	// the installation.
	KeepEmptyHooks bool
	DryRun         bool // only return the change, so that the caller can show it
	// Program is the absolute path of the nod program that the hook runs, because hosts may run hooks
	// without a PATH. An upgrade of nod should not change the path. An uninstallation does not need
	// Program.
	Program string
	// Turns makes the hooks of Setup.Turns tell people about the end of a turn, and ask for the agent's
	// next prompt. If it is nil, an earlier installation's choice stays.
	Turns *bool
	// HostVersion is the version of the host that reads the file, or empty if it is unknown. If it is
	// empty, Install adds no event of Setup.Newer. If only some versions of the host accept changed
	// inputs, the hook then changes none.
	HostVersion string
	// Args are further arguments of the hook command, such as --on-unavailable deny.
	Args []string
}

// atLeast reports whether the host's version is known, and is not older than version.
func (o InstallOptions) atLeast(version string) bool {
	return o.HostVersion != "" && !Older(o.HostVersion, version)
}

// Install adds nod's hooks to the settings of host, or removes them, and returns the change. A second
// installation changes nothing. Install keeps every other byte of the file. If an earlier installation
// was strict, Install keeps and updates its hooks, so that it never makes an installation less strict.
func Install(host Host, o InstallOptions) (Change, error) {
	path, err := settingsPath(host, o)
	if err != nil {
		return Change{}, err
	}
	change, err := openChange(path)
	if err != nil {
		return Change{}, err
	}
	doc, err := openDocument(host, change.Path, change.Before)
	if o.Uninstall && errors.Is(err, errForeignScript) {
		change.After = change.Before
		return change, nil
	}
	if err != nil {
		return Change{}, err
	}
	if o.Uninstall {
		change.After = change.Before
		if doc.removeHooks(host.Setup.names(), ownCommand(host), o.KeepEmptyHooks) {
			change.After = doc.bytes()
			if host.Setup.Script != "" {
				change.After = []byte("{}\n") // the script would block every call without its settings
			}
		}
	} else {
		if problem, err := checkOthers(doc, host); err != nil || problem != "" {
			return Change{}, cmp.Or(err, errors.New(problem+"; nothing was changed"))
		}
		change.EmptyHooks = doc.hasEmptyHooks()
		if err := install(doc, host, o); err != nil {
			return Change{}, err
		}
		change.After = doc.bytes()
		if change.Changed() {
			change.Note = host.Setup.Note
		}
		if doc.isOff(host.Setup) {
			change.Warning = fmt.Sprintf("%s sets %q: no hook runs until you remove it", change.Path, host.Setup.Off)
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
	home, err := s.home()
	if err != nil {
		return "", fmt.Errorf("find %s's settings: %w; name the file with --settings", host.Agent, err)
	}
	return filepath.Join(home, s.Dir, s.File), nil
}

// home returns the directory in which the host looks for Setup.Dir.
func (s Setup) home() (string, error) {
	if dir := os.Getenv(s.HomeEnv); dir != "" {
		return filepath.Abs(dir)
	}
	return os.UserHomeDir()
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
	strict := func(command string) bool { return ours(command) && !approvedOnly(command) }
	for _, event := range append(slices.Clone(s.Events), s.Strict...) {
		wanted := o.Strict || slices.Contains(s.Events, event)
		entry.command, entry.closed = command, slices.Contains(s.Blocks, event)
		if entry.closed {
			entry.command = byShell + command + orBlock
		}
		if err := doc.setHook(event, entry, strict, wanted); err != nil {
			return err
		}
	}
	if err := installDenied(doc, host, o, entry, command, ours); err != nil {
		return err
	}
	// The hook for a signal decides nothing. It has a short timeout, because the host waits for it.
	entry.command, entry.closed = command, false
	entry.timeout = int64(signalTimeout / s.Unit)
	turns, err := asksForPrompts(doc, host, o)
	if err != nil {
		return err
	}
	for _, event := range slices.Concat(s.Signals, s.Newer) {
		signal := entry
		switch {
		case turns && slices.Contains(s.Turns, event):
			signal.command, signal.timeout = command+" "+TurnsFlag, int64(s.Timeout/s.Unit)
		case slices.Contains(s.Ignored, event):
			signal.command += orNothing
		}
		wanted := slices.Contains(s.Signals, event) || o.atLeast(host.Tested[0])
		if err := doc.setHook(event, signal, ours, wanted); err != nil {
			return err
		}
	}
	return nil
}

// installDenied adds a hook for calls that the host denies by itself, and a hook at the strict events
// that lets approved calls run. A strict installation needs only the first of these, because it already
// has a hook at the strict events.
func installDenied(doc *document, host Host, o InstallOptions, entry hookEntry, command string, ours func(string) bool) error {
	s := host.Setup
	if s.Denied == "" {
		return nil
	}
	known := o.atLeast(host.Tested[0])
	entry.command = command
	if err := doc.setHook(s.Denied, entry, ours, known); err != nil {
		return err
	}
	entry.command = command + " " + ApprovedFlag
	lenient := func(command string) bool { return ours(command) && approvedOnly(command) }
	for _, event := range s.Strict {
		_, groups, err := doc.find(event)
		if err != nil {
			return err
		}
		strict := false
		if groups != nil {
			eachHook(groups, entry.names, func(_ *hujson.Object, command string) bool {
				strict = strict || ours(command) && !approvedOnly(command)
				return true
			})
		}
		if strict && groups != nil {
			eachHook(groups, entry.names, func(_ *hujson.Object, command string) bool { return !lenient(command) })
			continue
		}
		if err := doc.setHook(event, entry, lenient, known); err != nil {
			return err
		}
	}
	return nil
}

// asksForPrompts reports whether the hooks of Setup.Turns tell people about the end of a turn. It
// returns an error if o.Turns is true, but the host's version is unknown or older than Setup.TurnSince.
func asksForPrompts(doc *document, host Host, o InstallOptions) (bool, error) {
	known := o.atLeast(host.Setup.TurnSince)
	switch {
	case len(host.Setup.Turns) == 0:
		return false, nil
	case o.Turns != nil && *o.Turns && !known:
		return false, fmt.Errorf("--turns needs %s %s or newer, and nod found %s: nod does not ask from an older one's hook; nothing was changed",
			host.Agent, host.Setup.TurnSince, cmp.Or(o.HostVersion, "no version (is "+host.Program+" in PATH?)"))
	case o.Turns != nil:
		return *o.Turns, nil
	case o.HostVersion != "" && !known:
		return false, nil
	}
	own, err := hooksUnder(doc, host, host.Setup.Turns)
	return slices.ContainsFunc(own, func(i Installed) bool { return slices.Contains(strings.Fields(i.Command), TurnsFlag) }), err
}

// approvedOnly reports whether a hook command contains ApprovedFlag.
func approvedOnly(command string) bool { return slices.Contains(strings.Fields(command), ApprovedFlag) }

// signalTimeout is the timeout of a hook for an event that only reports that the host has continued.
const signalTimeout = 10 * time.Second

func (s Setup) names() entryNames {
	return entryNames{
		command: cmp.Or(s.CommandField, "command"), timeout: cmp.Or(s.TimeoutField, "timeout"),
		closed: s.ClosedField, flat: s.Flat,
	}
}

// byShell and orBlock come before and after the hook command at an event of Setup.Blocks. Together they
// block the call if nod is killed or its program is missing. They use only syntax that all common
// shells know, because Codex runs hooks with $SHELL. sh starts nod, because fish would ignore the whole
// line if the program is missing. orBlock writes to stderr, because Codex takes exit code 2 for a
// refusal only if stderr is not empty.
const (
	byShell = `/bin/sh -c 'exec "$0" "$@"' `
	orBlock = " || /bin/sh -c 'echo nod: the hook did not let this call through: it is blocked. See nod doctor. >&2; false' || exit 2"
)

// orNothing comes after the hook command at an event of Setup.Ignored. If nod is killed or its program
// is missing, the host then does not notice.
const orNothing = " || echo '{}'"

func hookCommand(host Host, o InstallOptions) (string, error) {
	if o.Program == "" {
		return "", errors.New("the path of the nod program for the hook is missing")
	}
	words := []string{quote(o.Program), "hook", host.Name, timeoutFlag, fmt.Sprintf("%ds", int(host.Setup.Timeout.Seconds()))}
	if host.ChangesSince != "" && o.atLeast(host.ChangesSince) {
		words = append(words, changesFlag)
	}
	for _, a := range o.Args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " "), nil
}

// Flags of nod hook that Install writes. Install writes changesFlag only if the host's version is at
// least Host.ChangesSince.
const (
	timeoutFlag = "--host-timeout"
	changesFlag = "--changes-input"
	// TurnsFlag says that the hook runs at an event of Setup.Turns; see Options.Turns.
	TurnsFlag = "--turns"
	// ApprovedFlag makes a hook ask nod only about calls that a person may have approved after a
	// denial; see Options.ApprovedOnly.
	ApprovedFlag = "--approved-only"
)

// ownCommand returns a function that reports whether Install wrote a command for host. Such a command
// runs a program named nod with the arguments `hook NAME`, or any program with the arguments `hook NAME
// --host-timeout`. It may lack byShell and orBlock, because older versions of nod did not write them.
func ownCommand(host Host) func(command string) bool {
	call := `\s+hook\s+` + regexp.QuoteMeta(host.Name)
	named := regexp.MustCompile(`^(?:` + regexp.QuoteMeta(byShell) + `)?(?:'(?:[^']|'\\'')*[/\\]nod(?:\.exe)?'|"[^"]*[/\\]nod(?:\.exe)?"|(?:\S*[/\\])?nod(?:\.exe)?)` + call + `(?:\s|$)`)
	flagged := regexp.MustCompile(call + `\s+` + timeoutFlag + `\s`)
	return func(command string) bool {
		command = strings.TrimSpace(command)
		return named.MatchString(command) || flagged.MatchString(command)
	}
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./+,:@%=-]+$`)

// quote returns s as one word of a POSIX shell.
func quote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
