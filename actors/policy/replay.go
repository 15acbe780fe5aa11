package policy

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// SessionCall is a tool call in a transcript, with the session to which it belongs.
type SessionCall struct {
	Session string
	Call
}

// ReadTranscript reads the tool calls of a transcript with one JSON object per line. The lines are from
// Claude Code or Codex, or are objects {"run","tool_name","tool_input","cwd"}. If a line of Claude Code or
// Codex names no session, its session is the argument name. ReadTranscript skips lines without a tool call.
// If a line is not JSON, the error has the line's number.
func ReadTranscript(r io.Reader, name string) ([]SessionCall, error) {
	t := transcript{session: name, projects: map[string]string{}}
	err := eachLine(r, func(n int, line []byte) error {
		var e transcriptLine
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d of %s is not JSON: %w", n, name, err)
		}
		t.entry(&e)
		return nil
	})
	return t.calls, err
}

// transcriptLine is a line in one of the formats that ReadTranscript reads.
type transcriptLine struct {
	Run       string          `json:"run"`
	Kind      string          `json:"kind"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`

	Type      string          `json:"type"`
	SessionID string          `json:"sessionId"`
	Cwd       string          `json:"cwd"`
	Message   json.RawMessage `json:"message"`
	Payload   json.RawMessage `json:"payload"`
}

type transcript struct {
	session, cwd string
	projects     map[string]string // for each session, the directory in which it began, or a parent directory to which it has changed
	calls        []SessionCall
}

func (t *transcript) add(session, cwd, tool string, input json.RawMessage) {
	dir := pathname.Clean(cwd)
	if p, ok := t.projects[session]; !ok || p == "" || !pathname.Within(dir, p) && pathname.Within(p, dir) {
		t.projects[session] = pathname.MainTree(dir)
	}
	project := t.projects[session]
	if !pathname.Within(pathname.MainTree(dir), project) {
		project = pathname.MainTree(dir)
	}
	t.calls = append(t.calls, SessionCall{session, Call{ToolName: tool, Input: input, Cwd: cwd, Project: project}})
}

func (t *transcript) entry(e *transcriptLine) {
	switch {
	case e.ToolName != "":
		if e.Kind != "agent-internal" {
			t.add(e.Run, e.Cwd, e.ToolName, e.ToolInput)
		}
	case e.Type == "assistant":
		t.claude(e)
	case e.Type == "session_meta" || e.Type == "turn_context":
		var meta struct{ ID, Cwd string }
		if json.Unmarshal(e.Payload, &meta) == nil {
			if t.cwd = meta.Cwd; meta.ID != "" && e.Type == "session_meta" {
				t.session = meta.ID
			}
		}
	case e.Type == "response_item":
		t.codex(e)
	}
}

func (t *transcript) claude(e *transcriptLine) {
	var m struct {
		Content []struct {
			Type  string
			Name  string
			Input json.RawMessage
		}
	}
	if json.Unmarshal(e.Message, &m) != nil {
		return // a message with only text has no calls
	}
	session := e.SessionID
	if session == "" {
		session = t.session
	}
	for _, c := range m.Content {
		if c.Type == "tool_use" && !promptlessTools[c.Name] {
			t.add(session, e.Cwd, c.Name, c.Input)
		}
	}
}

func (t *transcript) codex(e *transcriptLine) {
	var item struct {
		Type, Name, Arguments, Input string
		Action                       struct {
			Command          []string
			WorkingDirectory string `json:"working_directory"`
		}
	}
	if json.Unmarshal(e.Payload, &item) != nil {
		return // an item of another form is not a tool call
	}
	switch item.Type {
	case "function_call":
		if !promptlessTools[item.Name] {
			t.add(t.session, t.cwd, item.Name, json.RawMessage(item.Arguments))
		}
	case "custom_tool_call":
		raw, _ := schemas.Encode(map[string]string{"input": item.Input}) // encoding strings cannot fail
		t.add(t.session, t.cwd, item.Name, raw)
	case "local_shell_call":
		raw, _ := schemas.Encode(map[string]any{"command": item.Action.Command, "workdir": item.Action.WorkingDirectory})
		t.add(t.session, t.cwd, "shell", raw)
	}
}

