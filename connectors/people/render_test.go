package people

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

var update = flag.Bool("update", false, "write the golden files anew")

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test with -update to write it")
	require.Equal(t, string(want), got)
}

func TestTextGolden(t *testing.T) {
	ended := runs("make clean")
	ended.Decision = decided(schemas.Denied, schemas.RejectOnce, human("Bob", "web"), "use make clean")
	for name, p := range map[string]*schemas.Prompt{
		"edit_on_disk.txt": onDisk(edit(), `{"lines":120,"edits":[{"count":1,"hunks":[{"line":38,"around":["}\n\n","\n"]}]}]}`),
		"edit_everywhere.txt": onDisk(asks("Edit", schemas.ActionFileWrite, `{"file_path":"/workspace/a.go","old_string":"foo","new_string":"bar","replace_all":true}`),
			`{"lines":300,"edits":[{"count":9,"hunks":[{"line":7,"around":["a\nx := ","(","()) // ⟦\u202e\n"]},{"line":120,"around":["\t","()\n"]}]}]}`),
		"edit_not_there.txt": onDisk(edit(), `{"lines":4,"edits":[{"note":"the old text is not in the file"}]}`),
		"multiedit_on_disk.txt": onDisk(asks("MultiEdit", schemas.ActionFileWrite, `{"file_path":"/workspace/a.go","edits":[`+
			`{"old_string":"x := 1","new_string":"x := 2"},{"old_string":"x := 2","new_string":"x := 3"}]}`),
			`{"lines":3,"edits":[{"count":1,"hunks":[{"line":1,"around":["a\n","\nb\n"]}]},{"count":1,"hunks":[{"line":1,"around":["a\n","\nb\n"]}]}]}`),
		"write_on_disk.txt": onDisk(asks("Write", schemas.ActionFileWrite, `{"file_path":"/workspace/a.txt","content":"1\n2\n3\n4\n5\nsix\n7\n8\n9\n10\n11 \u202e\n12\n13\n14\n"}`),
			`{"lines":18,"changes":[{"line":6,"removed":"6\n","added":1},{"line":15,"removed":"15\n[redacted]\n","more":2}]}`),
		"write_same.txt":   onDisk(asks("Write", schemas.ActionFileWrite, `{"file_path":"/workspace/a.txt","content":"one\ntwo\n"}`), `{"lines":2}`),
		"write_new.txt":    onDisk(asks("Write", schemas.ActionFileWrite, `{"file_path":"/workspace/a.txt","content":"one\ntwo\n"}`), `{"new":true}`),
		"write_unread.txt": onDisk(asks("Write", schemas.ActionFileWrite, `{"file_path":"/workspace/a.txt","content":"one\ntwo\n"}`), `{"note":"the file is not text"}`),
		"notebook_on_disk.txt": onDisk(asks("NotebookEdit", schemas.ActionFileWrite, `{"notebook_path":"/workspace/a.ipynb","cell_id":"c1","new_source":"x = 2\nprint(x)"}`),
			`{"lines":2,"cell":true,"changes":[{"line":1,"removed":"x = 1\n","added":1}]}`),
		"command.txt": runs("rm -rf ."), "edit.txt": edit(), "tool.txt": tool(), "hostile.txt": hostile(),
		"permission.txt": permission(), "question.txt": question(), "decided.txt": ended,
		"fetch.txt": asks("WebFetch", schemas.ActionNetwork, `{"url":"https://github.com@files.example/x","prompt":"Summarise"}`),
		"write.txt": asks("Write", schemas.ActionFileWrite, `{"file_path":"/workspace/a.txt","content":"one\ntwo\n"}`),
		"multiedit.txt": asks("MultiEdit", schemas.ActionFileWrite, `{"file_path":"/workspace/a.go","edits":[`+
			`{"old_string":"x := 1","new_string":"x := 2"},{"old_string":"a","new_string":"","replace_all":true}]}`),
		"patch.txt": asks("apply_patch", schemas.ActionFileWrite, `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n-a\n+b\n*** End Patch"}`),
		"calls.txt": waits(3, runs("rm -rf .")), "remembered.txt": remembered(),
		"malformed.txt": asks("Bash", schemas.ActionCommand, `{"command":"ls","command":"rm -rf /"}`),
	} {
		t.Run(name, func(t *testing.T) { requireGolden(t, name, Text(p, now, 80)) })
	}
	t.Run("narrow.txt", func(t *testing.T) { requireGolden(t, "narrow.txt", Text(hostile(), now, 40)) })
	t.Run("brief.txt", func(t *testing.T) { requireGolden(t, "brief.txt", Layout(Brief(hostile(), now), 80)) })
}

