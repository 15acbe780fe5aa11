package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nodbus/nod/cmd/nod/internal/folders"
	"github.com/nodbus/nod/cmd/nod/internal/installs"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// hooks checks every agent program on this machine, and every settings file in which nod's hook was
// installed.
func hooks(ctx context.Context, o Options) []Finding {
	remembered, err := installs.List(o.DataDir)
	if err != nil {
		return []Finding{failed("hooks", err)}
	}
	var found []Finding
	for _, host := range hook.Hosts() {
		h := hostCheck{Options: o, host: host, check: "hook " + host.Name}
		found = append(found, h.all(ctx, remembered)...)
	}
	if len(found) == 0 {
		return []Finding{note("hooks", "nod found no agent program that it has a hook for", "nod install --help lists them; any script can use nod ask")}
	}
	return found
}

type hostCheck struct {
	Options
	host  hook.Host
	check string
}

func (h *hostCheck) all(ctx context.Context, remembered []installs.Install) []Finding {
	own, err := hook.Inspect(h.host, hook.InstallOptions{})
	if err != nil {
		return []Finding{failed(h.check, err)}
	}
	var found []Finding
	places := 0
	if len(own.Hooks) > 0 {
		places++
		found = append(found, h.file(ctx, own)...)
	}
	var since time.Time
	for _, in := range remembered {
		if in.Agent != h.host.Name {
			continue
		}
		if in.At.After(since) {
			since = in.At
		}
		if in.Path == own.Path && len(own.Hooks) > 0 {
			continue
		}
		places++
		found = append(found, h.remembered(ctx, in)...)
	}
	switch {
	case places == 0 && h.host.Present():
		return []Finding{note(h.check, h.host.Agent+" does not ask nod", "nod install "+h.host.Name)}
	case places == 0:
		return nil
	}
	return append(append(found, h.project()...), h.ran(since), h.tested(ctx))
}

// project checks whether a file of the project in the current directory turns the hooks off.
func (h *hostCheck) project() []Finding {
	dir, err := os.Getwd()
	if err != nil {
		return nil // the current directory is gone, and so is its project
	}
	problem, err := h.host.OffInProject(dir)
	switch {
	case err != nil:
		return []Finding{failed(h.check, err)}
	case problem != "":
		return []Finding{wrong(h.check, problem, "remove that")}
	}
	return nil
}

// remembered checks a settings file from the list of installations.
func (h *hostCheck) remembered(ctx context.Context, in installs.Install) []Finding {
	if _, err := os.Stat(in.Path); err != nil {
		return []Finding{note(h.check, "the hook was installed in "+in.Path+", which is gone", "")}
	}
	at, err := hook.Inspect(h.host, hook.InstallOptions{Settings: in.Path})
	switch {
	case err != nil:
		return []Finding{failed(h.check, err)}
	case len(at.Hooks) == 0:
		return []Finding{wrong(h.check, "the hook is gone from "+in.Path, "nod install "+h.host.Name+" --settings "+in.Path+", or with --uninstall if that was meant")}
	}
	return h.file(ctx, at)
}

// file checks the hooks in one settings file.
func (h *hostCheck) file(ctx context.Context, at hook.Inspection) []Finding {
	if at.Off != "" {
		return []Finding{wrong(h.check, fmt.Sprintf("%s says %q, so that no hook runs", at.Path, at.Off), "remove that")}
	}
	for _, installed := range at.Hooks {
		if f, bad := h.program(at.Path, installed.Program()); bad {
			return []Finding{f}
		}
	}
	found := h.tryHooks(ctx, at)
	switch h.host.Name {
	case hook.Codex().Name:
		found = append(found, codexTrust(h.check, at)...)
	case hook.OpenClaw().Name:
		found = append(found, pluginLoads(h.check, at)...)
	}
	if problem, err := h.host.OffBy(at.Path); err != nil {
		found = append(found, failed(h.check, err))
	} else if problem != "" {
		found = append(found, wrong(h.check, problem, ""))
	}
	return found
}

