package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

type pairCmd struct {
	Channel  string `arg:"" help:"The connector of the channel, such as telegram."`
	Name     string `placeholder:"NAME" help:"The approver's name (by default this machine's user)."`
	Settings string `placeholder:"FILE" type:"path" help:"The settings.json to write to (DATA/settings.json)."`
	Yes      bool   `help:"Accept the person who sends the code without a question here."`
}

// pairingPoll is the interval at which the command reads the state of a pairing.
const pairingPoll = 500 * time.Millisecond

// Run shows a code and waits until a person has sent the code on the channel. That person becomes an
// approver.
func (c *pairCmd) Run(e *env) error {
	if schemas.IsViewer(c.Channel) {
		return fmt.Errorf("%s needs no pairing: name its users under approvers.people in settings.json", c.Channel)
	}
	if c.Name == "" {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("find this user's name: %w; give it with --name", err)
		}
		c.Name = u.Username
	}
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	if err := c.checkChannel(ctx, owner); err != nil {
		return err
	}
	code := rand.Text()[:10]
	_, err = owner.Pair(ctx, c.Channel, code)
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, sendCode(c.Channel, code))
	from, err := e.awaitCode(owner, c.Channel)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "The code came from the %s user %s.\n", c.Channel, people.Line(from.UserID))
	switch {
	case c.Yes:
	case !e.interactive():
		return errors.New("no approver was added: without a terminal, use --yes to accept the sender of the code")
	case !e.agree(fmt.Sprintf("May they answer as %s?", people.Line(c.Name))):
		return errors.New("no approver was added")
	}
	id := schemas.Identity{Connector: c.Channel, UserID: from.UserID}
	err = e.changeApprovers(c.Settings, func(a *schemas.Approvers) error {
		a.People = slices.DeleteFunc(withoutIdentity(a.People, id), func(p schemas.Approver) bool { return len(p.Identities) == 0 })
		i := slices.IndexFunc(a.People, func(p schemas.Approver) bool { return p.Name == c.Name })
		if i < 0 {
			a.People, i = append(a.People, schemas.Approver{Name: c.Name}), len(a.People)
		}
		a.People[i].Identities = append(a.People[i].Identities, id)
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s may answer on %s now.\n", c.Name, c.Channel)
	return nil
}

func sendCode(channel, code string) string {
	for _, ch := range embed.Channels() {
		if ch.Name() == channel && ch.SendCode != "" {
			return fmt.Sprintf("%s, within 10 minutes:\n\n  %s\n", ch.SendFrom, strings.ReplaceAll(ch.SendCode, "CODE", code))
		}
	}
	return fmt.Sprintf("Send this to the bot on %s, within 10 minutes:\n\n  /start %s\n", channel, code)
}

// checkChannel returns an error if the channel does not exist, or if the settings do not name it. A
// channel without settings has no bot to which a person could send the code.
func (c *pairCmd) checkChannel(ctx context.Context, owner *connector.Owner) error {
	if known := embed.ChannelNames(); !slices.Contains(known, c.Channel) {
		return fmt.Errorf("there is no channel %q: there is %s", c.Channel, strings.Join(known, ", "))
	}
	if !slices.ContainsFunc(answering(), func(ch people.Channel) bool { return ch.Name() == c.Channel }) {
		return fmt.Errorf("%s needs no pairing, because it takes no answers: name its targets under approvers.people in settings.json", c.Channel)
	}
	state, err := owner.Settings(ctx)
	if err != nil {
		return err
	}
	if _, named := state.Settings.Connectors.Channels[c.Channel]; !named {
		return fmt.Errorf("connectors.%s is not in the settings: add it, run nod settings apply and start nod up again", c.Channel)
	}
	return nil
}

// answering returns the channels through which people can answer.
func answering() []people.Channel {
	return slices.DeleteFunc(embed.Channels(), func(ch people.Channel) bool { return ch.Settings.Outgoing })
}

// awaitCode waits until a person has sent the code. It returns that person's identity on the channel.
func (e *env) awaitCode(owner *connector.Owner, channel string) (*schemas.From, error) {
	poll := time.NewTicker(pairingPoll)
	defer poll.Stop()
	for {
		ctx, cancel := context.WithTimeout(e.ctx, callTimeout)
		p, err := owner.Pair(ctx, channel, "")
		cancel()
		switch {
		case err != nil && e.ctx.Err() == nil:
			return nil, err
		case err == nil && p.From != nil:
			return p.From, nil
		}
		select {
		case <-poll.C:
		case <-e.ctx.Done():
			return nil, errors.New("no approver was added")
		}
	}
}

type approversCmd struct {
	List   approversListCmd   `cmd:"" default:"withargs" help:"List the approvers, their groups, and the conditions for allows."`
	Remove approversRemoveCmd `cmd:"" help:"Remove an approver, who then may answer no more."`
}

type approversListCmd struct {
	JSON bool `name:"json" help:"Print the same as JSON, in the form of settings.json."`
}

// authority returns the part of the settings that says who may answer, and under which conditions.
func authority(s *schemas.Settings) schemas.Settings {
	var a schemas.Approvers
	if s.Approvers != nil {
		a = *s.Approvers
	}
	a.People = append([]schemas.Approver{}, a.People...) // an empty list instead of nil, because JSON must show a list
	return schemas.Settings{Approvers: &a, Permissions: schemas.Permissions{Confirm: s.Permissions.Confirm}}
}

func (c *approversListCmd) Run(e *env) error {
	ctx, owner, done, err := e.owner()
	if err != nil {
		return err
	}
	defer done()
	state, err := owner.Settings(ctx)
	if err != nil {
		return err
	}
	in := authority(&state.Settings)
	if c.JSON {
		return e.printJSON(in)
	}
	all := in.Approvers.People
	if len(all) == 0 {
		fmt.Fprintln(e.stderr, "there is no approver, so every question is refused at once: add an approver under approvers.people in settings.json, or with nod pair")
		return nil
	}
	for i := range all {
		fmt.Fprintln(e.stdout, people.Line(approverLine(&all[i])))
	}
	if in.Approvers.Require == schemas.RequireSecondDevice {
		fmt.Fprintln(e.stdout, "an answer that allows must come from a second device")
	}
	for _, g := range in.Approvers.Groups {
		fmt.Fprintln(e.stdout, people.Line("group "+g.Name+": "+strings.Join(g.People, ", ")))
	}
	for _, esc := range in.Approvers.Escalation {
		fmt.Fprintln(e.stdout, people.Line(escalationLine(&esc)))
	}
	for i := range in.Permissions.Confirm {
		fmt.Fprintln(e.stdout, people.Line(confirmLine(&in.Permissions.Confirm[i])))
	}
	return nil
}

// confirmLine describes a rule of permissions.confirm in one line.
func confirmLine(c *schemas.Confirm) string {
	return coveredCalls(c.Risk, c.Rules) + ": an allow takes " + c.String()
}

// coveredCalls describes the requests of at least the given risk and, if there are rules, of the given rules.
func coveredCalls(risk schemas.Risk, rules []string) string {
	line := "risk " + string(risk) + " and above"
	if risk == schemas.RiskHigh {
		line = "risk high"
	}
	if len(rules) > 0 {
		line += ", calls of " + strings.Join(rules, ", ")
	}
	return line
}

// escalationLine describes an escalation in one line: "risk low and above: goes to Ann, after 5
// minutes to Bob".
func escalationLine(esc *schemas.Escalation) string {
	steps := make([]string, len(esc.Steps))
	for i, s := range esc.Steps {
		steps[i] = "to " + strings.Join(s.To, ", ")
		if s.AfterSeconds > 0 {
			steps[i] = "after " + schemas.FormatDuration(time.Duration(s.AfterSeconds)*time.Second) + " " + steps[i]
		}
	}
	return coveredCalls(esc.Risk, esc.Rules) + ": goes " + strings.Join(steps, ", ")
}

// quietText describes the quiet hours of an approver, such as "  quiet 22:00 to 07:00
// Europe/Berlin, then Bob is asked". It returns "" if there are none.
func quietText(a *schemas.Approver) string {
	if len(a.Quiet) == 0 {
		return ""
	}
	hours := make([]string, len(a.Quiet))
	for i, q := range a.Quiet {
		hours[i] = strings.TrimSpace(strings.Join(q.Days, ", ") + " " + q.From + " to " + q.To)
	}
	then := "no stand-in: questions wait"
	if a.StandIn != "" {
		then = "stand-in " + a.StandIn
	}
	return "  quiet " + strings.Join(hours, "; ") + " " + a.TimeZone + " (" + then + ")"
}

// approverLine describes an approver in one line: name, identities, limits and quiet hours.
func approverLine(a *schemas.Approver) string {
	ids := make([]string, len(a.Identities))
	for i, id := range a.Identities {
		ids[i] = id.Connector + ":" + id.UserID
	}
	line := a.Name + "  " + strings.Join(ids, " ")
	for _, limit := range []struct {
		what string
		to   []string
	}{{"agents", a.For.Agents}, {"projects", a.For.Projects}, {"hosts", a.For.Hosts}} {
		if len(limit.to) > 0 {
			line += "  " + limit.what + " " + strings.Join(limit.to, ", ")
		}
	}
	if a.MaxRisk != "" {
		line += "  up to risk " + string(a.MaxRisk)
	}
	for _, own := range []struct {
		what string
		of   []string
	}{{"agents", a.Requests.Agents}, {"users", a.Requests.Users}, {"hosts", a.Requests.Hosts}} {
		if len(own.of) > 0 {
			line += "  own " + own.what + " " + strings.Join(own.of, ", ")
		}
	}
	return line + quietText(a)
}

type approversRemoveCmd struct {
	Name     string `arg:"" help:"The approver's name."`
	Identity string `placeholder:"CONNECTOR:ID" help:"Remove only this identity of the approver."`
	Settings string `placeholder:"FILE" type:"path" help:"The settings.json to write to (DATA/settings.json)."`
}

func (c *approversRemoveCmd) Run(e *env) error {
	err := e.changeApprovers(c.Settings, func(a *schemas.Approvers) error {
		i := slices.IndexFunc(a.People, func(p schemas.Approver) bool { return p.Name == c.Name })
		if i < 0 {
			return fmt.Errorf("%s is no approver: see nod approvers", c.Name)
		}
		if c.Identity == "" {
			return removeApprover(a, i)
		}
		channel, id, _ := strings.Cut(c.Identity, ":")
		before := len(a.People[i].Identities)
		a.People = withoutIdentity(a.People, schemas.Identity{Connector: channel, UserID: id})
		if len(a.People[i].Identities) == before {
			return fmt.Errorf("%s has no identity %s: see nod approvers", c.Name, c.Identity)
		}
		if before == 1 {
			return removeApprover(a, i)
		}
		return nil
	})
	if err == nil {
		fmt.Fprintf(e.stdout, "%s may answer no more\n", strings.TrimSpace(c.Name+" "+c.Identity))
	}
	return err
}

// removeApprover removes the person at index i, and removes that person from all groups. It refuses to
// empty a group, because the settings may demand answers from the group.
func removeApprover(a *schemas.Approvers, i int) error {
	name := a.People[i].Name
	a.People = slices.Delete(a.People, i, i+1)
	for g := range a.Groups {
		group := &a.Groups[g]
		group.People = slices.DeleteFunc(group.People, func(member string) bool { return member == name })
		if len(group.People) == 0 {
			return fmt.Errorf("%s is the only one in the group %s: change approvers.groups in settings.json first", name, group.Name)
		}
	}
	return nil
}

func withoutIdentity(all []schemas.Approver, id schemas.Identity) []schemas.Approver {
	for i := range all {
		all[i].Identities = slices.DeleteFunc(all[i].Identities, func(old schemas.Identity) bool { return old == id })
	}
	return all
}

func (e *env) changeApprovers(path string, change func(*schemas.Approvers) error) error {
	return e.changeSettings(path, func(s *schemas.Settings) ([]member, error) {
		return []member{{"/approvers", s.Approvers}}, change(s.Approvers)
	})
}
