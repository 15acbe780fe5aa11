package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// DescribeVotes describes for people how many votes a request has, how many it needs, and who voted,
// such as "1 of 2: Ann".
func DescribeVotes(votes []Vote, needed int) string {
	text := fmt.Sprintf("%d of %d", len(votes), needed)
	if len(votes) > 0 {
		text += ": " + strings.Join(Voters(votes), ", ")
	}
	return text
}

// SamePerson reports whether two votes are by the same person. It compares names and logins, because
// people may change the name that an issuer shows for them.
func (v *Vote) SamePerson(other *Vote) bool {
	return v.Name == other.Name || v.Login != nil && other.Login != nil && v.Login.Issuer == other.Login.Issuer && v.Login.Subject == other.Login.Subject
}

// Voters returns the names of the people who voted.
func Voters(votes []Vote) []string {
	names := make([]string, len(votes))
	for i := range votes {
		names[i] = votes[i].Name
	}
	return names
}

// The settings about several people have versions. An engine reports the newest version that it
// knows. nod refuses settings as long as an engine runs that does not know their version.
const (
	TeamsVotes  = 1 // has the members votes, not_requester, rules and channels of permissions.confirm
	TeamsGroups = 2 // adds groups, the member people of permissions.confirm, escalations and quiet hours
	TeamsLogins = 3 // adds logins at an issuer, and the issuer's groups
)

// TeamsVersion returns the version that engines must know for these settings. It is 0 if the settings
// have nothing about several people.
func (s *Settings) TeamsVersion() uint64 {
	if s.OIDC() != nil {
		return TeamsLogins
	}
	version := uint64(0)
	for i := range s.Permissions.Confirm {
		if c := &s.Permissions.Confirm[i]; len(c.People) > 0 {
			return TeamsGroups
		} else if c.Newer() {
			version = TeamsVotes
		}
	}
	if len(s.Groups())+len(s.Escalations()) > 0 || slices.ContainsFunc(s.People(), func(a Approver) bool { return a.TimeZone != "" || len(a.Quiet) > 0 }) {
		return TeamsGroups
	}
	return version
}
