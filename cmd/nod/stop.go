package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/service"
)

type stopCmd struct{}

// stopsWithin is longer than nod up needs to stop.
const stopsWithin = 30 * time.Second

// Run stops the nod that runs on the data directory, and returns once its process has ended. Pending
// requests stay pending.
func (stopCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if place.URL != "" {
		return errors.New("nod stop is for the nod of this machine: stop other servers and engines on their machines")
	}
	if at, joined, err := place.Joined(); err != nil || joined {
		return errors.Join(err, fmt.Errorf("this machine asks the nod at %s: stop that nod on its machine", at))
	}
	run, err := bus.ReadRun(place.DataDir)
	if err != nil {
		return err
	}
	if err := e.runByService(); err != nil {
		return err
	}
	_, _, done, err := e.desk() // the connection proves that the process with the stored id is nod, and not a later process with the same id
	if err != nil {
		return err
	}
	done()
	process, err := os.FindProcess(run.PID)
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		return fmt.Errorf("stop process %d: %w", run.PID, err)
	}
	for deadline := time.Now().Add(stopsWithin); time.Now().Before(deadline) && e.ctx.Err() == nil; time.Sleep(runPoll / 4) {
		now, err := bus.ReadRun(place.DataDir)
		if errors.Is(err, bus.ErrNotRunning) || err == nil && now.PID != run.PID {
			fmt.Fprintln(e.stdout, "nod has stopped. Pending requests stay pending.")
			return nil
		}
	}
	return fmt.Errorf("process %d was told to stop and still runs: see its log, and nod status", run.PID)
}

// runByService returns an error if a service runs the nod of this data directory, because the service
// would start nod again.
func (e *env) runByService() error {
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	manager, err := service.New(runtime.GOOS)
	if err != nil {
		return nil // nod has no service on this operating system
	}
	command, err := manager.Command()
	if err != nil {
		return err
	}
	i := slices.Index(command, "--data")
	if i < 0 || i+1 >= len(command) || command[i+1] != dir {
		return nil
	}
	if s, err := manager.Status(e.ctx); err != nil || s.Running == nil || !*s.Running {
		return err
	}
	return fmt.Errorf("the service runs this nod, and starts it again whenever it ends: nod service uninstall stops and removes the service (%s)", manager.Path)
}