// onDisk adds to p what nod has read of the file that a call writes.
func onDisk(p *schemas.Prompt, file string) *schemas.Prompt {
	p.OnDisk = new(schemas.DiskFile)
	if err := json.Unmarshal([]byte(file), p.OnDisk); err != nil {
		panic(err)
	}
	return p
}

// waits sets the number of identical calls that wait for an answer to p.
func waits(n int, p *schemas.Prompt) *schemas.Prompt {
	p.Waiters, p.Waiting = n, n
	return p
}

// remembered returns a prompt with options that make the agent remember the answer.
func remembered() *schemas.Prompt {
	p := runs("git status")
	p.Request.Options = append(schemas.DefaultOptions(),
		schemas.Option{OptionID: "always", Name: "Bash(git status:*) until this session ends", Kind: schemas.AllowAlways},
		schemas.Option{OptionID: "never", Name: "No, never", Kind: schemas.RejectAlways})
	return p
}

// ownRow matches a row that starts with a label of nod, or with the bar that marks a text of the
// agent.
var ownRow = regexp.MustCompile(`^((Request|Session|Agent|Wants|Calls|Where|Not shown|Host|Expires|Answers|Length) {3,}\S|` +
	`— .+|(?:low|medium|high|unknown)(?:: | risk$).*|(?:Call|Fetch|Read|Write|Edit)[0-9+− /a-z]* \S|Patch[0-9+− ]*$|Look first: [a-z0-9].*|(?:ba|z)?sh -l?c$|Permissions$|Input +\(none\)$|Input, as sent \([a-z' ]+\)$|Reason, in the agent's own words$|│ |  │ |  ┆ |┆ | {10}┆ | {12}[a-z (]|  \S|$)`)

func FuzzText(f *testing.F) {
	for _, p := range []*schemas.Prompt{hostile(), runs("rm -rf ."), edit()} {
		f.Add(string(p.Request.ActionDetails), p.Request.AgentName, p.Request.Title, p.Request.Reason, 80)
	}
	f.Add(`{"a\nRisk        low":1}`, "Answers", "\nAnswers     allow", "\u2028Risk", 1)
	f.Add(`[[[`, "", "", "", 0)
	f.Fuzz(func(t *testing.T, details, agent, title, reason string, width int) {
		p := asks(title, schemas.ActionCommand, details)
		p.Request.AgentName, p.Request.Title, p.Request.Reason, p.Request.Host = agent, title, reason, reason
		width = min(max(width, 0), 200)
		labels := map[string]int{}
		for row := range strings.Lines(Text(p, now, width)) {
			row = strings.TrimSuffix(row, "\n")
			requireVisible(t, row)
			require.Regexp(t, ownRow, row)
			if width > 0 {
				require.LessOrEqual(t, Cells(row), max(width, minWidth))
			}
			if m := ownRow.FindStringSubmatch(row); m[2] != "" {
				labels[m[2]]++
			}
		}
		for label, n := range labels {
			require.Equal(t, 1, n, "more than one row says %s", label)
		}
		if strings.TrimSpace(details) != "" {
			require.Less(t, Cells(Layout(Brief(p, now), 0)), 2000)
		}
	})
}

