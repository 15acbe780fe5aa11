package policy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// maxLine is the longest line of a stream, in bytes. A longer line is an error.
const maxLine = 4 << 20

// streamVerdict is one line of the output of CheckStream.
type streamVerdict struct {
	Verdict Effect       `json:"verdict"`
	Rule    string       `json:"rule"`
	Risk    schemas.Risk `json:"risk"`
	Reasons []string     `json:"reasons"`
	Reason  string       `json:"reason"`
}

// streamCall is one call in a stream, or one test case of TestFile.
type streamCall struct {
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	Cwd       string          `json:"cwd"`
	Command   string          `json:"command"` // in a test case, the command of a Bash call, in place of a name and an input
	Verdict   Effect          `json:"verdict"` // in a test case, the expected verdict
}

// fill returns the call of a line. The call base has the values for the fields that the line leaves out. If
// the line names a directory, fill calls locate, which sets the project for this directory.
func (a *streamCall) fill(base Call, locate func(*Call)) Call {
	base.ToolName, base.Input = a.ToolName, a.ToolInput
	if a.Cwd != "" {
		base.Cwd = a.Cwd
		locate(&base)
	}
	if a.ToolName == "" && a.Command != "" {
		base.ToolName = "Bash"
		base.Input, _ = schemas.Encode(map[string]string{"command": a.Command}) // encoding strings cannot fail
	}
	return base
}

// CheckStream reads calls {"tool_name","tool_input","cwd"}, one JSON object per line. It writes one verdict per
// line, in the same order, and skips blank lines. If a line is not such an object, its verdict is Ask. The call
// base has the fields that all calls share. The function locate sets the fields that depend on a call's
// directory. CheckStream returns an error if it cannot read or write, or if a line is longer than 4 MiB.
func (p *Policy) CheckStream(r io.Reader, w io.Writer, base Call, locate func(*Call)) error {
	out := bufio.NewWriter(w)
	err := eachLine(r, func(_ int, line []byte) error {
		v := Verdict{Effect: Ask, Rule: Default, Risk: schemas.RiskMedium, Reasons: []string{}, Why: "the line is not a JSON object with tool_name and tool_input"}
		var a streamCall
		if json.Unmarshal(line, &a) == nil && a.ToolName != "" {
			v = p.Check(a.fill(base, locate))
		}
		if v.Reasons == nil {
			v.Reasons = []string{}
		}
		raw, err := schemas.Encode(streamVerdict{v.Effect, v.Rule, v.Risk, v.Reasons, v.Why})
		if err != nil {
			return fmt.Errorf("write a verdict: %w", err)
		}
		if _, err := out.Write(append(raw, '\n')); err != nil {
			return fmt.Errorf("write a verdict: %w", err)
		}
		return nil
	})
	if flushErr := out.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write a verdict: %w", flushErr)
	}
	return err
}

// eachLine calls the function do for each line that is not blank. The argument n is the line's number; the
// first line has the number 1.
func eachLine(r io.Reader, do func(n int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := do(n, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read a line: %w", err)
	}
	return nil
}

// Mismatch is a test case whose verdict differs from the expected verdict.
type Mismatch struct {
	Line int    `json:"line"`
	Case string `json:"case"`
	Want Effect `json:"want"`
	Got  Effect `json:"got"`
	Rule string `json:"rule"`
	Why  string `json:"reason"`
}

// TestFile runs a user's own test cases, and returns the number of cases and the failed cases. A line is a
// verdict and a command ("allow git status"), or an object {"tool_name","tool_input","cwd","verdict"}.
// TestFile skips blank lines and lines that begin with #. If any other line is not a test case, the error has
// its number.
func (p *Policy) TestFile(r io.Reader, base Call, locate func(*Call)) (cases int, failed []Mismatch, err error) {
	err = eachLine(r, func(n int, line []byte) error {
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, "#") {
			return nil
		}
		var a streamCall
		if strings.HasPrefix(text, "{") {
			if err := json.Unmarshal(line, &a); err != nil {
				return fmt.Errorf("line %d is not a case: %w", n, err)
			}
		} else if at := strings.IndexAny(text, " \t"); at > 0 {
			a.Verdict, a.Command = Effect(text[:at]), strings.TrimSpace(text[at:])
		}
		if a.Verdict != Allow && a.Verdict != Ask && a.Verdict != Deny && a.Verdict != Contain || a.ToolName == "" && a.Command == "" {
			return fmt.Errorf("line %d is not a case: expected allow, contain, ask or deny and a command", n)
		}
		cases++
		if v := p.Check(a.fill(base, locate)); v.Effect != a.Verdict {
			failed = append(failed, Mismatch{n, text, a.Verdict, v.Effect, v.Rule, v.Why})
		}
		return nil
	})
	return cases, failed, err
}
