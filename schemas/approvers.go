package schemas

import "slices"

// Approvers are who may answer, and how.
type Approvers struct {
	// People is who; an empty list lets nobody in.
	People []Approver `json:"people"`
	// Require, where it is second_device, lets nothing be allowed from the devices
	// where agents run: their users can read the keys there.
	Require Requirement `json:"require,omitempty"`
}

// Requirement is what every answer that allows must have.
type Requirement string

// RequireSecondDevice asks for an answer through a carrier, such as a phone's.
const RequireSecondDevice Requirement = "second_device"

// Approver is a person, bound to immutable identities on channels.
type Approver struct {
	Name       string     `json:"name"`
	Identities []Identity `json:"identities"`
	// For says whose requests the person decides about; empty is everyone's. What is
	// not known of a request is not matched.
	For PolicyMatch `json:"for,omitzero"`
	// MaxRisk is the highest risk that the person decides about; empty is any.
	MaxRisk Risk `json:"max_risk,omitempty"`
}

// UpTo reports whether the person decides about requests of this risk. One that
// is not known is taken for the highest.
func (a *Approver) UpTo(risk Risk) bool {
	at := slices.Index(risks, risk)
	return a.MaxRisk == "" || a.MaxRisk == RiskHigh || at >= 0 && at <= slices.Index(risks, a.MaxRisk)
}

// Everything reports whether the person decides about every request.
func (a *Approver) Everything() bool {
	return len(a.For.Agents)+len(a.For.Projects)+len(a.For.Hosts) == 0 && (a.MaxRisk == "" || a.MaxRisk == RiskHigh)
}

// Identity is one person on one connector: a Telegram user id, a login of this
// machine on the terminal.
type Identity struct {
	Connector string `json:"connector"`
	UserID    string `json:"user_id"`
}

// People are the approvers, if there are any.
func (s *Settings) People() []Approver {
	if s.Approvers == nil {
		return nil
	}
	return s.Approvers.People
}

// Identities are all those who may answer.
func (s *Settings) Identities() []Identity {
	var all []Identity
	for _, a := range s.People() {
		all = append(all, a.Identities...)
	}
	return all
}

// Approver returns who this identity belongs to.
func (s *Settings) Approver(connector, userID string) (Approver, bool) {
	for _, a := range s.People() {
		for _, id := range a.Identities {
			if id.Connector == connector && id.UserID == userID {
				return a, true
			}
		}
	}
	return Approver{}, false
}

// Confirms are all the rules about what it takes to allow something.
func (s *Settings) Confirms() []Confirm {
	all := slices.Clone(s.Permissions.Confirm)
	if s.Approvers != nil && s.Approvers.Require == RequireSecondDevice {
		all = append(all, Confirm{Risk: RiskLow, SecondDevice: true})
	}
	return all
}
