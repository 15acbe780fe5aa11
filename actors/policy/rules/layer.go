package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/schemas"
)

// Layer is a set of rules for the calls of certain agents, hosts and projects.
type Layer struct {
	Match            schemas.PolicyMatch
	Deny, Ask, Allow []Rule
}

// Compile parses the rules of a layer. The argument at is the layer's path in the settings. An
// error about a rule begins with the rule's path.
func Compile(at string, l schemas.PolicyLayer) (Layer, error) {
	out := Layer{Match: l.Match}
	for _, list := range []struct {
		name  string
		rules []string
		into  *[]Rule
	}{{"deny", l.Permissions.Deny, &out.Deny}, {"ask", l.Permissions.Ask, &out.Ask}, {"allow", l.Permissions.Allow, &out.Allow}} {
		for i, text := range list.rules {
			r, err := Parse(text)
			if err != nil {
				return Layer{}, fmt.Errorf("%s.%s[%d]: %w", at, list.name, i, err)
			}
			if r.Placed != nil && list.name != "allow" {
				return Layer{}, fmt.Errorf("%s.%s[%d]: %q: a rule with a place can only allow: write the rule without it, in a layer of policies whose match names the project", at, list.name, i, text)
			}
			if r.url != "" && list.name != "allow" {
				return Layer{}, fmt.Errorf("%s.%s[%d]: %q: a rule with a whole address can only allow, because one address can be written in many ways: write %s(domain:HOST)", at, list.name, i, text, r.tool)
			}
			*list.into = append(*list.into, r)
		}
	}
	return out, nil
}

// Applies reports whether the layer applies to a call of this agent, on this host, at this location. The
// parameter tightens is true for deny and ask rules. Such rules also apply if a value that the layer
// restricts is unknown, or if the call runs in a directory of a matching project.
func (l *Layer) Applies(agent, host string, loc *pathname.Location, tightens bool) bool {
	return matchAny(l.Match.Agents, agent, tightens) && matchAny(l.Match.Hosts, host, tightens) && l.matchProject(loc, tightens)
}

// SetDir sets the directory of the project whose settings contain the layer. Relative paths in the
// layer's deny and ask rules may also begin in this directory.
func (l *Layer) SetDir(dir string) {
	for _, list := range [][]Rule{l.Ask, l.Deny} {
		for i := range list {
			list[i].dir = pathname.Clean(dir)
		}
	}
}

// Matches reports whether m matches a request of this agent, project and host. It returns false
// if m restricts a value that the request does not have.
func Matches(m schemas.PolicyMatch, agent, project, host string) bool {
	l := Layer{Match: m}
	return l.Applies(agent, host, &pathname.Location{Project: project}, false)
}

func matchAny(patterns []string, s string, tightens bool) bool {
	if len(patterns) == 0 || s == "" && tightens {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return s != "" && pathname.Match(p, s) })
}

func (l *Layer) matchProject(loc *pathname.Location, tightens bool) bool {
	if len(l.Match.Projects) == 0 {
		return true
	}
	if loc.Project == "" {
		return tightens
	}
	return slices.ContainsFunc(l.Match.Projects, func(p string) bool {
		dir := loc.Spelled(strings.TrimSuffix(p, "/**"))
		if len(dir) != 1 {
			return tightens
		}
		if loc.Project == dir[0] || strings.HasSuffix(p, "/**") && pathname.Within(loc.Project, dir[0]) {
			return true
		}
		return tightens && slices.ContainsFunc(loc.Dirs, func(d string) bool { return pathname.Within(d, dir[0]) })
	})
}
