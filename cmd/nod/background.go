package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/service"
)

// upWithin is the longest time that nod up -d waits for the nod that it has started.
const upWithin = 40 * time.Second

// startInBackground starts a second process with the same nod up command, in a process session of its
// own, so that it outlives the terminal. The function returns once the new process answers. The new
// process writes its log to a file.
func (c *upCmd) startInBackground(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if place.URL != "" {
		return errors.New("nod up -d is for the server of this machine: run an engine for other servers by a service of the system")
	}
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program of nod: %w", err)
	}
	log := cmp.Or(c.LogFile, service.LogFile(dir))
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return fmt.Errorf("make the directory of the log: %w", err)
	}
	before, _ := os.ReadFile(log) // a missing log counts as empty, so that every later line is new
	child := exec.Command(program, append(e.args, "--detach=false", "--quiet", "--log-file", log)...)
	child.SysProcAttr = ownSession()
	if err := child.Start(); err != nil {
		return fmt.Errorf("start nod: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	if err := e.awaitChild(dir, child.Process.Pid, ended); err != nil {
		return fmt.Errorf("nod did not start: %w", cmp.Or(lastError(log, len(before)), fmt.Errorf("%w; its log is %s", err, log)))
	}
	fmt.Fprintf(e.stdout, "nod is up as process %d\n  log       %s\n  stop      nod stop\n  inbox     nod inbox, or nod open for the browser\n", child.Process.Pid, log)
	for _, note := range e.commandNotes() {
		fmt.Fprintf(e.stdout, "  note      %s\n", note)
	}
	return nil
}

// awaitChild returns once the process answers as the nod of the data directory.
func (e *env) awaitChild(dir string, pid int, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(e.ctx, upWithin)
	defer cancel()
	tick := time.NewTicker(runPoll / 4)
	defer tick.Stop()
	for {
		if run, err := bus.ReadRun(dir); err == nil && run.PID == pid {
			break
		}
		select {
		case <-tick.C:
		case err := <-ended:
			return cmp.Or(err, errors.New("the process ended"))
		case <-ctx.Done():
			return fmt.Errorf("process %d does not answer yet", pid)
		}
	}
	answered := make(chan error, 1)
	go func() {
		_, err := e.status()
		answered <- err
	}()
	select {
	case err := <-ended:
		return cmp.Or(err, errors.New("the process ended"))
	case err := <-answered:
		return err
	}
}

// lastError returns the last error message in a log, or nil. It skips the first bytes of the log, as
// many as skip says.
func lastError(log string, skip int) error {
	all, err := os.ReadFile(log)
	if err != nil || len(all) < skip {
		return nil
	}
	lines := bytes.Split(bytes.TrimSpace(all[skip:]), []byte("\n"))
	if text, ok := bytes.CutPrefix(lines[len(lines)-1], []byte("nod: ")); ok {
		return errors.New(string(text))
	}
	return nil
}
