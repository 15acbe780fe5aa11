package engine

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// confirmRule is a rule of permissions.confirm or approvers.require.
type confirmRule struct {
	schemas.Confirm
	calls *policy.Selection // the tool calls that the rule covers; nil for every request
}

func compileConfirms(s *schemas.Settings) ([]confirmRule, error) {
	var all []confirmRule
	for i, c := range s.Confirms() {
		calls, err := selectionOf(fmt.Sprintf("permissions.confirm[%d].rules", i), c.Rules)
		if err != nil {
			return nil, err
		}
		all = append(all, confirmRule{c, calls})
	}
	return all, nil
}

// selectionOf compiles the policy rules at a path of the settings into a selection of requests.
// Without rules it returns nil, which selects every request.
func selectionOf(at string, lines []string) (*policy.Selection, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	calls, err := policy.NewSelection(at, lines)
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeValidation, "%v", err)
	}
	return calls, nil
}

// selects reports whether a selection of the settings covers a request. A nil selection covers every
// request.
func (e *base) selects(calls *policy.Selection, agent string, r *schemas.Request) bool {
	return calls == nil || r.Kind == schemas.KindToolCall && calls.Covers(e.callOf(agent, r))
}

// conditions are the rules that an allow of one request must satisfy, from one version of the settings.
type conditions struct {
	settings *schemas.Settings
	agent    string
	request  *schemas.Request
	risk     schemas.Risk
	rules    []confirmRule // the rules that cover the request
	// votes is the number of people who must allow the request, at least 1. forTeams means that a rule
	// has a condition about people. newer means that one of the rules is unknown to older engines, which
	// do not know votes.
	votes           int
	forTeams, newer bool
}

// conditionsOf returns the conditions for allowing a request. Conditions about people do not apply to
// the answer to a question, because that answer grants nothing.
func (e *base) conditionsOf(now settingsSnapshot, agent string, r *schemas.Request, risk schemas.Risk) *conditions {
	c := &conditions{settings: now.settings, agent: agent, request: r, risk: risk, votes: 1}
	for _, rule := range now.confirms {
		if !rule.Wants(risk) || !e.selects(rule.calls, agent, r) {
			continue
		}
		if _, plan := r.Plan(); r.Kind == schemas.KindQuestion && !plan {
			rule.Votes, rule.People, rule.NotRequester = 0, nil, false
		}
		c.rules = append(c.rules, rule)
		c.votes = max(c.votes, rule.Votes)
		c.forTeams, c.newer = c.forTeams || rule.ForTeams(), c.newer || rule.Newer()
	}
	return c
}

// conditions returns the conditions for allowing a request that is being checked.
func (e *intake) conditions(s *askState) *conditions {
	return e.conditionsOf(s.settings, s.agent, &s.request, s.verdict.Risk)
}

// callOf returns the call of a request. A call from this machine gets this machine's home directory.
func (e *base) callOf(agent string, r *schemas.Request) policy.Call {
	call := policy.CallOf(agent, r)
	if e.isLocal(r) {
		call.Home = e.Home
	}
	return call
}

