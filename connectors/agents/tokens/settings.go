// Package tokens checks the OIDC tokens that CI systems and Kubernetes give to their jobs, and names
// the agent that a job is. It refuses every token that does not match its settings exactly.
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

// Settings name the jobs that are admitted.
type Settings struct {
	Jobs []Job `json:"jobs"`
}

// Job describes tokens, and the agent that their bearer is. A token must have all of it: the issuer,
// the audience, and each claim in Match.
type Job struct {
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	// Match has a pattern for each claim; see Pattern. A claim that begins with / is a path, such as
	// /kubernetes.io/namespace.
	Match map[string]string `json:"match"`
	// Agent is the agent's name. It may contain one claim, as in ci-{{repository_id}}.
	Agent string `json:"agent"`
	// CAFile has the certificates of the issuer's authority, in PEM, if the system does not know it.
	CAFile string `json:"ca_file,omitempty"`

	match map[string]pattern
	agent agentName
}

// Read reads and checks a file of settings. The error is one line.
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

// Parse checks settings.
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

// inJSONWords returns the decoder's error without Go's words.
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

// prepare checks j, and compiles its patterns.
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

// safeURL reports whether a URL is reached over TLS or on this machine: nobody on the way can change the
// reply.
func safeURL(at *url.URL) bool {
	return at.Scheme == "https" || at.Scheme == "http" && loopback.Is(at.Hostname())
}

// The claims that name the owner of a job at the issuers that serve everyone.
var (
	sharedIssuers = []string{"https://token.actions.githubusercontent.com", "https://gitlab.com"}
	ownerClaims   = []string{
		"repository_owner_id", "repository_owner", "repository_id", "repository", "enterprise_id", "enterprise",
		"namespace_id", "namespace_path", "project_id", "project_path", "sub",
	}
)

// namesOwner returns an error if j matches jobs of several owners at an issuer that serves everyone.
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

// beside returns an error if the two jobs could give the same name to different bearers. Two jobs may have
// the same name if both names are without a claim.
func (j *Job) beside(other *Job) error {
	if j.Issuer == other.Issuer && j.CAFile != other.CAFile {
		return fmt.Errorf("the issuer %s has two values of ca_file: give it one", j.Issuer)
	}
	if j.agent.claim == "" && other.agent.claim == "" {
		return nil // a name that is written twice is meant
	}
	same := j.Issuer == other.Issuer && j.agent == other.agent
	if !same && j.agent.overlaps(other.agent) {
		return fmt.Errorf("the agents %q and %q can have the same name, so that one job could act as another: begin them differently", j.Agent, other.Agent)
	}
	return nil
}

// CouldName returns the first job whose claim could give its bearer this name. A name that is written
// in the settings as it is does not count: it is given on purpose.
func (s *Settings) CouldName(agent string) (job int, ok bool) {
	for i, j := range s.Jobs {
		if j.agent.claim != "" && j.agent.overlaps(agentName{prefix: agent}) {
			return i, true
		}
	}
	return 0, false
}

// pattern is the text of a claim: as it is, or with * for any text without / and :, and ** for any
// text.
type pattern struct {
	whole    lazyregexp.Regexp
	exact    bool
	start    string // the text before the first *
	specific bool   // the pattern has a letter or a digit
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

// agentName is the name of an agent: prefix, or if claim is set, prefix, the claim's text, suffix. With
// two claims, different texts could make one name.
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

// overlaps reports whether both can be the same name.
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

// claimText returns a claim, which must be a text that is not empty.
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