// promptlessTools are tools for which hosts ask no permission, because an agent uses them on itself or to
// talk to its user.
var promptlessTools = map[string]bool{
	"Task": true, "Agent": true, "Skill": true, "AskUserQuestion": true, "ExitPlanMode": true, "EnterPlanMode": true, "SendMessage": true, "TaskStop": true,
	"TeamCreate": true, "TeamDelete": true, "TodoWrite": true, "TodoRead": true, "TaskCreate": true, "TaskUpdate": true, "TaskGet": true, "TaskList": true,
	"TaskOutput": true, "ToolSearch": true, "update_plan": true, "write_stdin": true, "ask_user": true,
}

// Replayed counts what one preset would have done with the calls of a replay.
type Replayed struct {
	Preset    string `json:"preset"`
	Sessions  int    `json:"sessions"`
	Calls     int    `json:"calls"`
	Allowed   int    `json:"allowed"`
	Asked     int    `json:"asked"`
	Denied    int    `json:"denied"`
	Contained int    `json:"contained"` // calls that run contained without a question
	// Lacking counts the calls about which nod asks only because the transcript lacks their input or their
	// directory. They are part of Asked, but not of the medians and percentiles.
	Lacking int `json:"lacking"`
	Median  int `json:"median"` // the median number of prompts in a session
	P90     int `json:"p90"`
	// MedianAnswered and P90Answered are like Median and P90, for a person who allows each prompt for its
	// session with the widest answer that nod offers. Later calls that such an answer covers cause no prompt.
	MedianAnswered int            `json:"median_answered"`
	P90Answered    int            `json:"p90_answered"`
	AllowedBy      map[string]int `json:"allowed_by_tool"`
	AskedFor       map[string]int `json:"asked_for"`   // the number of prompts by kind of reason
	LeftFor        map[string]int `json:"left_for"`    // the number of remaining prompts, as in P90Answered, by kind of reason
	Suggestions    []Suggestion   `json:"suggestions"` // the rules that would have spared the most prompts, over all projects
}

// Replay checks the calls under each preset with the given permissions, and counts the prompts. For each
// preset it suggests the rules, at most limit, that would have saved the most prompts.
func Replay(calls []SessionCall, perms schemas.Permissions, limit int) ([]Replayed, error) {
	var out []Replayed
	for _, preset := range []string{PresetDesign, PresetReaders, PresetProject, PresetContained} {
		perms.Preset = preset
		p, err := New(perms)
		if err != nil {
			return nil, fmt.Errorf("replay preset %s: %w", preset, err)
		}
		r := p.replay(calls)
		r.Preset = preset
		flat := make([]Call, len(calls))
		for i := range calls {
			flat[i] = calls[i].Call
		}
		r.Suggestions = p.Suggest(flat, limit)
		out = append(out, r)
	}
	return out, nil
}

func (p *Policy) replay(calls []SessionCall) Replayed {
	r := Replayed{Calls: len(calls), AllowedBy: map[string]int{}, AskedFor: map[string]int{}, LeftFor: map[string]int{}}
	prompts, answered := map[string]int{}, map[string]int{}
	sessions := map[string]*answeredSession{}
	for _, c := range calls {
		prompts[c.Session] += 0
		answered[c.Session] += 0
		switch v := p.Check(c.Call); v.Effect {
		case Allow:
			r.Allowed++
			r.AllowedBy[tools.Named(c.ToolName).Name]++
		case Contain:
			r.Contained++
		case Deny:
			r.Denied++
		default:
			r.Asked++
			if c.lacks(v) {
				r.Lacking++
				r.AskedFor[lacking]++
				continue
			}
			kind := v.kindOfReason(tools.Named(c.ToolName).Kind)
			r.AskedFor[kind]++
			prompts[c.Session]++
			if sessions[c.Session] == nil {
				sessions[c.Session] = &answeredSession{policy: p}
			}
			if sessions[c.Session].asks(c.Call, v) {
				answered[c.Session]++
				r.LeftFor[kind]++
			}
		}
	}
	r.Sessions = len(prompts)
	r.Median, r.P90 = middle(prompts)
	r.MedianAnswered, r.P90Answered = middle(answered)
	return r
}

