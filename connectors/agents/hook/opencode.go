package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/tailscale/hujson"
)

// OpenCodeKind is OpenCode, or a program with the same settings and server. These programs have no
// hooks. An installation only makes the program ask its user for permission. The command `nod NAME`
// connects to the program's server and answers for the user.
type OpenCodeKind struct {
	Name  string // the name in `nod install NAME`, and that of the program and of its directory of settings
	Title string // the name for people
	files []string
}

// These are file names of the programs. If a program has several of its files, nod changes the first of
// them, because the program reads that file last.
var (
	OpenCode = OpenCodeKind{"opencode", "OpenCode", []string{"opencode.jsonc", "opencode.json"}}
	Kilo     = OpenCodeKind{"kilo", "Kilo", []string{"opencode.jsonc", "opencode.json", "kilo.jsonc", "kilo.json"}}
)

// OpenCodeKinds returns all programs of this kind.
func OpenCodeKinds() []OpenCodeKind { return []OpenCodeKind{OpenCode, Kilo} }

const openCodeSetting = "permission"

// askRules is a permission setting of OpenCode: a list of pairs of a tool and an effect. The last pair
// that matches counts.
type askRules [][2]string

var (
	// askEffects contains OpenCode's tools that run commands, change files or use the network. For the
	// other tools, OpenCode's defaults still apply.
	askEffects = askRules{{"bash", "ask"}, {"edit", "ask"}, {"webfetch", "ask"}, {"websearch", "ask"}}
	// askAll contains all tools, also those of MCP servers, but not questions, because they need no
	// permission.
	askAll = askRules{{"*", "ask"}, {"question", "allow"}}
)

// Install adds the setting that makes the program ask before it acts, or removes this setting. It returns
// the change, and keeps every other byte of the file. It does not change a permission setting of the user.
// Instead, a Warning says that the program will not ask nod about the calls that the user's setting allows.
func (k OpenCodeKind) Install(o InstallOptions) (Change, error) {
	path, err := k.settings(o)
	if err != nil {
		return Change{}, err
	}
	change, err := openChange(path)
	if err != nil {
		return Change{}, err
	}
	doc, err := parseJSONC(change.Path, change.Before)
	if err != nil {
		return Change{}, err
	}
	if o.Uninstall {
		change.After, change.Warning = doc.withoutAskRules(change.Before)
	} else {
		change.After, change.Warning = doc.withAskRules(change.Before, o.Strict)
		change.Note = fmt.Sprintf("start %s with a port, and nod beside it: %[2]s --port 4096, then nod %[2]s", k.Title, k.Name)
	}
	if o.DryRun {
		return change, nil
	}
	return change, change.Write()
}

// settings returns the path of the program's settings file. It is o.Settings, if that is not empty. If
// the program has several settings files, the path is that of the file that takes precedence.
func (k OpenCodeKind) settings(o InstallOptions) (string, error) {
	if o.Settings != "" {
		return filepath.Abs(o.Settings)
	}
	dir := "."
	if !o.Project {
		config := os.Getenv("XDG_CONFIG_HOME")
		if config == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("find %s's settings: %w; name the file with --settings", k.Title, err)
			}
			config = filepath.Join(home, ".config")
		}
		dir = filepath.Join(config, k.Name)
	}
	for _, name := range k.files {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return filepath.Abs(filepath.Join(dir, name))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find %s's settings: %w", k.Title, err)
		}
	}
	return filepath.Abs(filepath.Join(dir, k.Name+".json"))
}

