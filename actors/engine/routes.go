package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/schemas"
)

func (e *intake) route(ctx context.Context, s *askState) (_ result, err error) {
	s.plan.routes, err = e.routes(ctx, s)
	return result{}, err
}

// routes returns the routes to the approvers who are asked about a request. Without a route, the error
// is UNDELIVERABLE, and its message names the fix.
func (e *intake) routes(ctx context.Context, s *askState) ([]schemas.Route, error) {
	var routes []schemas.Route
	inbox := false
	carriers := map[string]bool{}
	people := s.settings.settings.People()
	for _, t := range e.turns(s) {
		for _, id := range t.who.Identities {
			routes = append(routes, schemas.Route{Connector: id.Connector, Recipient: id.UserID, AfterSeconds: inSeconds(t.after)})
			if e.outgoing(id.Connector) {
				continue // an outgoing channel takes no answers
			}
			if carriers[id.Connector] = !schemas.IsViewer(id.Connector); !carriers[id.Connector] {
				inbox = true
			}
		}
	}
	groups := s.settings.settings.Groups()
	for i := range groups {
		// The people in an issuer's group are unknown before they log in, so the route is to the group.
		// They see the request in the web inbox.
		if who := groups[i].Limits(); len(groups[i].OIDCGroups) > 0 && mayDecide(&who, s.agent, &s.request, s.verdict.Risk) {
			routes, inbox = append(routes, schemas.Route{Connector: schemas.ConnectorWeb, Recipient: who.Name}), true
		}
	}
	switch {
	case len(people) == 0 && !s.settings.settings.ByLogin():
		return nil, schemas.Errorf(schemas.CodeUndeliverable, "there is no approver: approvers.people in settings.json is empty; add yourself and run `nod settings apply`")
	case len(routes) == 0:
		return nil, schemas.Errorf(schemas.CodeUndeliverable, "no approver may decide about a request of risk %s of this agent, project and host: see for and max_risk of approvers.people in settings.json", s.verdict.Risk)
	case inbox:
		return routes, nil
	}
	for _, c := range slices.Sorted(maps.Keys(carriers)) {
		live, err := e.store.Presence.LiveKeys(ctx, "worker."+c+".*")
		if err != nil {
			return nil, err
		}
		if len(live) > 0 {
			return routes, nil
		}
	}
	return nil, schemas.Errorf(schemas.CodeUndeliverable, "no approver can be shown the question: no connector that reaches an approver is running; start one with `nod connector NAME`")
}

// mayDecide reports whether the settings let an approver decide about a request.
func mayDecide(who *schemas.Approver, agent string, r *schemas.Request, risk schemas.Risk) bool {
	return who.UpTo(risk) && rules.Matches(who.For, agent, r.Project, r.Host)
}
