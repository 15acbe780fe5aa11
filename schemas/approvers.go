package schemas

import "slices"

// Approvers names the people who may answer. It can also set a condition on every allow.
type Approvers struct {
	// People is the list of approvers. If it is empty, every answer is refused.
	People []Approver `json:"people"`
	// Groups are lists of these people, each with a name.
	Groups []Group `json:"groups,omitempty"`
	// Escalation says which people are asked about a request, and when. Only the first escalation that
	// covers a request counts. If none covers it, all people are asked at once.
	Escalation []Escalation `json:"escalation,omitempty"`
	// Require may be empty or second_device. With second_device, every allow from the agents' machine is
	// refused, because an agent may be able to read the keys on that machine.
	Require Requirement `json:"require,omitempty"`
}

// Requirement is a condition on every allow.
type Requirement string

// RequireSecondDevice demands that an allow comes through a carrier, such as a chat on a phone.
const RequireSecondDevice Requirement = "second_device"

// Approver is a person with immutable identities on channels.
type Approver struct {
	Name       string     `json:"name"`
	Identities []Identity `json:"identities"`
	// For selects the requests that the person may decide. An empty For selects all requests. A pattern
	// for projects matches no request without a project, and a pattern for hosts no request without a
	// host.
	For PolicyMatch `json:"for,omitzero"`
	// MaxRisk is the highest risk that the person may decide. Empty means any risk.
	MaxRisk Risk `json:"max_risk,omitempty"`
	// Requests selects the requests of the person's own agents. If it is empty, these are the requests of
	// the user accounts with which the person answers in an inbox.
	Requests OwnRequests `json:"requests,omitzero"`
	// TimeZone is the person's time zone, such as Europe/Berlin, for Quiet and for times in prompts. If
	// it is empty, prompts in chats have times in UTC.
	TimeZone string `json:"time_zone,omitempty"`
	// Quiet lists the times at which no phone or chat of the person gets a prompt. Instead the person
	// gets these prompts when the quiet hours end.
	Quiet []QuietHours `json:"quiet,omitempty"`
	// StandIn names the person or group that is asked instead of the person in quiet hours.
	StandIn string `json:"stand_in,omitempty"`

	// ByLogin means that the person is not in the settings' list of people, but is a member of a group
	// because of a login at an issuer. InGroups are the groups of which the person is a member by login.
	ByLogin  bool     `json:"-"`
	InGroups []string `json:"-"`
}

// OwnRequests selects requests by their agent, user account and host. A request must match every list
// that is not empty. A list has names, or patterns that contain *. Only the agent is verified, because
// the asker itself states the user account and the host.
type OwnRequests struct {
	Agents []string `json:"agents,omitempty"`
	Users  []string `json:"users,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`
}

// Empty reports whether all lists are empty.
func (o *OwnRequests) Empty() bool { return len(o.Agents)+len(o.Users)+len(o.Hosts) == 0 }

// UpTo reports whether the person may decide requests of this risk. An unknown risk counts as
// the highest.
func (a *Approver) UpTo(risk Risk) bool {
	at := slices.Index(risks, risk)
	return a.MaxRisk == "" || a.MaxRisk == RiskHigh || at >= 0 && at <= slices.Index(risks, a.MaxRisk)
}

// HigherRisk returns the higher of two risks. An unknown risk counts as the highest, an empty risk as the
// lowest.
func HigherRisk(a, b Risk) Risk {
	at := func(r Risk) int {
		if i := slices.Index(risks, r); i >= 0 || r == "" {
			return i
		}
		return len(risks)
	}
	if at(b) > at(a) {
		return b
	}
	return a
}

// Everything reports whether the person may decide every request.
func (a *Approver) Everything() bool {
	return len(a.For.Agents)+len(a.For.Projects)+len(a.For.Hosts) == 0 && (a.MaxRisk == "" || a.MaxRisk == RiskHigh)
}

// Identity is one person on one connector. UserID is the channel's id of the person, for example a
// Telegram user id, or the login name on this machine for the terminal.
type Identity struct {
	Connector string `json:"connector"`
	UserID    string `json:"user_id"`
}

// People returns the approvers that the settings name.
func (s *Settings) People() []Approver {
	if s.Approvers == nil {
		return nil
	}
	return s.Approvers.People
}

// Identities returns the identities of all approvers.
func (s *Settings) Identities() []Identity {
	var all []Identity
	for _, a := range s.People() {
		all = append(all, a.Identities...)
	}
	return all
}

// Approver returns the approver who has a person's identity on a connector. The second result is
// false if the person is no approver. A person is an approver by an identity in approvers.people, or
// by a group at the issuer of the person's login. An identity at an issuer counts only with a login
// of that issuer. The caller checks the age of the login.
func (s *Settings) Approver(connector string, from From) (Approver, bool) {
	login := from.Login != nil || connector == ConnectorWeb && IsLoginUser(from.UserID)
	if login && (connector != ConnectorWeb || !s.vouches(&from)) {
		return Approver{}, false
	}
	for _, a := range s.People() {
		for _, id := range a.Identities {
			if id.Connector == connector && id.UserID == from.UserID {
				if login {
					a.InGroups = groupNames(s.memberOf(from.Login))
				}
				return a, true
			}
		}
	}
	if login {
		return s.member(&from)
	}
	return Approver{}, false
}

// Confirms returns the rules of permissions.confirm, followed by a rule for approvers.require if that is
// set.
func (s *Settings) Confirms() []Confirm {
	all := slices.Clone(s.Permissions.Confirm)
	if s.Approvers != nil && s.Approvers.Require == RequireSecondDevice {
		all = append(all, Confirm{Risk: RiskLow, SecondDevice: true})
	}
	return all
}
