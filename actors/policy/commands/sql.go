package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Finding is a harm that code may do, with the name of the object that it harms, or "".
type Finding struct {
	Harm
	Name string
}

var (
	changesAllRows   = Harm{schemas.RiskHigh, "changes every row: UPDATE without WHERE"}
	deletesAllRows   = Harm{schemas.RiskHigh, "deletes every row: DELETE without WHERE"}
	emptiesTable     = Harm{schemas.RiskHigh, "deletes every row: TRUNCATE"}
	changesRights    = Harm{schemas.RiskHigh, "changes who may use a database"}
	leavesDatabase   = Harm{schemas.RiskHigh, "runs programs or uses files of the database's server"}
	changesRows      = Harm{schemas.RiskMedium, "changes rows of a table"}
	deletesRows      = Harm{schemas.RiskMedium, "deletes rows of a table"}
	changesData      = Harm{schemas.RiskMedium, "adds or replaces data in a database"}
	changesStructure = Harm{schemas.RiskMedium, "changes the structure of a database"}
	tooMuchCode      = Harm{schemas.RiskHigh, "holds more code than nod can judge"}
)

// dropped are the objects of a database whose DROP loses data.
var dropped = strings.Fields("database schema table column keyspace collection partition tablespace")

// SQLFindings returns the harms of the statements in a text of SQL. It looks only for the words of the
// statements, outside strings and comments. Because MySQL writes strings and comments in its own way,
// SQLFindings reads the text both as MySQL does and as other databases do.
func SQLFindings(text string) (all []Finding) {
	if len(text) > maxCode {
		text, all = text[:maxCode], []Finding{{Harm: tooMuchCode}}
	}
	for _, mysql := range []bool{false, true} {
		for _, statement := range splitStatements(sqlTokens(text, mysql)) {
			for _, f := range statement.findings() {
				if !slices.Contains(all, f) {
					all = append(all, f)
				}
			}
		}
	}
	named := slices.Clone(all)
	return slices.DeleteFunc(all, func(f Finding) bool {
		return f.Name == "" && slices.ContainsFunc(named, func(o Finding) bool { return o.Harm == f.Harm && o.Name != "" })
	})
}

// The limits, in bytes, tokens and statements, up to which nod looks for harms in code.
const (
	maxCode   = 32 << 10
	maxClause = 1000
	maxVerbs  = 40
)

// sqlTokens returns the words and characters of SQL in lower case, without comments. The token "'" replaces
// each string.
func sqlTokens(text string, mysql bool) (tokens []string) {
	for i := 0; i < len(text); {
		c, rest := text[i], text[i:]
		end := i + 1
		switch {
		case c <= ' ':
		case strings.HasPrefix(rest, "--") && (!mysql || len(rest) == 2 || rest[2] <= ' '), mysql && c == '#':
			end = i + lineEnd(rest)
		case mysql && (strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "*/")): // MySQL runs such a comment
			end = i + 2 + len(rest[2:]) - len(strings.TrimLeft(rest[2:], "!0123456789"))
		case strings.HasPrefix(rest, "/*"):
			end = len(text)
			if at := strings.Index(rest[2:], "*/"); at >= 0 {
				end = i + 2 + at + 2
			}
		case c == '\'' || mysql && c == '"':
			end = i + quotedEnd(rest, mysql)
			tokens = append(tokens, "'")
		case c == '"' || c == '`':
			end = i + quotedEnd(rest, false)
			tokens = append(tokens, strings.ToLower(strings.Trim(text[i:end], "\"`")))
		case isNameByte(c):
			for end < len(text) && isNameByte(text[end]) {
				end++
			}
			tokens = append(tokens, strings.ToLower(text[i:end]))
		default:
			tokens = append(tokens, text[i:end])
		}
		i = end
	}
	return tokens
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

func lineEnd(text string) int {
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		return at
	}
	return len(text)
}

// quotedEnd returns the length of the quoted text at the beginning of a text. A doubled quote does not end
// the quoted text. If the argument escapes is true, a quote after a backslash does not end it either.
func quotedEnd(text string, escapes bool) int {
	for i := 1; i < len(text); i++ {
		switch {
		case escapes && text[i] == '\\':
			i++
		case text[i] == text[0] && i+1 < len(text) && text[i+1] == text[0]:
			i++
		case text[i] == text[0]:
			return i + 1
		}
	}
	return len(text)
}

type sqlStatement []string

func splitStatements(tokens []string) (all []sqlStatement) {
	from := 0
	for i, t := range tokens {
		if t == ";" {
			all = append(all, tokens[from:i])
			from = i + 1
		}
	}
	return append(all, tokens[from:])
}

// findings returns the harms of a statement and of the statements within it, as in WITH x AS (DELETE …).
func (s sqlStatement) findings() (all []Finding) {
	verbs := 0
	for i, t := range s {
		if slices.Contains(serverAccess, t) || s.leaves(i) {
			all = append(all, Finding{Harm: leavesDatabase})
		}
		if !slices.Contains(sqlVerbs, t) || slices.Contains(noVerbAfter, s.at(i-1)) {
			continue
		}
		if verbs++; verbs > maxVerbs {
			return append(all, Finding{Harm: tooMuchCode})
		}
		h, at := s.changeOfRows(i)
		if h == (Harm{}) {
			h, at = s.changeOfStructure(i)
		}
		if h != (Harm{}) {
			all = append(all, Finding{h, s.name(at)})
		}
	}
	return all
}