// tryHooks makes a test call of every hook in a file. It calls the hook in the same way as the agent
// program.
func (h *hostCheck) tryHooks(ctx context.Context, at hook.Inspection) (found []Finding) {
	try, again := h.Try, "nod install "+h.host.Name
	if try == nil {
		try = func(ctx context.Context, host hook.Host, i hook.Installed) error { return host.Probe(ctx, i) }
	}
	for _, i := range at.Hooks {
		if !h.host.BlocksWhenGone(i) {
			found = append(found, wrong(h.check, fmt.Sprintf("the hook for %s in %s lets calls run if nod is killed or gone", i.Event, at.Path), again))
		}
		if err := try(ctx, h.host, i); err != nil {
			found = append(found, wrong(h.check, fmt.Sprintf("the hook for %s in %s failed a test call: %s", i.Event, at.Path, oneLine(err)), "see whether nod is running, then "+again))
		}
	}
	if trusted, err := folders.Trusts(h.host, at.Path); err == nil && !trusted {
		found = append(found, wrong(h.check, fmt.Sprintf("%s does not trust the folder of %s, so that no hook of it runs", h.host.Agent, at.Path), "start "+h.host.Program+" there and agree to trust it"))
	}
	if len(found) == 0 {
		found = append(found, ok(h.check, h.host.Agent+" asks nod, by "+at.Path+": a test call was refused, as it must be"))
	}
	if unasked := h.host.Unasked(at); unasked != "" {
		found = append(found, note(h.check, at.Path+": "+unasked, "nod install "+h.host.Name+" --strict"))
	}
	return found
}

// program checks that a hook's program can be run.
func (h *hostCheck) program(path, program string) (f Finding, bad bool) {
	again := "nod install " + h.host.Name
	switch {
	case program == "":
		return Finding{}, false // the user wrote the command line, so nod does not know its program
	case !filepath.IsAbs(program):
		return note(h.check, fmt.Sprintf("the hook in %s runs %q, which hosts without a PATH do not find", path, program), again), true
	}
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return wrong(h.check, fmt.Sprintf("the hook in %s runs %s, which is not there", path, program), again), true
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return wrong(h.check, fmt.Sprintf("the hook in %s runs %s, which cannot be run", path, program), again), true
	}
	return Finding{}, false
}

// ran returns a finding about the agent program's last run of the hook. The finding is a note if the
// hook has not run since the installation.
func (h *hostCheck) ran(since time.Time) Finding {
	at, version, err := installs.LastRan(h.DataDir, h.host.Name)
	switch {
	case err != nil:
		return failed(h.check, err)
	case at.IsZero() || at.Before(since):
		return note(h.check, h.host.Agent+" has not run the hook since it was installed", "have it do something that it asks about; if this stays, start it again, as it reads its settings when it starts")
	}
	what := fmt.Sprintf("%s ran the hook %s ago; the hook", h.host.Agent, schemas.FormatRoughly(time.Since(at)))
	return versions(h.check, what, version, h.Version, "nod install "+h.host.Name)
}

// tested returns a finding about the agent program's version. The finding is a note if nod was not
// tested with that version.
func (h *hostCheck) tested(ctx context.Context) Finding {
	known := h.host.Tested
	if len(known) == 0 {
		return note(h.check, "nod was not run with "+h.host.Agent+": it follows the documents of its hooks", "have it try a harmless command first, and see that nod asks")
	}
	with := h.host.Agent + " " + strings.Join(known, " and ")
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	version, err := h.host.Version(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return note(h.check, h.host.Program+" is not in PATH, so that its version is not known", "nod was tested with "+with)
	case err != nil:
		return note(h.check, h.host.Program+" --version tells no version", "nod was tested with "+with)
	case hook.Older(version, known[0]):
		return note(h.check, h.host.Agent+" "+version+" is older than those that nod was tested with", "nod was tested with "+with)
	case hook.Older(known[len(known)-1], version):
		return note(h.check, h.host.Agent+" "+version+" is newer than those that nod was tested with", "nod was tested with "+with+"; nod doctor --prompt and a first question show that it works")
	}
	return ok(h.check, h.host.Agent+" "+version+" is a version that nod was tested with, or between two such versions")
}

// pluginLoads checks that OpenClaw's settings load nod's plugin.
func pluginLoads(check string, at hook.Inspection) []Finding {
	change, err := hook.LoadPlugin(at.Path, false)
	switch {
	case err != nil:
		return []Finding{failed(check, err)}
	case change.Changed():
		return []Finding{wrong(check, "OpenClaw does not load nod's plugin by "+change.Path, "nod install openclaw")}
	case change.Warning != "":
		return []Finding{wrong(check, change.Warning, "")}
	}
	return []Finding{ok(check, "OpenClaw loads nod's plugin")}
}