// At any width of the terminal, the rows contain the whole payload.
func TestPayloadIsWholeAtAnyWidth(t *testing.T) {
	commands := []string{
		"rm -rf .", strings.Repeat("漢字 x", 100), strings.Repeat("a", 20_000), "a\n\n b\t\n", strings.Repeat("\u202e\u200b", 90),
		strings.Repeat("שלום עולם ", 40), "  ", "x" + strings.Repeat("\n", 40) + "y",
	}
	for _, command := range commands {
		for _, width := range []int{0, 40, 41, 80, 200} {
			var text strings.Builder
			for _, row := range Rows(Parts(runs(command), now), width) {
				if !row.Look {
					text.WriteString(row.Text + "\n")
				}
			}
			rows, _, found := strings.Cut(text.String(), "\n"+captionMark)
			require.True(t, found)
			_, rows, found = strings.Cut(rows, "\n") // leave out the row with the headline
			require.True(t, found)
			var shown strings.Builder
			for row := range strings.SplitSeq(rows, "\n") {
				line, first := strings.CutPrefix(row, bar)
				if first && shown.Len() > 0 && !strings.HasSuffix(shown.String(), "line breaks⟧") {
					shown.WriteString(lineBreak)
				}
				shown.WriteString(strings.TrimPrefix(line, brokenBar))
			}
			require.Equal(t, command, readBack(t, shown.String()), "at width %d", width)
		}
	}
}

// The exact form of a payload (see people.Exact) contains every byte that the agent sent.
func FuzzTheExactFormHasEveryByte(f *testing.F) {
	for _, p := range []*schemas.Prompt{hostile(), runs("rm -rf .\n"), edit(), tool()} {
		f.Add(string(p.Request.ActionDetails))
	}
	f.Add("{\"a\":\"\\ud800\xff\r\n\u202e⟦2 spaces⟧   ")
	f.Fuzz(func(t *testing.T, details string) {
		parts := Exact(asks("T", schemas.ActionOther, details))
		require.Equal(t, details, readBack(t, strings.Join(parts[len(parts)-1].Lines, "")))
		for _, row := range Rows(parts, 60) {
			requireVisible(t, row.Text)
		}
	})
}

func TestEveryFieldOfTheInputAppears(t *testing.T) {
	for input, want := range map[string][]string{
		`{"command":"ls","timeout":5,"run_in_background":true,"x":null}`: {"command: “ls”\n", "timeout: 5", "run_in_background: true", "x: null"},
		`{"a":{"b":["c"]},"d":[]}`:                                       {"a (JSON)", `"c"`, "d (JSON)", "│ []"},
		`{"cwd":17,"command":""}`:                                        {"cwd: 17", "command: (empty)"},
		`{"cwd":""}`:                                                     {"cwd: (empty)", "(not said)"},
		`{"cwd":"/a","cwd":"/b"}`:                                        {"names a field twice", `"cwd": "/a"`, `"cwd": "/b"`},
		`{"c":"\uFFFD � \ud83d\ude00 \\ud800\n"}`:                        {"  c\n", `│ � � 😀 \ud800⏎`},
		`{"c":"\\\ud800\\ufffd"}`:                                        {"c (JSON)", `\\\ud800\\ufffd`},
		`{"c":"\ud800"}`:                                                 {"c (JSON)", `│ "\ud800"`},
		"{\"c\":\"\xff\"}":                                               {"c (JSON)", `⟦0xFF⟧`},
		`{"\ud800":1}`:                                                   {"a field's name is not valid text", `"\ud800": 1`},
		`{"":1,"a b":2,"(JSON)":3,"\"":4}`:                               {`"": 1`, `"a b": 2`, `"(JSON)": 3`, `"\"": 4`},
		`["rm"]`:                                                         {"not an object", `│   "rm"`},
		`"rm"`:                                                           {"not an object", `│ "rm"`},
		`{"command":"rm"`:                                                {"not an object", `│ {"command":"rm"`},
		`{"command":"rm"} x`:                                             {"not an object", `│ {"command":"rm"} x`},
		`{}`:                                                             {"Input       (none)"},
		`null`:                                                           {"Input       (none)"},
		``:                                                               {"Input       (none)"},
		`{"n":1` + strings.Repeat("0", 60) + `}`:                         {"n (JSON)", "│ 1" + strings.Repeat("0", 60)},
		`{"deep":` + strings.Repeat("[", 9000) + `"x"` + strings.Repeat("]", 9000) + `}`:                                         {"deep (JSON)", `["x"]`},
		`{"deep":["` + strings.Repeat("]", 9000) + `\"",` + strings.Repeat("[", 9000) + `"x"` + strings.Repeat("]", 9000) + `]}`: {"deep (JSON)", `["x"]`},
	} {
		text := Text(asks("T", schemas.ActionOther, input), now, 0)
		for _, part := range want {
			assert.True(t, strings.Contains(text, part), "%.200s does not show %s", input, part)
		}
		assert.Less(t, len(text), 200_000, "%.200s", input)
	}
}

