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
)

// dropped are the objects of a database whose DROP loses data.
var dropped = strings.Fields("database schema table column keyspace collection partition tablespace")

// SQLFindings returns the harms of the statements in a text of SQL. It looks only for the words of the
// statements, outside strings and comments. Databases disagree about both, so it reads the text in two ways.
func SQLFindings(text string) (all []Finding) {
	text = text[:min(len(text), maxCode)]
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

// maxCode is the length, in bytes, up to which nod looks for harms in code.
const maxCode = 64 << 10

// sqlToken matches a comment, a string, a name, or another character. The names in quotes of a statement
// count as names.
var (
	sqlToken      = lazyregexp.New(`(?s)--[^\n]*|/\*.*?(?:\*/|$)|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|[A-Za-z_][\w$]*|\d[\w.]*|\S`)
	sqlTokenMySQL = lazyregexp.New("(?s)--[ \\t\\n][^\\n]*|#[^\\n]*|/\\*[^!].*?(?:\\*/|$)|/\\*!\\d*|\\*/|'(?:[^'\\\\]|\\\\.|'')*(?:'|$)|\"(?:[^\"\\\\]|\\\\.|\"\")*(?:\"|$)|`[^`]*(?:`|$)|[A-Za-z_][\\w$]*|\\d[\\w.]*|\\S")
)

// sqlTokens returns the words and characters of SQL in lower case, without comments. Each string is "'".
func sqlTokens(text string, mysql bool) (tokens []string) {
	expr := sqlToken
	if mysql {
		expr = sqlTokenMySQL
	}
	for _, t := range expr.FindAllString(text, -1) {
		switch {
		case strings.HasPrefix(t, "--"), strings.HasPrefix(t, "/*"), t == "*/", mysql && t[0] == '#':
		case t[0] == '\'', mysql && t[0] == '"':
			tokens = append(tokens, "'")
		case t[0] == '"', t[0] == '`':
			tokens = append(tokens, strings.ToLower(strings.Trim(t, "\"`")))
		default:
			tokens = append(tokens, strings.ToLower(t))
		}
	}
	return tokens
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

// findings returns the harms of one statement, also of those within it, as in WITH x AS (DELETE …).
func (s sqlStatement) findings() (all []Finding) {
	add := func(h Harm, at int) { all = append(all, Finding{h, s.name(at)}) }
	for i, t := range s {
		before, next := s.at(i-1), s.skip(i+1, "only", "low_priority", "quick", "ignore", "or", "rollback", "abort", "fail", "replace")
		kind := s.skip(i+1, "foreign", "external", "temporary", "temp", "unlogged", "or", "replace", "materialized", "unique", "global", "local")
		if serverAccess.MatchString(t) || t == "program" && (before == "to" || before == "from") || (t == "outfile" || t == "dumpfile") && before == "into" || before == `\` && (t == "!" || t == "copy") || before == "." && (t == "shell" || t == "system") {
			add(leavesDatabase, len(s))
		}
		if slices.Contains(noVerbAfter, before) {
			continue
		}
		switch t {
		case "update":
			if set := s.clause(next, "set"); set > next && s.clause(set, "=") > 0 {
				add(s.worse(next, changesAllRows, changesRows), next)
			}
		case "delete":
			from := s.clause(next, "from")
			if from == next || from > next && s.clause(next, "where")+s.clause(next, "join")+s.clause(next, "using") > 0 {
				from = s.skip(from+1, "only")
				add(s.worse(from, deletesAllRows, deletesRows), from)
			}
		case "truncate":
			name := s.skip(i+1, "table", "only")
			if s.at(i+1) == "table" || s.name(name) != "" && slices.Contains([]string{"", ",", "cascade", "restrict", "restart", "continue"}, s.at(s.afterName(name))) {
				add(emptiesTable, name)
			}
		case "drop":
			switch what := s.at(kind); {
			case slices.Contains(dropped, what):
				add(Harm{schemas.RiskHigh, "deletes a whole " + what + ": DROP"}, s.skip(kind+1, "if", "exists", "concurrently", "by"))
			case slices.Contains(accounts, what):
				add(changesRights, len(s))
			case slices.Contains(structures, what):
				add(changesStructure, len(s))
			}
		case "alter", "create", "rename", "reindex":
			if slices.Contains(accounts, s.at(kind)) {
				add(changesRights, len(s))
			} else if slices.Contains(structures, s.at(kind)) || slices.Contains(dropped, s.at(kind)) {
				add(changesStructure, len(s))
			}
		case "grant", "revoke":
			if i == 0 && s.clause(i, "to")+s.clause(i, "from") > 0 {
				add(changesRights, len(s))
			}
		case "insert", "replace", "merge":
			if into := s.skip(i+1, "or", "ignore", "replace"); s.at(into) == "into" || s.at(into) == "overwrite" {
				add(changesData, into+1)
			}
		case "copy", "load":
			if i == 0 && (t == "load" && s.at(1) == "data" || t == "copy" && s.clause(1, "from") > 0) {
				add(changesData, 1)
			}
		}
	}
	return all
}

// noVerbAfter are words after which the name of a statement is not a statement.
var noVerbAfter = []string{"on", "for", "before", "after", "instead", "of", "grant", "revoke", ",", ".", "=", "to", "and", "can", "not", "how", "i", "you", "we", "please"}

var (
	accounts   = strings.Fields("user role login group policy")
	structures = strings.Fields("index view function procedure trigger type extension sequence constraint domain rule publication subscription server event")
)

// serverAccess matches functions of databases that run programs or use files of the server.
var serverAccess = lazyregexp.New(`^(?:xp_cmdshell|sp_oacreate|load_file|pg_read_file|pg_read_binary_file|pg_ls_dir|lo_import|lo_export|load_extension|writefile|readfile|dblink|dblink_exec|sys_exec|sys_eval)$`)

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

// clause returns the index of a keyword at or after i, outside of brackets that open there. Without the keyword, it
// returns 0.
func (s sqlStatement) clause(i int, keyword string) int {
	depth := 0
	for ; i < len(s) && depth >= 0; i++ {
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

// worse returns the harm all if no condition limits the rows, else the harm some. A condition that is always
// true limits nothing.
func (s sqlStatement) worse(i int, all, some Harm) Harm {
	where := s.clause(i, "where")
	if where == 0 {
		return all
	}
	rest := strings.Join(s[where+1:], " ")
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
