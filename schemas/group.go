package schemas

import (
	"fmt"
	"slices"
)

// Group is a list of approvers with a name. The name can stand wherever the settings name people.
type Group struct {
	Name   string   `json:"name"`
	People []string `json:"people,omitempty"` // the approvers' names
	// OIDCGroups names groups at the issuer of connectors.web.oidc. Each person in one of these issuer's
	// groups is an approver on the web, and a member of this group. The fields For and MaxRisk limit
	// what such a person may decide, as in Approver. If a person is a member of several groups in this
	// way, only the limits of the first group count.
	OIDCGroups []string    `json:"oidc_groups,omitempty"`
	For        PolicyMatch `json:"for,omitzero"`
	MaxRisk    Risk        `json:"max_risk,omitempty"`
}

// Limits returns an approver who has the limits that apply to the group's members by login.
func (g *Group) Limits() Approver {
	return Approver{Name: g.Name, For: g.For, MaxRisk: g.MaxRisk, ByLogin: true}
}

// Groups returns the groups in the settings.
func (s *Settings) Groups() []Group {
	if s.Approvers == nil {
		return nil
	}
	return s.Approvers.Groups
}

// Named returns the approvers in a list that names people and groups. It returns each approver once, in
// the order of the list, and leaves out unknown names.
func (s *Settings) Named(names []string) (all []Approver) {
	add := func(name string) {
		i := slices.IndexFunc(s.People(), func(a Approver) bool { return a.Name == name })
		if i >= 0 && !slices.ContainsFunc(all, func(a Approver) bool { return a.Name == name }) {
			all = append(all, s.People()[i])
		}
	}
	for _, name := range names {
		add(name)
		for _, g := range s.Groups() {
			if g.Name == name {
				for _, member := range g.People {
					add(member)
				}
			}
		}
	}
	return all
}

// names reports whether an approver is in a list that names people and groups.
func (s *Settings) names(list []string, name string) bool {
	return slices.ContainsFunc(s.Named(list), func(a Approver) bool { return a.Name == name })
}

// Among reports whether an approver is in a list that names people and groups. An approver by login is in
// the list only if the list names one of the approver's groups.
func (s *Settings) Among(list []string, who *Approver) bool {
	return slices.ContainsFunc(who.InGroups, func(g string) bool { return slices.Contains(list, g) }) || !who.ByLogin && s.names(list, who.Name)
}

// checkNames returns an error for a name in a list that is neither a person nor a group of the
// settings. The parameter at is the path of the list.
func (s *Settings) checkNames(at string, list []string) error {
	for i, name := range list {
		known := slices.ContainsFunc(s.People(), func(a Approver) bool { return a.Name == name }) ||
			slices.ContainsFunc(s.Groups(), func(g Group) bool { return g.Name == name })
		if !known {
			return invalid(fmt.Sprintf("%s[%d]", at, i), "%s is neither a person nor a group: see approvers.people and approvers.groups", quote(name))
		}
	}
	return nil
}

// checkGroups returns an error for a group whose name is also the name of a person or of another
// group. It also returns an error for a group that names a person who is no approver.
func (s *Settings) checkGroups() error {
	taken := map[string]bool{}
	for _, a := range s.People() {
		taken[a.Name] = true
	}
	people := len(taken)
	for i, g := range s.Groups() {
		at := fmt.Sprintf("approvers.groups[%d]", i)
		for j, name := range g.People {
			if !slices.ContainsFunc(s.People(), func(a Approver) bool { return a.Name == name }) {
				return invalid(fmt.Sprintf("%s.people[%d]", at, j), "%s is not one of the %d people in approvers.people", quote(name), people)
			}
		}
		if taken[g.Name] {
			return invalid(at+".name", "repeats the name of a person or of an earlier group")
		}
		taken[g.Name] = true
	}
	return nil
}
