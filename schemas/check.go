package schemas

import (
	"fmt"
	"math"
	"slices"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// tagPattern is the pattern of permission tags in the JSON Schemas.
var tagPattern = lazyregexp.New(`^@(network(:[a-z0-9.-]+:[0-9]{1,5})?|(read|write):[^\x00-\x1f\x7f]+)$`)

const tagWords = "@read:<path>, @write:<path> or @network, without control characters"

// The check method of a message enforces those rules that the message's JSON Schema cannot express.

func (r *Request) check() error {
	if r.Kind == KindToolCall && r.ToolName == "" {
		return invalid("tool_name", "is missing; kind tool_call needs it")
	}
	if r.Kind != KindPermission { // only the engine checks the tags of permission requests, because its errors help agents more
		for i, tag := range r.Permissions {
			if !tagPattern.MatchString(tag) {
				return invalid(fmt.Sprintf("permissions[%d]", i), "must be %s", tagWords)
			}
		}
	}
	seen := make(map[string]bool, len(r.Options))
	for i, o := range r.Options {
		if seen[o.OptionID] {
			return invalid(fmt.Sprintf("options[%d].option_id", i), "repeats the id of an earlier option")
		}
		seen[o.OptionID] = true
	}
	return nil
}

func (a *Answer) check() error {
	if a.OptionID == "" && !a.Cancelled {
		return invalid("option_id", "is missing; an answer names an option or is cancelled")
	}
	if a.OptionID != "" && a.Cancelled {
		return invalid("cancelled", "cannot go with an option_id")
	}
	switch wider := a.Scope != "" && a.Scope != ScopeOnce; {
	case wider && a.UpdatedInput != nil:
		return invalid("scope", "an edited input can only be allowed once")
	case !wider && a.ForSeconds != 0:
		return invalid("for_seconds", "needs a scope beyond once")
	}
	message, err := Encode(a.Message) // the size limit is for the encoded message, because nod stores it encoded
	if err != nil {
		return invalid("message", "cannot be stored: %v", err)
	}
	if n := len(message) + len(a.UpdatedInput); n > MaxAnswerBytes {
		return invalid("updated_input", "and message are %d bytes together; the most is %d", n, MaxAnswerBytes)
	}
	return nil
}

// check refuses a decision with the outcome allowed whose option does not let the agent act.
func (d *Decision) check() error {
	if d.Outcome == Allowed && d.OptionKind != "" && !d.OptionKind.Allows() {
		return invalid("option_kind", "%s cannot go with outcome allowed", d.OptionKind)
	}
	return nil
}

func (p *Prompt) check() error {
	if p.SessionID != p.Request.SessionID || p.PendingID != p.Request.PendingID {
		return invalid("request", "has other ids than the prompt")
	}
	if err := within("request", p.Request.check()); err != nil {
		return err
	}
	return checkOptional("decision", p.Decision)
}

func (p *Page) check() error {
	for i := range p.Prompts {
		if err := within(fmt.Sprintf("prompts[%d]", i), p.Prompts[i].check()); err != nil {
			return err
		}
	}
	return nil
}

func (r *Record) check() error   { return checkOptional("decision", r.Decision) }
func (e *LogEntry) check() error { return checkOptional("decision", e.Decision) }

func (r *AwaitReply) check() error {
	for i, result := range r.Results {
		if err := checkOptional(fmt.Sprintf("results[%d].decision", i), result.Decision); err != nil {
			return err
		}
	}
	return nil
}

func checkOptional(path string, d *Decision) error {
	if d == nil {
		return nil
	}
	return within(path, d.check())
}

// The function within puts the path of an outer field in front of the path with which an error
// begins.
func within(path string, err error) error {
	if err == nil {
		return nil
	}
	return Errorf(CodeValidation, "%s.%v", path, err)
}

func (s *SettingsState) check() error { return within("settings", s.Settings.check()) }

// reachable returns an error for a confirmation rule that no approver can meet, because every request
// under such a rule would time out. The function outgoing reports whether a connector takes no answers.
func (s *Settings) reachable(outgoing func(connector string) bool) error {
	confirms := s.Confirms()
	for i := range confirms {
		c := &confirms[i]
		at := fmt.Sprintf("permissions.confirm[%d]", i)
		if i >= len(s.Permissions.Confirm) {
			at = "approvers.require"
		}
		if c.CodeWordEnv != "" && c.CodeWordFile != "" {
			return invalid(at, "name code_word_env or code_word_file, not both")
		}
		if word := s.CodeWordFor(c.Risk); c.CodeWord() && (word.CodeWordEnv != c.CodeWordEnv || word.CodeWordFile != c.CodeWordFile) {
			return invalid(at, "names another code word than a rule for the same risk: an answer has one code word")
		}
		if c.String() == "" {
			return invalid(at, "has no condition: name votes, people, not_requester, min_channel, second_device or a code word")
		}
		if len(c.Rules) > 0 && c.CodeWord() {
			return invalid(at, "names rules and a code word: a code word is for a whole risk")
		}
		if err := s.checkNames(at+".people", c.People); err != nil {
			return err
		}
		accepts := func(id Identity) bool { return c.Accepts(id.Connector) && !outgoing(id.Connector) }
		people := s.whoCouldAllow(c, accepts)
		if (len(s.People()) > 0 || s.ByLogin()) && people < c.Votes {
			return invalid(at, "takes the votes of %d people, and only %d could allow such a request: see identities and max_risk of approvers.people", c.Votes, people)
		} else if len(c.People) > 0 && people == 0 {
			return invalid(at, "takes %s, and none of them could allow such a request: see identities and max_risk of approvers.people", c.String())
		}
		if ids := s.Identities(); len(ids) > 0 && !slices.ContainsFunc(ids, accepts) && people == 0 {
			return invalid(at, "no approver has an identity that could allow: it takes %s", c.String())
		}
	}
	return nil
}

// whoCouldAllow returns the number of approvers who could allow a request under a rule. Such an approver
// may decide requests of the rule's risk, is among the rule's people, and has an identity that the
// function accepts allows.
func (s *Settings) whoCouldAllow(c *Confirm, accepts func(Identity) bool) (n int) {
	for _, a := range s.People() {
		if a.UpTo(c.Risk) && (len(c.People) == 0 || s.names(c.People, a.Name)) && slices.ContainsFunc(a.Identities, accepts) {
			n++
		}
	}
	groups := s.Groups()
	for i := range groups {
		if s.couldAllow(&groups[i], c, accepts) {
			return math.MaxInt // stands for no limit, because the settings do not say how many people are in the issuer's group
		}
	}
	return n
}

func (s *Settings) check() error {
	for _, check := range []func() error{s.checkGroups, s.checkEscalations, s.checkQuiet, s.checkLogins} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := s.reachable(func(string) bool { return false }); err != nil {
		return err
	}
	names := make(map[string]bool)
	owners := make(map[Identity]string)
	for i, a := range s.People() {
		if names[a.Name] {
			return invalid(fmt.Sprintf("approvers.people[%d].name", i), "repeats the name of an earlier approver")
		}
		names[a.Name] = true
		for j, id := range a.Identities {
			if owner, taken := owners[id]; taken {
				return invalid(fmt.Sprintf("approvers.people[%d].identities[%d]", i, j),
					"already belongs to %s; an identity belongs to one person and is listed once", quote(owner))
			}
			owners[id] = a.Name
		}
	}
	return nil
}
