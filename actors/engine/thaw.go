package engine

import (
	"context"
	"slices"

	"github.com/nodbus/nod/schemas"
)

// mayThaw returns FORBIDDEN unless a person may decide every request. If another device could thaw, a
// thaw from the agents' machine is FORBIDDEN, too. If no other device could thaw, a thaw from the
// agents' machine needs the code word of the settings, if there is one.
func (e *admin) mayThaw(ctx context.Context, who *schemas.Approver, connector, word string) error {
	if !who.Everything() {
		return schemas.Errorf(schemas.CodeForbidden, "%s may freeze and not thaw: that takes an approver whose for and max_risk in approvers.people are empty", who.Name)
	}
	if schemas.IsSecondDevice(connector) {
		return nil
	}
	if err := e.readSettings(ctx); err != nil { // the cached settings may lack a device that has just been paired
		return err
	}
	now := e.settings.now().settings
	if there := e.secondDevices(now); len(there) > 0 {
		return schemas.Errorf(schemas.CodeForbidden, "a thaw never comes from the agents' machine alone: send /thaw on %s", there[0].Connector)
	}
	return checkCodeWord(now, word)
}

// checkCodeWord returns FORBIDDEN if a person has not sent the code word that permissions.confirm
// sets for the highest risk. If the settings have no such code word, it returns FORBIDDEN for a
// person who has sent one.
func checkCodeWord(s *schemas.Settings, said string) error {
	c := s.CodeWordFor(schemas.RiskHigh)
	if c == nil && said != "" {
		return schemas.Errorf(schemas.CodeForbidden, "a thaw takes no code word here: permissions.confirm names none")
	}
	if c == nil {
		return nil
	}
	right, err := isCodeWord(c, said)
	if err == nil && !right {
		err = schemas.Errorf(schemas.CodeForbidden, "a thaw on this machine takes the code word").WithCodeWord()
	}
	return err
}

// secondDevices returns the identities that may thaw from another machine than the one that agents run
// on.
func (o *Options) secondDevices(s *schemas.Settings) []schemas.Identity {
	var all []schemas.Identity
	for _, who := range s.People() {
		for _, id := range who.Identities {
			if who.Everything() && schemas.IsSecondDevice(id.Connector) && !o.outgoing(id.Connector) {
				all = append(all, id)
			}
		}
	}
	return all
}

// checkThawKept returns an error for settings by which the agents' machine could thaw a freeze that
// needs a second device. Such settings add a second device, or remove the only one that is left.
func (e *admin) checkThawKept(ctx context.Context, next *schemas.Settings) error {
	if err := e.readFrozen(ctx); err != nil {
		return err
	}
	if len(e.freezes.now().Freezes) == 0 {
		return nil
	}
	if err := e.readSettings(ctx); err != nil {
		return err
	}
	then, now := e.secondDevices(next), e.secondDevices(e.settings.now().settings)
	added := slices.ContainsFunc(then, func(id schemas.Identity) bool { return !slices.Contains(now, id) })
	if len(now) > 0 && (added || len(then) == 0) {
		return schemas.Errorf(schemas.CodeForbidden, "approvers.people: nod is frozen, so no approver who could thaw from a second device is added, and the last one stays: send /thaw on %s first", now[0].Connector)
	}
	return nil
}