// lacking is the kind of the prompts that have no other cause than a gap in the transcript.
const lacking = "calls whose input or directory the transcript lacks"

// lacks reports whether nod asks about a call because the transcript lacks the call's input or directory. For
// a tool that nod does not know, an empty input is no gap.
func (c *SessionCall) lacks(v Verdict) bool {
	if v.Rule == secretsRule {
		return false
	}
	kind := tools.Named(c.ToolName).Kind
	return kind != tools.Unknown && (string(c.Input) == "{}" || len(c.Input) == 0 || c.Cwd == "" && c.Project == "")
}

// middle returns the median and the 90th percentile of the counts of all sessions, or 0 if there are no
// sessions.
func middle(bySession map[string]int) (median, p90 int) {
	counts := slices.Sorted(maps.Values(bySession))
	if len(counts) == 0 {
		return 0, 0
	}
	return counts[(len(counts)-1)/2], counts[(len(counts)-1)*9/10]
}

// answeredSession is a replayed session whose user allows each question for the whole session.
type answeredSession struct {
	policy  *Policy // includes the rules of the answers given so far
	granted []Permission
}

// asks reports whether nod asks about a call although the user has answered earlier calls. The argument v is
// the verdict without these answers. If nod asks, asks adds nod's widest answer for the call to the session.
func (s *answeredSession) asks(c Call, v Verdict) bool {
	if v.Containment != nil {
		missing := slices.DeleteFunc(v.Containment.Needs(), func(p Permission) bool { return slices.Contains(s.granted, p) })
		s.granted = append(s.granted, missing...)
		return len(missing) > 0
	}
	if s.policy.Check(c).Effect != Ask {
		return false
	}
	if reaches := s.policy.Remember(c); len(reaches) > 0 {
		s.policy = s.policy.WithReach(&reaches[len(reaches)-1])
	}
	return true
}

// kindOfReason returns the kind of the reason for a prompt.
func (v Verdict) kindOfReason(kind tools.Kind) string {
	switch {
	case v.Rule == secretsRule:
		return "secrets and settings"
	case kind == tools.Unknown:
		return "tools that nod does not know, such as those of MCP servers"
	case kind == tools.Edit:
		return "edits outside the project, or of protected files"
	case kind != tools.Shell:
		return "reads outside the project"
	case v.Containment != nil && strings.Contains(v.Why, "@network"):
		return "the network"
	case v.Containment != nil:
		return "files outside the project"
	case strings.Contains(v.Why, "your login"):
		return "a login"
	case strings.Contains(v.Why, "runs outside the project"), strings.Contains(v.Why, "project's directory"):
		return "the project is not known"
	case v.Rule != Default:
		return "rules"
	}
	return "work that could be lost, and what nod cannot bound"
}

// String formats the replay for a person.
func (r Replayed) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s %d calls in %d sessions: %d allowed, %d contained, %d asked, %d denied; prompts per session: median %d, 90%% up to %d (%d and %d if each is allowed for its session)\n",
		r.Preset, r.Calls, r.Sessions, r.Allowed, r.Contained, r.Asked, r.Denied, r.Median, r.P90, r.MedianAnswered, r.P90Answered)
	if r.Lacking > 0 {
		fmt.Fprintf(&b, "         without %d asked calls in these numbers, whose input or directory the transcript lacks\n", r.Lacking)
	}
	if r.Preset == PresetContained {
		for _, kind := range slices.Sorted(maps.Keys(r.AskedFor)) {
			left := ""
			if n := r.LeftFor[kind]; n < r.AskedFor[kind] && kind != lacking {
				left = fmt.Sprintf(" (%d if each is allowed for its session)", n)
			}
			fmt.Fprintf(&b, "         asks %3d: %s%s\n", r.AskedFor[kind], kind, left)
		}
	}
	for _, s := range r.Suggestions {
		fmt.Fprintf(&b, "         spares %3d: %s\n", s.Spares, s.Rule.Quoted())
		for _, also := range s.Also {
			fmt.Fprintf(&b, "                     also allows: %s\n", also)
		}
	}
	return b.String()
}
