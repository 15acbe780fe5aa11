package doctor

import (
	"context"
	"errors"
	"runtime"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/service"
)

// serviceFindings checks the service and the running nod.
func serviceFindings(ctx context.Context, o Options) []Finding {
	if o.Place.URL != "" {
		return []Finding{ok("nod", "it runs elsewhere, at the address in --nats-url or NOD_URL")}
	}
	if at, joined, err := o.Place.Joined(); err != nil {
		return []Finding{failed("nod", err)}
	} else if joined {
		return []Finding{ok("nod", "this machine asks the nod at "+at+", by its invitation")}
	}
	installed, f := theService(ctx, o)
	run, err := bus.ReadRun(o.DataDir)
	switch {
	case errors.Is(err, bus.ErrNotRunning) && installed:
		return []Finding{f, wrong("nod", "nod is not running", "nod service install starts it; the log is "+service.LogFile(o.DataDir))}
	case errors.Is(err, bus.ErrNotRunning):
		return []Finding{f, wrong("nod", "nod is not running", "nod service install, or nod up")}
	case err != nil:
		return []Finding{f, failed("nod", err)}
	}
	return []Finding{f, versions("nod", "the nod that runs on "+run.URL, run.Version, o.Version, "start it again: nod service install, or nod up")}
}

func theService(ctx context.Context, o Options) (installed bool, f Finding) {
	const check = "service"
	manager, err := service.New(runtime.GOOS)
	if err != nil {
		return false, note(check, err.Error(), "")
	}
	s, err := manager.Status(ctx)
	switch {
	case err != nil:
		return false, failed(check, err)
	case !s.Installed:
		return false, note(check, "nod is not started at log-in", "nod service install")
	case s.Running == nil:
		return true, note(check, s.Path+" is there, but the system cannot be asked about it from here", "")
	case !*s.Running:
		return true, wrong(check, s.Path+" is there, but does not run", "nod service install starts it; the log is "+service.LogFile(o.DataDir))
	case s.Note != "":
		return true, note(check, s.Path+" runs", s.Note)
	}
	return true, ok(check, s.Path+" runs")
}