// parseJSONC parses a settings file that may have comments and trailing commas.
func parseJSONC(path string, data []byte) (*document, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(bytes.Clone(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; correct it first, nothing was changed", path, err)
	}
	d := &document{path: path, source: data, root: root, indent: "  ", newline: "\n"}
	var ok bool
	if d.top, ok = root.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("%s holds no JSON object; correct it first, nothing was changed", path)
	}
	if bytes.Contains(data, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	if len(d.top.Members) > 0 {
		if in, multi := lastLine(d.top.Members[0].Name.BeforeExtra); multi && in != "" && strings.Trim(in, " \t") == "" {
			d.indent = in
		}
	}
	return d, nil
}

// withAskRules returns the file with nod's setting. If the file has no permission setting, nod's
// setting becomes its first member. If strict is true, askAll replaces askEffects. Any other permission
// setting stays, and the result is a warning.
func (d *document) withAskRules(before []byte, strict bool) (after []byte, warning string) {
	setting := askEffects
	if strict {
		setting = askAll
	}
	i := agents.Member(d.top, openCodeSetting)
	switch {
	case i < 0:
		at := d.afterBrace()
		return bytes.Join([][]byte{d.source[:at], d.formatted(setting), d.source[at:]}, nil), ""
	case strict && askEffects.is(d.top.Members[i].Value):
		without, _ := d.withoutAskRules(before)
		plain, err := parseJSONC(d.path, without)
		if err != nil {
			return before, err.Error()
		}
		return plain.withAskRules(without, strict)
	case askEffects.is(d.top.Members[i].Value), askAll.is(d.top.Members[i].Value):
		return before, ""
	}
	return before, fmt.Sprintf("%s has its own %q, which stays: nod is asked only about calls that it sets to \"ask\"", d.path, openCodeSetting)
}

// withoutAskRules returns the file without nod's setting, wherever in the file it is. If there are
// comments next to the setting, the setting stays, and the result is a warning.
func (d *document) withoutAskRules(before []byte) (after []byte, warning string) {
	at := d.afterBrace()
	for _, setting := range []askRules{askEffects, askAll} {
		if written := d.formatted(setting); bytes.HasPrefix(d.source[at:], written) {
			return append(bytes.Clone(d.source[:at]), d.source[at+len(written):]...), ""
		}
		i := agents.Member(d.top, openCodeSetting)
		if i < 0 || !setting.is(d.top.Members[i].Value) {
			continue
		}
		m := d.top.Members[i]
		if bytes.Contains(m.Name.BeforeExtra, []byte("/")) || bytes.Contains(m.Value.AfterExtra, []byte("/")) {
			return before, fmt.Sprintf("%s has comments around %q: remove it yourself", d.path, openCodeSetting)
		}
		removeMember(d.top, i)
		return d.bytes(), ""
	}
	return before, ""
}

func (d *document) afterBrace() int { return d.root.StartOffset + 1 }

// formatted returns nod's setting as text for the place after the opening brace of an object. The text is
// one line if the file is one line and has other members. It ends with a comma if other members follow.
func (d *document) formatted(setting askRules) []byte {
	fields := make([]string, len(setting))
	for i, s := range setting {
		fields[i] = fmt.Sprintf("%q: %q", s[0], s[1])
	}
	others := len(d.top.Members)
	if i := agents.Member(d.top, openCodeSetting); i >= 0 {
		others--
	}
	if others > 0 && !bytes.Contains(bytes.TrimSpace(d.source), []byte("\n")) {
		return fmt.Appendf(nil, "%q: {%s}, ", openCodeSetting, strings.Join(fields, ", "))
	}
	line := d.newline + d.indent
	inner := line + d.indent
	text := fmt.Sprintf("%s%q: {%s%s%s}", line, openCodeSetting, inner, strings.Join(fields, ","+inner), line)
	if others > 0 {
		return []byte(text + ",")
	}
	return []byte(text + d.newline)
}

// is reports whether v is this setting, apart from white space. It returns false if v contains a comment.
func (a askRules) is(v hujson.Value) bool {
	fields := make([]string, len(a))
	for i, s := range a {
		fields[i] = fmt.Sprintf("%q:%q", s[0], s[1])
	}
	v.BeforeExtra, v.AfterExtra = nil, nil
	return strings.Join(strings.Fields(string(v.Pack())), "") == "{"+strings.Join(fields, ",")+"}"
}
