package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nodbus/nod/cmd/nod/internal/doctor"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type doctorCmd struct {
	JSON    bool          `name:"json" help:"Print a JSON array."`
	Prompt  bool          `help:"Also send a test question and wait for the answer."`
	Cluster bool          `help:"Check the NATS servers, stores and engines of a cluster instead, with the key of an observer."`
	Wait    time.Duration `default:"10m" placeholder:"D" help:"How long --prompt waits for the answer (10m)."`
}

// Run makes all checks and prints the findings. It exits with 1 if a finding has the level Wrong.
func (c *doctorCmd) Run(e *env) error {
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	o, examine := doctor.Options{Place: place, DataDir: dir, Version: version(), Log: e.log}, doctor.Examine
	if c.Cluster && c.Prompt {
		return errors.New("--prompt needs the key of an agent and --cluster that of an observer: run it once for each")
	}
	if c.Cluster {
		if place.URL == "" || place.Creds == "" {
			return errors.New("--cluster: name the servers with NOD_URL and the key of an observer with --creds: docs/cluster.md")
		}
		examine = doctor.ExamineCluster
	}
	found := examine(e.ctx, o)
	if !c.JSON {
		e.printFindings(found)
	}
	if c.Prompt {
		answered := e.tryPrompt(c.Wait)
		found = append(found, answered)
		if !c.JSON {
			e.printFindings(found[len(found)-1:])
		}
	}
	if c.JSON {
		if err := e.printJSON(found); err != nil {
			return err
		}
	}
	if !doctor.Healthy(found) {
		return exit(exitError)
	}
	return nil
}

func (e *env) printFindings(found []doctor.Finding) {
	for _, f := range found {
		line := f.What
		if f.Do != "" {
			line += ": " + f.Do
		}
		fmt.Fprintf(e.stdout, "%-5s  %-16s  %s\n", f.Level, f.Check, people.Line(line))
	}
}

// tryPrompt sends a test question to people and returns the finding.
func (e *env) tryPrompt(wait time.Duration) doctor.Finding {
	const check = "prompt"
	d, err := e.testQuestion(wait)
	if err != nil {
		return doctor.Finding{Check: check, Level: doctor.Wrong, What: err.Error()}
	}
	level := doctor.OK
	if d.By.Kind != schemas.ByHuman {
		level = doctor.Wrong
	}
	return doctor.Finding{Check: check, Level: level, What: people.Outcome(&d, &schemas.Prompt{})}
}
