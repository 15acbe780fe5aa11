package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/schemas"
)

// layer is one set of rules and the calls that they are for.
type layer struct {
	match            schemas.PolicyMatch
	deny, ask, allow []rule
}

func compileLayer(at string, l schemas.PolicyLayer) (layer, error) {
	out := layer{match: l.Match}
	for _, list := range []struct {
		name  string
		rules []string
		into  *[]rule
	}{{"deny", l.Permissions.Deny, &out.deny}, {"ask", l.Permissions.Ask, &out.ask}, {"allow", l.Permissions.Allow, &out.allow}} {
		for i, text := range list.rules {
			r, err := parseRule(text)
			if err != nil {
				return layer{}, fmt.Errorf("%s.%s[%d]: %w", at, list.name, i, err)
			}
			*list.into = append(*list.into, r)
		}
	}
	return out, nil
}

// applies reports whether the layer is for this call. With tightens, for deny and ask rules,
// it applies as well if a field that the layer matches on is unknown, or if the call runs in
// a directory of a matching project.
func (l *layer) applies(c *Call, loc *pathname.Location, tightens bool) bool {
	return matchAny(l.match.Agents, c.Agent, tightens) && matchAny(l.match.Hosts, c.Host, tightens) && l.matchProject(loc, tightens)
}

// Matches reports whether m matches a request of this agent, project and host. If m restricts
// a field that is empty, Matches returns false.
func Matches(m schemas.PolicyMatch, agent, project, host string) bool {
	l := layer{match: m}
	return l.applies(&Call{Agent: agent, Host: host}, &pathname.Location{Project: project}, false)
}

func matchAny(patterns []string, s string, tightens bool) bool {
	if len(patterns) == 0 || s == "" && tightens {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return s != "" && pathname.Match(p, s) })
}

func (l *layer) matchProject(loc *pathname.Location, tightens bool) bool {
	if len(l.match.Projects) == 0 {
		return true
	}
	if loc.Project == "" {
		return tightens
	}
	return slices.ContainsFunc(l.match.Projects, func(p string) bool {
		dir := loc.Resolve(strings.TrimSuffix(p, "/**"))
		if len(dir) != 1 {
			return tightens
		}
		if loc.Project == dir[0] || strings.HasSuffix(p, "/**") && pathname.Within(loc.Project, dir[0]) {
			return true
		}
		return tightens && slices.ContainsFunc(loc.Dirs, func(d string) bool { return pathname.Within(d, dir[0]) })
	})
}