func TestTheCommandIsShownBeforeItsDescription(t *testing.T) {
	text := Text(asks("Bash", schemas.ActionCommand, `{"description":"List files","command":"rm"}`), now, 80)
	assert.Less(t, strings.Index(text, "│ rm"), strings.Index(text, "description: “List files”"))
}

func TestExpiry(t *testing.T) {
	p := runs("ls")
	p.Deadline = now.Add(-time.Second)
	assert.Contains(t, Text(p, now, 80), "Expires     00:00 UTC, which has passed; unanswered, it is denied")
	p.Deadline = time.Time{}
	assert.Contains(t, Text(p, now, 80), "Expires     (not said)")
}

func TestFits(t *testing.T) {
	assert.True(t, Fits("漢✅", 2, utf8.RuneCountInString))
	assert.True(t, Fits("a😀", 3, UTF16))
	assert.False(t, Fits("a😀", 2, UTF16))
}

func TestTable(t *testing.T) {
	all := []schemas.Prompt{*runs("rm -rf ."), *edit(), *tool(), *hostile(), *permission(), *question()}
	for i, id := range []string{"perm-123", "toolu_01ABCDE", "toolu_01ABXYZ", "h-0123456789abcdef0123456789abcdef", "p-2", "q"} {
		all[i].PendingID = id
	}
	all[1].Request.CreatedAt = now.Add(-26 * time.Hour)
	all[2].Request.CreatedAt = now.Add(time.Hour)
	requireGolden(t, "table.txt", Table(all, now, 80))
	requireGolden(t, "table_wide.txt", Table(all, now, 130))
	requireGolden(t, "table_narrow.txt", Table(all, now, 50))
	for _, width := range []int{50, 60, 70, 80, 100, 130, 200} {
		for row := range strings.Lines(Table(all, now, width)) {
			assert.LessOrEqual(t, Cells(strings.TrimSuffix(row, "\n")), width)
		}
	}
	assert.Empty(t, Table(nil, now, 80))
}

func TestSummaryMarksThatItIsCut(t *testing.T) {
	for command, want := range map[string]string{
		"make":                       "make",
		"make all install test":      "make all ins⟦…⟧",
		"make\nrm -rf /":             "make⏎⟦…⟧",
		"make …":                     "make …",
		"ls\n\n\n\n\n\nrm":           "ls⟦…⟧",
		strings.Repeat("漢", 20):      strings.Repeat("漢", 6) + "⟦…⟧",
		strings.Repeat("a", 300_000): strings.Repeat("a", 12) + "⟦…⟧",
		"":                           "{\"command\":\"⟦…⟧",
	} {
		assert.Equal(t, want, Summary(runs(command), 15))
	}
}

func TestShortIDs(t *testing.T) {
	var prompts []schemas.Prompt
	for _, id := range []string{"abcdefgh1", "abcdefgh2", "xyz", "12345678901", "same-id-in-two", "same-id-in-two"} {
		prompts = append(prompts, schemas.Prompt{PendingID: id})
	}
	assert.Equal(t, []string{"abcdefgh1", "abcdefgh2", "xyz", "12345678", "same-id-in-two", "same-id-in-two"}, ShortIDs(prompts))
}

func TestInputOfAnyKindKeepsItsBytes(t *testing.T) {
	// If input does not split into fields, nod shows it as JSON, with escapes.
	p := asks("T", schemas.ActionOther, `{"x":{"u":"\u202e","q":"a\"b"}}`)
	require.True(t, json.Valid(p.Request.ActionDetails))
	assert.Contains(t, Text(p, now, 0), `"u": "\u202e"`)
	assert.Contains(t, Text(p, now, 0), `"q": "a\"b"`)
}