// changeOfRows returns the harm of the verb at the index i if this verb changes rows, and the index of the
// table's name.
func (s sqlStatement) changeOfRows(i int) (h Harm, at int) {
	next := s.skip(i+1, "only", "low_priority", "quick", "ignore", "or", "rollback", "abort", "fail", "replace")
	switch s[i] {
	case "update":
		if set := s.clause(next, "set"); set > next && s.clause(set, "=") > 0 {
			return s.worse(next, changesAllRows, changesRows), next
		}
	case "delete":
		from := s.clause(next, "from")
		if from == next || from > next && s.clause(next, "where")+s.clause(next, "join")+s.clause(next, "using") > 0 {
			from = s.skip(from+1, "only")
			return s.worse(from, deletesAllRows, deletesRows), from
		}
	case "truncate":
		name := s.skip(i+1, "table", "only")
		if s.at(i+1) == "table" || s.name(name) != "" && slices.Contains([]string{"", ",", "cascade", "restrict", "restart", "continue"}, s.at(s.afterName(name))) {
			return emptiesTable, name
		}
	case "insert", "replace", "merge":
		if into := s.skip(i+1, "or", "ignore", "replace"); s.at(into) == "into" || s.at(into) == "overwrite" {
			return changesData, into + 1
		}
	case "copy", "load":
		if i == 0 && (s[i] == "load" && s.at(1) == "data" || s[i] == "copy" && s.clause(1, "from") > 0) {
			return changesData, 1
		}
	}
	return Harm{}, 0
}

// changeOfStructure returns the harm of the verb at the index i if this verb changes more than rows, such as
// a table. It also returns the index of the changed object's name.
func (s sqlStatement) changeOfStructure(i int) (h Harm, at int) {
	kind := s.skip(i+1, "foreign", "external", "temporary", "temp", "unlogged", "or", "replace", "materialized", "unique", "global", "local")
	what := s.at(kind)
	switch s[i] {
	case "drop":
		if slices.Contains(dropped, what) {
			return Harm{schemas.RiskHigh, "deletes a whole " + what + ": DROP"}, s.skip(kind+1, "if", "exists", "concurrently", "by")
		}
	case "alter", "create", "rename", "reindex":
	case "grant", "revoke":
		if i == 0 && s.clause(i, "to")+s.clause(i, "from") > 0 {
			return changesRights, len(s)
		}
		return Harm{}, 0
	default:
		return Harm{}, 0
	}
	switch {
	case slices.Contains(accounts, what):
		return changesRights, len(s)
	case slices.Contains(structures, what), slices.Contains(dropped, what):
		return changesStructure, len(s)
	}
	return Harm{}, 0
}

// After one of the words in noVerbAfter, a verb such as update begins no statement.
var noVerbAfter = []string{"on", "for", "before", "after", "instead", "of", "grant", "revoke", ",", ".", "=", "to", "and", "can", "not", "how", "i", "you", "we", "please"}

var (
	accounts   = strings.Fields("user role login group policy")
	structures = strings.Fields("index view function procedure trigger type extension sequence constraint domain rule publication subscription server event")
)

// sqlVerbs are the words that begin the statements in which nod looks for harms.
var sqlVerbs = strings.Fields("update delete truncate drop alter create rename reindex grant revoke insert replace merge copy load")

// serverAccess are functions of databases that run programs or use files of the server.
var serverAccess = strings.Fields("xp_cmdshell sp_oacreate load_file pg_read_file pg_read_binary_file pg_ls_dir lo_import lo_export load_extension writefile readfile dblink dblink_exec sys_exec sys_eval")

// leaves reports whether the word at the index i makes the database's server or its client run a program or
// use a file.
func (s sqlStatement) leaves(i int) bool {
	before := s.at(i - 1)
	switch s[i] {
	default:
		return false
	case "program":
		return before == "to" || before == "from"
	case "outfile", "dumpfile":
		return before == "into"
	case "shell", "system":
		return before == "." && i == 1
	case "!", "copy":
		return before == `\`
	}
}

func (s sqlStatement) at(i int) string {
	if i < 0 || i >= len(s) {
		return ""
	}
	return s[i]
}

func (s sqlStatement) skip(i int, words ...string) int {
	for i < len(s) && slices.Contains(words, s[i]) {
		i++
	}
	return i
}

// clause returns the index of the first keyword at or after the index i, or 0 if there is none. A keyword in
// brackets does not count.
func (s sqlStatement) clause(i int, keyword string) int {
	depth := 0
	for last := min(len(s), i+maxClause); i < last && depth >= 0; i++ {
		switch s[i] {
		case "(":
			depth++
		case ")":
			depth--
		case keyword:
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}

// worse returns the argument all if no WHERE clause limits the rows, and otherwise the argument some. A
// WHERE clause that is always true limits nothing.
func (s sqlStatement) worse(i int, all, some Harm) Harm {
	where := s.clause(i, "where")
	if where == 0 {
		return all
	}
	rest := strings.Join(s[where+1:min(len(s), where+200)], " ")
	if alwaysTrue.MatchString(rest) {
		return all
	}
	return some
}

var alwaysTrue = lazyregexp.New(`^(?:\( )*(?:true|not false|1|1 = 1|' = ')(?: \))*(?:$| or | returning )|(?:^| )or (?:true|1 = 1|' = ')(?: |$)`)

// afterName returns the index after the name at the index i, which may have several parts.
func (s sqlStatement) afterName(i int) int {
	for s.at(i+1) == "." {
		i += 2
	}
	return i + 1
}

// name returns the name of a table or another object at the index i, or "" if it is no plain name.
func (s sqlStatement) name(i int) string {
	name := s.at(i)
	for i+2 < len(s) && s[i+1] == "." {
		i += 2
		name += "." + s[i]
	}
	if !objectName.MatchString(name) {
		return ""
	}
	return name
}

var objectName = lazyregexp.New(`^[a-z_][a-z0-9_$.-]{0,59}$`)