// texts lists the conditions for people, one text for each rule.
func (c *conditions) texts() []string {
	var all []string
	for i := range c.rules {
		if text := c.rules[i].String(); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// mayAllow returns FORBIDDEN if the settings do not let a person allow the request on a
// connector. It does not count votes or check a code word.
func (c *conditions) mayAllow(who *schemas.Approver, connector string) error {
	if !mayDecide(who, c.agent, c.request, c.risk) {
		return schemas.Errorf(schemas.CodeForbidden, "%s may not decide about a request of risk %s of this agent, project and host: see for and max_risk of approvers.people in settings.json", who.Name, c.risk)
	}
	for i := range c.rules {
		rule := &c.rules[i]
		if !rule.Accepts(connector) {
			return schemas.Errorf(schemas.CodeForbidden, "a request of risk %s is not allowed on %s: it takes %s", c.risk, connector, rule.String())
		}
		if len(rule.People) > 0 && !c.settings.Among(rule.People, who) {
			return schemas.Errorf(schemas.CodeForbidden, "a request of risk %s is not allowed by %s: it takes %s", c.risk, who.Name, rule.String())
		}
		if rule.NotRequester || rule.Votes > 1 {
			if err := c.settings.CountsApart(who); err != nil {
				return err
			}
		}
		if rule.NotRequester {
			if err := c.notRequester(who); err != nil {
				return err
			}
		}
	}
	return nil
}

// notRequester returns FORBIDDEN if the person's own agent sent the request, or if the settings do not
// say whose agent sent it.
func (c *conditions) notRequester(who *schemas.Approver) error {
	known := false
	people := c.settings.People()
	for i := range people {
		if !requestsAs(&people[i], c.agent, c.request) {
			continue
		}
		if known = true; people[i].Name == who.Name {
			return schemas.Errorf(schemas.CodeForbidden, "it takes another person than %s, whose own agent asks", who.Name)
		}
	}
	if !known {
		return schemas.Errorf(schemas.CodeForbidden, "it takes another person than the requester, and nod does not know whose agent %s (user %q, host %q) is: set requests of that person in approvers.people", c.agent, c.request.User, c.request.Host)
	}
	return nil
}

// requestsAs reports whether a request comes from one of a person's own agents.
func requestsAs(who *schemas.Approver, agent string, r *schemas.Request) bool {
	if own := &who.Requests; !own.Empty() {
		return rules.Matches(schemas.PolicyMatch{Agents: own.Agents, Hosts: own.Hosts}, agent, "", r.Host) &&
			rules.Matches(schemas.PolicyMatch{Agents: own.Users}, r.User, "", "")
	}
	return r.User != "" && slices.ContainsFunc(who.Identities, func(id schemas.Identity) bool { return schemas.IsViewer(id.Connector) && id.UserID == r.User })
}

// confirmedSettings reads the settings, and has a majority of the servers confirm that they are in
// force. Votes count by confirmed settings only, never by cached settings.
func (e *base) confirmedSettings(ctx context.Context) (settingsSnapshot, error) {
	for range confirmTries {
		if err := e.readSettings(ctx); err != nil {
			return settingsSnapshot{}, err
		}
		now := e.settings.now()
		err := e.store.Settings.Confirm(ctx, settingsKey, now.revision)
		if !errors.Is(err, bus.ErrMoved) {
			return now, err
		}
	}
	return settingsSnapshot{}, schemas.Errorf(schemas.CodeUnavailable, "the settings are just being changed; answer again")
}

// checkCodeWord returns FORBIDDEN if an allow lacks the code word that the settings demand.
func (c *conditions) checkCodeWord(said string) error {
	rule := c.settings.CodeWordFor(c.risk)
	if rule == nil {
		return nil
	}
	right, err := isCodeWord(rule, said)
	if err == nil && !right {
		err = schemas.Errorf(schemas.CodeForbidden, "a request of risk %s needs the code word, and this one is wrong or missing", c.risk)
	}
	return err
}

// isCodeWord reports whether a person has sent the code word of the settings. The comparison
// takes constant time.
func isCodeWord(c *schemas.Confirm, said string) (bool, error) {
	word, err := codeWord(c)
	return err == nil && subtle.ConstantTimeCompare([]byte(word), []byte(said)) == 1, err
}

// codeWord reads the code word from its file or environment variable. The engine reads the code word
// for each answer, because it may change at any time.
func codeWord(c *schemas.Confirm) (string, error) {
	word, from := os.Getenv(c.CodeWordEnv), c.CodeWordEnv
	if c.CodeWordFile != "" {
		data, err := os.ReadFile(c.CodeWordFile)
		if word, from = string(data), c.CodeWordFile; err != nil {
			return "", schemas.Errorf(schemas.CodeForbidden, "the code word cannot be read on the engine's machine, so nothing of this risk is allowed: %v", err)
		}
	}
	if word = strings.TrimSpace(word); word == "" {
		return "", schemas.Errorf(schemas.CodeForbidden, "there is no code word in %s on the engine's machine, so nothing of this risk is allowed", from)
	}
	return word, nil
}
