// Package tokens checks the OIDC tokens that CI systems and Kubernetes give to their jobs, and
// determines each job's agent name. It refuses every token that does not match its settings exactly.
package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
)

// Settings list the jobs whose tokens the service accepts.
type Settings struct {
	Jobs []Job `json:"jobs"`
}

// Job describes the tokens of a CI job or pod, and names its agent. A token belongs to the job if it
// has the issuer, the audience, and all claims of Match.
type Job struct {
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	// Match contains a pattern for the text of each claim; see the type pattern. A name that begins
	// with / is the path of a nested claim, such as /kubernetes.io/namespace.
	Match map[string]string `json:"match"`
	// Agent is the agent's name. It may contain the text of one claim, as in ci-{{repository_id}}.
	Agent string `json:"agent"`
	// CAFile is a PEM file with the certificates of the authority that signed the issuer's
	// certificate. It is empty if the system trusts that authority.
	CAFile string `json:"ca_file,omitempty"`

	match map[string]pattern
	agent agentName
}

// Read reads a file of settings and checks them. The message of its error is one line.
func Read(file string) (*Settings, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s with the settings of the token service: write it, or name another with --settings: docs/ci.md", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings of the token service: %w", err)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Parse decodes settings from JSON and checks them.
func Parse(text []byte) (*Settings, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var s Settings
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("not the settings of a token service: %w", inJSONWords(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more after the settings: remove it")
	}
	if len(s.Jobs) == 0 {
		return nil, errors.New("jobs is empty, so no token would be admitted: name a job")
	}
	for i := range s.Jobs {
		if err := s.Jobs[i].prepare(); err != nil {
			return nil, fmt.Errorf("jobs[%d]: %w", i, err)
		}
		for j := range i {
			if err := s.Jobs[j].beside(&s.Jobs[i]); err != nil {
				return nil, fmt.Errorf("jobs[%d] and jobs[%d]: %w", j, i, err)
			}
		}
	}
	return &s, nil
}

// inJSONWords returns an error of the JSON decoder in words of JSON instead of Go.
func inJSONWords(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	case !errors.As(err, &wrong):
		return err
	case wrong.Field == "":
		return fmt.Errorf("they are no object but a JSON %s", wrong.Value)
	}
	return fmt.Errorf("%s has a value of the wrong type, a JSON %s", wrong.Field, wrong.Value)
}

// prepare checks j and compiles the patterns of j.
func (j *Job) prepare() (err error) {
	if err := checkIssuer(j.Issuer); err != nil {
		return err
	}
	if strings.TrimSpace(j.Audience) == "" {
		return errors.New("audience is missing: name the one for which the job asks its token, such as nod")
	}
	if len(j.Match) == 0 {
		return fmt.Errorf("match is empty, and every job of everyone has a valid token of %s: name the claims of your own jobs", j.Issuer)
	}
	j.match = map[string]pattern{}
	specific := false
	for claim, text := range j.Match {
		p, err := parsePattern(text)
		if err != nil {
			return fmt.Errorf("match %q: %w", claim, err)
		}
		j.match[claim] = p
		specific = specific || p.specific
	}
	if !specific {
		return fmt.Errorf("match has only wildcards, and every job of everyone has a valid token of %s: name the claims of your own jobs", j.Issuer)
	}
	if err := j.namesOwner(); err != nil {
		return err
	}
	j.agent, err = parseAgent(j.Agent)
	return err
}

func checkIssuer(text string) error {
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return fmt.Errorf("the issuer %q is no URL: write it as the token's claim iss has it", text)
	}
	if !safeURL(at) {
		return fmt.Errorf("the issuer %s is not reached over TLS, so anyone on the way could make tokens: use https://", text)
	}
	return nil
}

// safeURL reports whether nobody in the network can change the reply from a URL, because the URL uses
// TLS or leads to this machine.
func safeURL(at *url.URL) bool {
	return at.Scheme == "https" || at.Scheme == "http" && loopback.Is(at.Hostname())
}

// sharedIssuers serve all users of a public service. ownerClaims are the claims of their tokens
// that name the owner of a job.
var (
	sharedIssuers = []string{"https://token.actions.githubusercontent.com", "https://gitlab.com"}
	ownerClaims   = []string{
		"repository_owner_id", "repository_owner", "repository_id", "repository", "enterprise_id", "enterprise",
		"namespace_id", "namespace_path", "project_id", "project_path", "sub",
	}
)

// namesOwner returns an error if the issuer is one of sharedIssuers and j could match the jobs of
// other owners.
func (j *Job) namesOwner() error {
	if !slices.Contains(sharedIssuers, strings.TrimSuffix(j.Issuer, "/")) {
		return nil
	}
	for _, claim := range ownerClaims {
		p, ok := j.match[claim]
		if ok && (p.exact || strings.Contains(p.start, "/")) {
			return nil
		}
	}
	return fmt.Errorf("match does not name your own repositories, and %s gives tokens to everyone's: add repository_owner_id or repository (GitHub), namespace_id or project_path (GitLab)", j.Issuer)
}

