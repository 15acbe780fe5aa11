package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/checklist"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type setupCmd struct {
	Yes       bool          `short:"y" help:"Install all hooks and the service without asking, and change no settings; for scripts."`
	NoService bool          `name:"no-service" help:"Do not install the service."`
	NoTest    bool          `name:"no-test" help:"Do not send a test question."`
	Wait      time.Duration `default:"10m" placeholder:"D" help:"How long to wait for nod to run, and for the answer (10m)."`

	unserved bool     // true if the service manager did not start the service
	failed   []string // names of the changes that could not be made
}

// Help returns the text that nod setup --help shows besides the flags.
func (setupCmd) Help() string {
	return "In a terminal, nod setup lists what it can change and changes only what you tick, after you have confirmed the summary. On a terminal that cannot draw (TERM=dumb), it asks line by line."
}

// Run sets nod up on this machine. It ends when a person has answered a test question. If a change fails, Run
// still makes all other changes, and then returns an error that names the failed changes.
func (c *setupCmd) Run(e *env) error {
	if _, err := launcher.Self(); err != nil {
		return err
	}
	if !c.Yes && !e.interactive() {
		return errors.New("there is no terminal to ask on: say --yes to install all hooks and the service")
	}
	changes := c.changes(e)
	if len(changes.agents) == 0 {
		fmt.Fprintln(e.stdout, "nod found no agent program that it has a hook for; any script can use nod ask.")
	}
	if !c.Yes {
		if err := c.choose(e, changes); err != nil {
			return err
		}
	}
	if err := c.apply(e, changes); err != nil {
		return err
	}
	var err error
	if c.NoTest {
		err = c.started(e)
	} else if len(c.failed) == 0 || e.startHint() == "" { // after a failed change, a test question could wait for a nod that nothing starts
		err = c.try(e)
	}
	if len(c.failed) > 0 { // the reasons for the failures are printed already
		failed := fmt.Errorf("%s could not be made: %s", schemas.Count(len(c.failed), "change"), strings.Join(c.failed, ", "))
		return errors.Join(failed, err)
	}
	return err
}

// choose lets the user choose the changes and confirm them.
func (c *setupCmd) choose(e *env, changes *setupChanges) error {
	e.printWrapped("nod setup lists what it can change on this machine. It changes nothing before you confirm.")
	past := c.past(e)
	lists := changes.lists(c.settingsChoice(e, past))
	var err error
	if e.ctx.Err() != nil {
		err = checklist.ErrLeft
	} else if slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")) || !isTerminal(e.stdout) {
		err = lists.Ask(e.stdout, func(question string) (string, error) {
			line := e.typedLine(question)
			return line, e.ctx.Err()
		})
	} else {
		err = lists.Show(e.ctx, e.stdin, e.stdout)
	}
	if changes.service != nil && isOpen(changes.service) && !changes.service.item.On {
		c.NoService = true // the user did not choose the service, and so starts nod in another way
	}
	if errors.Is(err, checklist.ErrLeft) || e.ctx.Err() != nil {
		return fmt.Errorf("%w: run nod setup again at any time", checklist.ErrLeft)
	}
	return err
}

// apply makes the chosen changes. The settings and the service come first, because an agent's hook is
// tried only while nod runs.
func (c *setupCmd) apply(e *env, changes *setupChanges) error {
	for _, change := range changes.chosen(c.Yes) {
		if e.ctx.Err() != nil {
			return errStopped
		}
		if c.Yes && change.announce != "" {
			fmt.Fprintln(e.stdout)
			for line := range strings.Lines(change.announce) { // the text quotes files that may contain anything
				fmt.Fprintln(e.stdout, people.Line(strings.TrimSuffix(line, "\n")))
			}
		}
		err := change.fault
		if err == nil {
			err = change.apply()
		}
		if err != nil {
			fmt.Fprintf(e.stderr, "nod: %s: %v\n", change.name, err)
			c.failed = append(c.failed, change.name)
		}
	}
	return nil
}

// started returns an error if setup wanted the service but no nod runs, because without nod the
// installed hooks reach no person.
func (c *setupCmd) started(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil || c.NoService || place.URL != "" {
		return err
	}
	if !c.unserved {
		err = c.awaitService(e, place.DataDir)
	} else {
		_, err = bus.ReadRun(place.DataDir)
	}
	if errors.Is(err, bus.ErrNotRunning) {
		return fmt.Errorf("the changes are made, but the service did not start nod: %w, or run the commands above", err)
	}
	return err
}

