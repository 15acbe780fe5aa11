package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/tokens"
)

type tokenServiceCmd struct {
	Settings string `placeholder:"FILE" type:"path" help:"The jobs that are admitted (DATA/tokens.json)."`
	Check    bool   `help:"Only check the settings."`
}

// Run admits agents by their tokens until the process gets a signal to stop.
func (c *tokenServiceCmd) Run(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	settings, err := tokens.Read(cmp.Or(c.Settings, tokenSettings(place.DataDir)))
	if err != nil {
		return err
	}
	id := roles.ID{Role: roles.TokenService}
	admitKeys := func() (roles.AdmitKeys, error) { return roles.ReadAdmitKeys(place.Creds) }
	if place.Creds == "" {
		keys, err := roles.OpenKeys(place.DataDir)
		if err != nil {
			return err
		}
		if err := noJobHasAKey(settings, keys); err != nil {
			return err
		}
		admitKeys = keys.AdmitKeys
		if place.URL != "" {
			place.Creds = keys.Path(id)
		}
	}
	service, err := tokens.New(settings, e.log)
	if err != nil {
		return err
	}
	if c.Check {
		fmt.Fprintln(e.stdout, "the settings are valid")
		return nil
	}
	admit, err := admitKeys()
	if err != nil {
		return err
	}
	place.TokenFile = "" // the service has a key of its own, so it needs no token
	conn, err := bus.JoinWait(e.ctx, place, id, e.log, waitForServers)
	if err != nil {
		return err
	}
	defer conn.Close()
	if conn.Open() {
		return errors.New("this NATS server asks for no credentials, so it asks no token service either: give it the text of nod keys config")
	}
	reach, cancel := context.WithTimeout(e.ctx, 10*time.Second)
	service.Reach(reach)
	cancel()
	stop, err := conn.AdmitAgents(admit, service.Check)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(e.stdout, "the token service is up on %s\n", conn.URL())
	<-e.ctx.Done()
	return nil
}

func tokenSettings(dataDir string) string { return filepath.Join(dataDir, "tokens.json") }

// noJobHasAKey returns an error if a token could give its bearer the name of an agent that has a key
// here. A name that the settings state literally is allowed, because it is given on purpose.
func noJobHasAKey(s *tokens.Settings, keys *roles.Keys) error {
	users, err := keys.Users()
	if err != nil {
		return err
	}
	elsewhere, err := keys.Elsewhere()
	if err != nil {
		return err
	}
	for _, u := range append(users, elsewhere...) {
		if err := notAJob(s, u.ID); err != nil {
			return err
		}
	}
	return nil
}

func notAJob(s *tokens.Settings, id roles.ID) error {
	if id.Role != roles.Agent {
		return nil
	}
	if job, ok := s.CouldName(id.Name); ok {
		return fmt.Errorf("a token could name its bearer %s by jobs[%d] of the token service, and the agent %s has a key: begin the one or the other differently", id.Name, job, id.Name)
	}
	return nil
}

// checkJobs returns an error if the name of an agent in the token service's settings collides with an
// existing or an added key. It returns nil if there are no such settings.
func (e *env) checkJobs(keys *roles.Keys, added ...roles.ID) error {
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	file := tokenSettings(place.DataDir)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := tokens.Read(file)
	if err != nil {
		return err
	}
	for _, id := range added {
		if err := notAJob(s, id); err != nil {
			return err
		}
	}
	return noJobHasAKey(s, keys)
}
