package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type setupCmd struct {
	Yes       bool          `short:"y" help:"Make every change without asking; for scripts."`
	NoService bool          `name:"no-service" help:"Do not install the service."`
	NoTest    bool          `name:"no-test" help:"Do not send a test question."`
	Wait      time.Duration `default:"10m" placeholder:"D" help:"How long to wait for nod to run, and for the answer (10m)."`

	unserved bool // the service manager did not start the service
}

// Run sets nod up on this machine, one change at a time. It ends when a person has answered a test
// question.
func (c *setupCmd) Run(e *env) error {
	if _, err := launcher.Self(); err != nil {
		return err
	}
	if !c.Yes && !e.interactive() {
		return errors.New("there is no terminal to ask on: say --yes to make every change")
	}
	if err := c.agents(e); err != nil {
		return err
	}
	if !c.NoService {
		if err := c.service(e); err != nil {
			return err
		}
	}
	if c.NoTest {
		return c.started(e)
	}
	return c.try(e)
}

// started returns an error if setup installed the service and no nod runs: without nod, the hooks that
// setup installed reach no person.
func (c *setupCmd) started(e *env) error {
	place, err := e.place.WithDefaults()
	if err != nil || c.NoService || place.URL != "" {
		return err
	}
	for deadline := time.Now().Add(startsWithin); ; time.Sleep(runPoll) {
		_, err := bus.ReadRun(place.DataDir)
		if !errors.Is(err, bus.ErrNotRunning) {
			return err
		}
		if c.unserved || !time.Now().Before(deadline) {
			return fmt.Errorf("the changes are made, but the service did not start nod: %w, or run the commands above", err)
		}
		if e.ctx.Err() != nil {
			return errStopped
		}
	}
}

// agents installs the hook of every agent program on this machine.
func (c *setupCmd) agents(e *env) error {
	found := false
	for _, host := range hook.Hosts() {
		if !host.Present() {
			continue
		}
		found = true
		if err := c.agent(e, host); err != nil {
			return fmt.Errorf("%s: %w", host.Agent, err)
		}
	}
	if !found {
		fmt.Fprintln(e.stdout, "nod found no agent program that it has a hook for; any script can use nod ask.")
	}
	return nil
}

func (c *setupCmd) agent(e *env, host hook.Host) error {
	install := installCmd{Agent: host.Name, DryRun: true, Unasked: c.Yes, OnUnavailable: string(hook.UnavailableAsk)}
	planned, err := install.install(e)
	if err != nil {
		return err
	}
	if planned.Changed() {
		fmt.Fprintf(e.stdout, "\n%s is here. It will ask nod, by this change:\n\n%s\n", host.Agent, planned.Diff())
		files := planned.Path
		if planned.trust.Changed() {
			files += " and " + planned.trust.Path
		}
		if ok, err := c.agree(e, "Change "+files+"?"); err != nil || !ok {
			return err
		}
	}
	install.DryRun = false
	return install.Run(e)
}

func (c *setupCmd) service(e *env) error {
	manager, spec, err := (&serviceInstallCmd{}).plan(e)
	if err != nil {
		return err
	}
	change, err := manager.Plan(spec)
	if err != nil {
		return err
	}
	if change.Changed() {
		fmt.Fprintf(e.stdout, "\nnod can run from log-in on, by this file (%s):\n\n%s\n", change.Path, change.After)
		if ok, err := c.agree(e, "Install the service?"); err != nil || !ok {
			c.NoService = !ok // the user starts nod in another way
			return err
		}
	}
	started, err := e.installService(manager, spec)
	c.unserved = !started
	return err
}

// try sends a test question once nod runs.
func (c *setupCmd) try(e *env) error {
	if err := e.awaitNod(c.Wait); err != nil {
		return err
	}
	if err := c.rules(e); err != nil {
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
	fmt.Fprintln(e.stdout, "nod is set up. Agents that run already must be started again. nod doctor checks the installation; docs/phone.md explains answers by phone.")
	return nil
}

// phone offers to pair a phone if no approver has an identity on a channel. If the settings name no
// channel, it prints how to set one up.
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
		for _, ch := range channels {
			fmt.Fprintf(e.stdout, "No phone yet: %s says how to make a %s; then nod pair %s.\n", ch.Guide, ch.Account, ch.Name())
		}
		return nil
	}
	ch := channels[i]
	if c.Yes { // --yes is for scripts, and a script cannot send the code from a phone
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

// awaitNod returns once a nod runs. If none runs after some seconds, it prints how to start one.
func (e *env) awaitNod(wait time.Duration) error {
	place, err := e.place.WithDefaults()
	if err != nil || place.URL != "" {
		return err
	}
	deadline, tick := time.NewTimer(wait), time.NewTicker(runPoll)
	defer deadline.Stop()
	defer tick.Stop()
	soon := time.NewTimer(startsWithin)
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

// agree asks whether to make a change; with --yes it does not ask.
func (c *setupCmd) agree(e *env, question string) (bool, error) {
	if c.Yes {
		return true, nil
	}
	ok := e.agree(question)
	switch {
	case e.ctx.Err() != nil:
		return false, errStopped
	case !ok:
		fmt.Fprintln(e.stdout, "Left out.")
	}
	return ok, nil
}

// interactive reports whether standard input is a terminal: only then can the command ask a person.
func (e *env) interactive() bool {
	f, ok := e.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// agree asks a yes-or-no question at the terminal. An empty answer means no, and so does a signal to
// stop.
func (e *env) agree(question string) bool {
	word := strings.ToLower(e.typed(question + " [y/N] "))
	return word == "y" || word == "yes"
}

// typed reads one word from the terminal. After a signal to stop it returns "".
func (e *env) typed(prompt string) string {
	return e.read(prompt, func() string {
		var word string
		_, _ = fmt.Fscanln(e.stdin, &word) // Fscanln fails on an empty line, and word stays empty
		return word
	})
}

// typedLine reads one line from the terminal, without blanks at its ends. After a signal to stop it
// returns "".
func (e *env) typedLine(prompt string) string {
	return e.read(prompt, func() string {
		line, _ := bufio.NewReader(e.stdin).ReadString('\n') // at the end of the input the line stays as it is
		return strings.TrimSpace(line)
	})
}

func (e *env) read(prompt string, one func() string) string {
	fmt.Fprint(e.stderr, prompt)
	typed := make(chan string, 1)
	go func() { typed <- one() }()
	select {
	case text := <-typed:
		return text
	case <-e.ctx.Done():
		return ""
	}
}