// awaitService returns once a nod runs on dir. After startsWithin it returns bus.ErrNotRunning.
func (c *setupCmd) awaitService(e *env, dir string) error {
	ctx, cancel := context.WithTimeout(e.ctx, startsWithin)
	defer cancel()
	tick := time.NewTicker(runPoll)
	defer tick.Stop()
	for {
		_, err := bus.ReadRun(dir)
		if !errors.Is(err, bus.ErrNotRunning) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if e.ctx.Err() != nil {
				return errStopped
			}
			return err
		}
	}
}

// try waits until nod runs, and then sends a test question.
func (c *setupCmd) try(e *env) error {
	if err := e.awaitNod(c.Wait, c.NoService || c.unserved); err != nil {
		return err
	}
	if err := c.phone(e); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout)
	d, err := e.testQuestion(c.Wait)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, people.Outcome(&d, &schemas.Prompt{}))
	if d.By.Kind != schemas.ByHuman {
		fmt.Fprintln(e.stderr, "nod: a rule decided, not a person: nod policy explain shows the rule")
	}
	if len(c.failed) > 0 {
		return nil
	}
	fmt.Fprint(e.stdout, `
nod is set up. Next:
  restart     agents that run already: they ask nod from their next start on
  nod inbox   answers requests on this terminal, nod open in the browser
  nod doctor  checks the installation, at any time
`)
	return nil
}

// phone offers to pair a phone if no approver has an identity on a phone's channel. If the settings name no
// such channel, it prints how to set one up.
func (c *setupCmd) phone(e *env) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	state, err := owner.Settings(ctx)
	if err != nil {
		return err
	}
	channels := slices.DeleteFunc(answering(), func(ch people.Channel) bool { return !schemas.IsSecondDevice(ch.Name()) })
	if slices.ContainsFunc(state.Settings.Identities(), func(id schemas.Identity) bool {
		return slices.ContainsFunc(channels, func(ch people.Channel) bool { return ch.Name() == id.Connector })
	}) {
		return nil
	}
	i := slices.IndexFunc(channels, func(ch people.Channel) bool { return state.Settings.Connectors.Channels[ch.Name()] != nil })
	if i < 0 {
		var guides []string
		for _, ch := range channels {
			guides = append(guides, fmt.Sprintf("%s (%s)", ch.Guide, ch.Account))
		}
		fmt.Fprintf(e.stdout, "\nTo answer from your phone too, follow one of these, at any time: %s.\n", strings.Join(guides, ", "))
		return nil
	}
	ch := channels[i]
	if c.Yes { // --yes is for scripts, which cannot send the code from a phone
		fmt.Fprintf(e.stdout, "A %s is set up and no approver is on it yet: nod pair %s.\n", ch.Account, ch.Name())
		return nil
	}
	ok, err := c.agree(e, "Pair your phone with the "+ch.Account+" now?")
	if err != nil || !ok {
		return err
	}
	return (&pairCmd{Channel: ch.Name()}).Run(e)
}

const runPoll = 200 * time.Millisecond

// startsWithin is longer than a service needs to start nod.
const startsWithin = 5 * time.Second

// awaitNod returns once a nod runs. If no nod runs after some seconds, awaitNod prints how to start it. If
// the parameter unstarted is true, awaitNod prints this at once.
func (e *env) awaitNod(wait time.Duration, unstarted bool) error {
	place, err := e.place.WithDefaults()
	if err != nil || place.URL != "" {
		return err
	}
	deadline, tick := time.NewTimer(wait), time.NewTicker(runPoll)
	defer deadline.Stop()
	defer tick.Stop()
	patience := startsWithin
	if unstarted {
		patience = 0
	}
	soon := time.NewTimer(patience)
	defer soon.Stop()
	for {
		if _, err = bus.ReadRun(place.DataDir); !errors.Is(err, bus.ErrNotRunning) {
			return err
		}
		select {
		case <-tick.C:
		case <-soon.C:
			fmt.Fprintf(e.stderr, "nod: waiting for nod to run on %s: start it as shown above, or with nod up in another terminal\n", place.DataDir)
		case <-deadline.C:
			return fmt.Errorf("%w: the rest is done; once nod runs, nod doctor --prompt sends the test question", err)
		case <-e.ctx.Done():
			return errStopped
		}
	}
}

// errStopped is the error of a set-up that the user stopped.
var errStopped = errors.New("stopped; the changes made so far stay")

// agree asks a yes-or-no question. It returns an error if the user stops the command.
func (c *setupCmd) agree(e *env, question string) (bool, error) {
	ok := e.agree(question)
	switch {
	case e.ctx.Err() != nil:
		return false, errStopped
	case !ok:
		fmt.Fprintln(e.stdout, "Left out.")
	}
	return ok, nil
}