// Colours change no character on the terminal.
func TestPaintChangesNoCharacter(t *testing.T) {
	for _, p := range []*schemas.Prompt{hostile(), runs("rm -rf \"$A\" | sh # x"), edit(), tool()} {
		for _, row := range Rows(Parts(p, now), 60) {
			require.Equal(t, row.Text, row.Paint(func(_ payload.Style, s string) string { return s }))
		}
	}
	row := Rows(Parts(runs("rm -rf \u202ex"), now), 60)[1]
	assert.Equal(t, "│ <command rm> <flag -rf> <mark ⟦U+202E⟧>x", row.Paint(func(style payload.Style, s string) string { return "<" + string(style) + " " + s + ">" }))
}

// A person must see a plan and all other fields of its input before approving the plan, because
// the agent may then act on all of them.
func TestAPlanMustBeSeenWithAllThatItsApprovalCovers(t *testing.T) {
	p := &schemas.Prompt{SessionID: "s", PendingID: "q", Risk: schemas.RiskMedium, Request: schemas.Request{
		Kind: schemas.KindQuestion, ToolName: "ExitPlanMode", Title: "Plan: may the agent carry it out?",
		ActionDetails: []byte(`{"plan":"# Mend the build\n\n- run ` + "`make`" + `\n<b>\u202e\n","allowedPrompts":[{"tool":"Bash","prompt":"run tests"}]}`),
		Options: []schemas.Option{
			{OptionID: "a", Name: "Go on", Kind: schemas.AllowOnce}, {OptionID: "k", Name: "Keep planning", Kind: schemas.RejectOnce},
		},
	}}
	var seen []string
	for _, part := range Parts(p, time.Unix(0, 0)) {
		if part.Group == Essential {
			seen = append(seen, part.Label)
			seen = append(seen, part.Lines...)
		}
	}
	text := strings.Join(seen, "\n")
	for _, want := range []string{"# Mend the build\n", "- run `make`", "<b>⟦U+202E⟧", "allowedPrompts (JSON)", "run tests", "1: Go on\n2: Keep planning\n"} {
		assert.Contains(t, text, want)
	}
	assert.Equal(t, "# Mend the build⏎⟦…⟧", Summary(p, 40))
	assert.Contains(t, Text(p, time.Unix(0, 0), 0), "to carry out its plan")
	assert.NotContains(t, Text(p, time.Unix(0, 0), 0), "grants nothing")
}

// The explanation of an answer is below the answer.
func TestAnAnswerIsFollowedByItsMeaning(t *testing.T) {
	p := &schemas.Prompt{SessionID: "s", PendingID: "q", Request: schemas.Request{
		Kind: schemas.KindQuestion, Title: "Question", ToolName: "AskUserQuestion",
		ActionDetails: []byte(`{"question":"Which?","answers":[{"answer":"Postgres","meaning":"big\nand slow"},{"answer":"SQLite","meaning":""}]}`),
		Options: []schemas.Option{
			{OptionID: "a", Name: "Postgres", Kind: schemas.AllowOnce}, {OptionID: "b", Name: "SQLite", Kind: schemas.AllowOnce},
		},
	}}
	shown := Text(p, time.Unix(0, 0), 0)
	assert.Contains(t, shown, "1: Postgres\n               – big⏎and slow\n            2: SQLite\n")
	assert.NotContains(t, shown, "answers (JSON)", "the options say all of it")
	for _, odd := range []string{
		`[{"answer":"MySQL","meaning":"not offered"}]`, `[{"answer":"SQLite","meaning":"small"},{"answer":"SQLite","meaning":"else"}]`,
		`[{"answer":"SQLite","meaning":"small","also":"this"}]`, `[{"answer":"SQLite","meaning":"a","meaning":"b"}]`, `"SQLite"`,
	} {
		p.Request.ActionDetails = []byte(`{"question":"Which?","answers":` + odd + `}`)
		assert.Contains(t, Text(p, time.Unix(0, 0), 0), "answers", odd)
	}
}