// beside returns an error if j and another job could give one agent name to different bearers. Both jobs
// may name the same agent if neither name contains a claim.
func (j *Job) beside(other *Job) error {
	if j.Issuer == other.Issuer && j.CAFile != other.CAFile {
		return fmt.Errorf("the issuer %s has two values of ca_file: give it one", j.Issuer)
	}
	if j.agent.claim == "" && other.agent.claim == "" {
		return nil // if both names are the same, the settings intend it
	}
	same := j.Issuer == other.Issuer && j.agent == other.agent
	if !same && j.agent.overlaps(other.agent) {
		return fmt.Errorf("the agents %q and %q can have the same name, so that one job could act as another: begin them differently", j.Agent, other.Agent)
	}
	return nil
}

// CouldName returns the first job whose claim could make its agent's name equal to agent. It skips
// jobs whose name contains no claim, because such a name is in the settings on purpose.
func (s *Settings) CouldName(agent string) (job int, ok bool) {
	for i, j := range s.Jobs {
		if j.agent.claim != "" && j.agent.overlaps(agentName{prefix: agent}) {
			return i, true
		}
	}
	return 0, false
}

// pattern matches the text of a claim. In a pattern, * stands for any text without / and :, and **
// for any text. All other characters stand for themselves.
type pattern struct {
	whole    lazyregexp.Regexp
	exact    bool
	start    string // the text before the first *
	specific bool   // the pattern contains a letter or a digit
}

func parsePattern(text string) (pattern, error) {
	if text == "" {
		return pattern{}, errors.New("the pattern is empty: write the claim's text, with * for a part of it")
	}
	if strings.Contains(text, "***") {
		return pattern{}, fmt.Errorf("%q: use * for a part without / and :, and ** for any text", text)
	}
	start, _, wild := strings.Cut(text, "*")
	expr := lazyregexp.New(`\*\*?|[^*]+`).FindAllString(text, -1)
	for i, part := range expr {
		switch part {
		case "*":
			expr[i] = "[^/:]*"
		case "**":
			expr[i] = ".*"
		default:
			expr[i] = regexp.QuoteMeta(part)
		}
	}
	return pattern{
		whole: lazyregexp.New(`(?s)\A(?:` + strings.Join(expr, "") + `)\z`), exact: !wild, start: start,
		specific: lazyregexp.New(`[\p{L}\p{N}]`).MatchString(text),
	}, nil
}

func (p pattern) matches(value string) bool { return value != "" && p.whole.MatchString(value) }

// agentName is the agent's name in a Job. The name is prefix or, if claim is set, prefix, the text of
// the claim, and suffix. It contains only one claim, because different texts of two claims could result
// in the same name.
type agentName struct{ prefix, claim, suffix string }

var agentTemplate = lazyregexp.New(`\A([A-Za-z0-9_-]*)(?:\{\{\s*([^{}\s]+)\s*\}\}([A-Za-z0-9_-]*))?\z`)

func parseAgent(text string) (agentName, error) {
	found := agentTemplate.FindAllStringSubmatch(text, 1)
	if found == nil {
		return agentName{}, fmt.Errorf("agent is %q: use 1 to 128 of A-Z, a-z, 0-9, _ and -, and at most one claim, as in ci-{{repository_id}}", text)
	}
	a := agentName{found[0][1], found[0][2], found[0][3]}
	if a.claim != "" && (len(a.prefix) < 2 || !strings.HasSuffix(a.prefix, "-")) {
		return agentName{}, fmt.Errorf("agent is %q, which lets a claim choose any name: begin it with a word of its own, as in ci-{{repository_id}}", text)
	}
	if a.claim == "" && !schemas.ValidID(a.prefix) {
		return agentName{}, errors.New("agent is missing: name the agent that the job is, such as ci-web")
	}
	return a, nil
}

// overlaps reports whether a and b can result in the same name.
func (a agentName) overlaps(b agentName) bool {
	if b.claim == "" {
		a, b = b, a
	}
	if a.claim == "" {
		rest, ok := strings.CutPrefix(a.prefix, b.prefix)
		rest, ok2 := strings.CutSuffix(rest, b.suffix)
		return ok && ok2 && rest != ""
	}
	return (strings.HasPrefix(a.prefix, b.prefix) || strings.HasPrefix(b.prefix, a.prefix)) &&
		(strings.HasSuffix(a.suffix, b.suffix) || strings.HasSuffix(b.suffix, a.suffix))
}

func (a agentName) of(claims map[string]any) (string, error) {
	if a.claim == "" {
		return a.prefix, nil
	}
	value, err := claimText(claims, a.claim)
	if err != nil {
		return "", err
	}
	name := a.prefix + value + a.suffix
	if !schemas.ValidID(value) || !schemas.ValidID(name) {
		return "", fmt.Errorf("its claim %s is %.80q, which cannot be in an agent's name", a.claim, value)
	}
	return name, nil
}

// claimText returns the text of a claim. It returns an error if the claim is missing, is empty
// or is no string.
func claimText(claims map[string]any, name string) (string, error) {
	var value any = claims[name]
	if path, ok := strings.CutPrefix(name, "/"); ok {
		value = claims
		for key := range strings.SplitSeq(path, "/") {
			within, _ := value.(map[string]any)
			value = within[key]
		}
	}
	switch text := value.(type) {
	case nil:
		return "", fmt.Errorf("it has no claim %s", name)
	case string:
		if text != "" {
			return text, nil
		}
	}
	return "", fmt.Errorf("its claim %s is no text", name)
}
