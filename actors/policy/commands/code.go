package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Language is a kind of code in which nod looks for harms.
type Language int

const (
	NoCode Language = iota
	ShellCode
	SQLCode
	ProgramCode // Python, JavaScript, Ruby and the like
	MongoCode
)

var languages = map[string]Language{
	"sh": ShellCode, "bash": ShellCode, "zsh": ShellCode, "dash": ShellCode, "ksh": ShellCode, "fish": ShellCode, "ash": ShellCode, "ssh": ShellCode, "mosh": ShellCode, "su": ShellCode,
	"psql": SQLCode, "pgcli": SQLCode, "mysql": SQLCode, "mycli": SQLCode, "mariadb": SQLCode, "sqlite3": SQLCode, "sqlite": SQLCode, "litecli": SQLCode, "duckdb": SQLCode, "clickhouse": SQLCode, "clickhouse-client": SQLCode,
	"sqlcmd": SQLCode, "usql": SQLCode, "bq": SQLCode, "cockroach": SQLCode, "sqlplus": SQLCode, "snowsql": SQLCode, "trino": SQLCode, "cqlsh": SQLCode, "turso": SQLCode,
	"python": ProgramCode, "pypy": ProgramCode, "ipython": ProgramCode, "node": ProgramCode, "nodejs": ProgramCode, "deno": ProgramCode, "bun": ProgramCode, "tsx": ProgramCode, "ts-node": ProgramCode, "ruby": ProgramCode, "perl": ProgramCode, "php": ProgramCode,
	"lua": ProgramCode, "osascript": ProgramCode, "rscript": ProgramCode, "pwsh": ProgramCode, "powershell": ProgramCode, "groovy": ProgramCode, "jshell": ProgramCode,
	"mongo": MongoCode, "mongosh": MongoCode,
}

// LanguageOf returns the kind of code that a program runs from its words or its input. A version at the end of
// the program's name does not matter.
func LanguageOf(program string) Language {
	name := ProgramName(program)
	if lang := languages[name]; lang != NoCode {
		return lang
	}
	return languages[strings.TrimRight(name, "0123456789.")]
}

// InputLanguage returns the kind of code that a command reads from its input, such as a here-document. The
// command may be another one that starts the program, such as sudo, ssh or docker exec.
func InputLanguage(argv []string) Language {
	starts := Entry(ProgramName(argv[0]))
	for i := len(argv) - 1; i >= 0; i-- {
		words := argv[i:]
		if i > 0 && !starts.Wraps && !starts.Interprets && !startsElsewhere(ProgramName(argv[0])) {
			continue
		}
		if fields := strings.Fields(argv[i]); i > 0 && len(fields) > 1 {
			words = fields // the command line of ssh in one word
		}
		switch lang := LanguageOf(words[0]); {
		case lang == SQLCode, lang == MongoCode:
			return lang
		case lang != NoCode && readsCode(words):
			return lang
		}
	}
	return NoCode
}

// startsElsewhere reports whether a program may start a command in a container.
func startsElsewhere(name string) bool {
	return slices.Contains([]string{"docker", "podman", "nerdctl", "docker-compose", "kubectl", "oc"}, name)
}

// readsCode reports whether an interpreter runs its input, because its words hold no code and name no script.
func readsCode(argv []string) bool {
	name, args := ProgramName(argv[0]), argv[1:]
	switch name {
	case "ssh", "mosh":
		return len(operands(args, sshValues...)) <= 1
	case "su":
		return !slices.ContainsFunc(args, func(a string) bool { return a == "-c" || a == "--command" })
	}
	flags := func(a string) bool {
		return a == "-s" || strings.HasPrefix(a, "-") && strings.Trim(a, "-") != "c" && a != "-e" && a != "-m" && a != "-p" && a != "--eval"
	}
	script := slices.IndexFunc(args, func(a string) bool { return a == "-" || a == "-s" || a == "/dev/stdin" || !flags(a) })
	return script < 0 || args[script] == "-" || args[script] == "-s" || args[script] == "/dev/stdin"
}

// Inner returns the command that a command starts in a container or, by ssh, on another machine. It may be
// wrong about the first word, and only raises risks.
func Inner(argv []string) []string {
	name, args := ProgramName(argv[0]), argv[1:]
	switch {
	case name == "ssh":
		if all := operands(args, sshValues...); len(all) > 2 {
			at := slices.Index(args, all[1])
			return args[at:]
		}
	case (name == "kubectl" || name == "oc") && slices.Contains(args, "exec"):
		if at := slices.Index(args, "--"); at >= 0 {
			return args[at+1:]
		}
	case startsElsewhere(name):
		start := slices.IndexFunc(args, func(a string) bool { return a == "exec" || a == "run" })
		if start < 0 {
			return nil
		}
		for i := start + 1; i < len(args); i++ {
			switch a := args[i]; {
			case !strings.HasPrefix(a, "-"):
				return args[i+1:]
			case !strings.Contains(a, "=") && slices.Contains(containerValues, strings.TrimLeft(a, "-")):
				i++
			}
		}
	}
	return nil
}

// containerValues are the flags of docker exec and docker run whose next word is a value.
var containerValues = strings.Fields("a add-host annotation attach blkio-weight c cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota cpu-shares cpus cpuset-cpus detach-keys device dns " +
	"domainname e entrypoint env env-file expose gpus group-add h health-cmd hostname index ip ipc isolation l label label-file link log-driver log-opt m mac-address memory mount name net network " +
	"network-alias oom-score-adj p pid pids-limit platform publish pull restart runtime security-opt shm-size stop-signal stop-timeout storage-opt sysctl tmpfs u ulimit user userns uts v volume volume-driver volumes-from w workdir")

// codeHarms are words of programs by which nod finds harms in code that it does not parse.
var codeHarms = []struct {
	harm Harm
	expr lazyregexp.Regexp
}{
	{Harm{schemas.RiskHigh, "runs code that deletes files"}, lazyregexp.New(`\brmtree\b|\bos\.(?:remove|unlink|rmdir|removedirs|RemoveAll|Remove)\b|\.unlink\s*\(|\bunlink(?:Sync)?\s*[\s("'$]|\b(?:fs|fsp|fsPromises|promises)\.(?:rm|rmdir|remove|emptyDir)(?:Sync)?\b|\brm(?:dir)?Sync\b|\brimraf\b|` +
		`\bFileUtils\.(?:rm|remove)\w*|\b(?:File|Dir|Pathname)\.(?:delete|unlink|rmdir)\b|\bsend2trash\b|\bRemove-Item\b|\bDeno\.remove|\bfile\.remove\s*\(|\bos\.truncate\b`)},
	{Harm{schemas.RiskHigh, "runs code that starts programs"}, lazyregexp.New(`\bos\.(?:system|popen|exec[lv]\w*|spawn\w*|execute|startfile)\b|\bsubprocess\b|\bpty\.spawn|\bchild_process\b|\b(?:exec|spawn)(?:File)?Sync\s*\(|\bDeno\.Command|\bBun\.(?:spawn|\$)|\bKernel\.|` +
		`\b(?:system|shell_exec|passthru|proc_open|popen|spawn)\s*[("']|%x[({\[]|\bOpen3\b|\bdo shell script\b|\bInvoke-Expression\b|\bStart-Process\b`)},
	{Harm{schemas.RiskHigh, "runs code that it builds or decodes"}, lazyregexp.New(`\beval\s*\(|\bexec\s*\(|\bnew\s+Function\s*\(|\bb64decode\b|\batob\s*\(|["']base64["']|\bdecode64\b|\bbase64_decode\b|\bfromhex\b|\bmarshal\.loads|\bpickle\.loads?|__import__|\bunpack\w*\s*\(\s*["']m`)},
	{Harm{schemas.RiskMedium, "runs code that uses the network"}, lazyregexp.New(`\burllib\b|\brequests\.\w+\s*\(|\bhttpx\b|\baiohttp\b|\bhttp\.client\b|\bfetch\s*\(|\baxios\b|\bXMLHttpRequest\b|\bWebSocket\b|["'](?:node:)?(?:https?|net|dgram|tls)["']|\bsocket\.\w+\s*\(|\bNet::HTTP\b|\bopen-uri\b|\bLWP\b|\bIO::Socket|` +
		`\b(?:file_get_contents|fopen)\s*\(\s*["']https?:|\bcurl_(?:init|exec)|\bInvoke-(?:WebRequest|RestMethod)\b|\bsmtplib\b|\bparamiko\b|\bboto3\b|\bftplib\b`)},
	{Harm{schemas.RiskMedium, "runs code that writes files"}, lazyregexp.New(`\bopen\s*\([^()]*(?:\([^()]*\)[^()]*)*,\s*(?:mode\s*=\s*)?["'][rbt]*[wax+][bt+]*["']|\bwrite_(?:text|bytes)\s*\(|\bwrite(?:Text)?File(?:Sync)?\b|\bappendFile|\bcreateWriteStream|\bshutil\.(?:move|copy\w*)|` +
		`\bos\.(?:rename|replace)\b|\bFile\.write|\bfile_put_contents|\bIO\.write|\brename(?:Sync)?\s*\(|\bcopyFile|\bBun\.write|\bSet-Content\b|\bOut-File\b`)},
}

// mongoHarms are words of MongoDB's shell.
var mongoHarms = []struct {
	harm Harm
	expr lazyregexp.Regexp
}{
	{Harm{schemas.RiskHigh, "drops a database or a collection"}, lazyregexp.New(`\.drop(?:Database|Collection)?\s*\(|\bdropDatabase\b`)},
	{Harm{schemas.RiskHigh, "deletes documents of a database"}, lazyregexp.New(`\.(?:deleteMany|deleteOne|remove|findOneAndDelete|bulkWrite)\s*\(`)},
	{Harm{schemas.RiskMedium, "changes documents of a database"}, lazyregexp.New(`\.(?:update|updateMany|updateOne|replaceOne|insertMany|insertOne|renameCollection)\s*\(`)},
}

// CodeFindings returns the harms that nod finds in code by its words. For shell code it returns nil.
func CodeFindings(lang Language, text string) (all []Finding) {
	text = text[:min(len(text), maxCode)]
	switch lang {
	case SQLCode:
		return SQLFindings(text)
	case ProgramCode:
		for i := range codeHarms {
			if codeHarms[i].expr.MatchString(text) {
				all = append(all, Finding{Harm: codeHarms[i].harm})
			}
		}
	case MongoCode:
		for i := range mongoHarms {
			if mongoHarms[i].expr.MatchString(text) {
				all = append(all, Finding{Harm: mongoHarms[i].harm})
			}
		}
	}
	return all
}

// Scripts of sed and awk, and subscripts of variables, that run commands.
var (
	sedRuns       = lazyregexp.New(`(?m)[/|#,][gpIiMm0-9]*e[gpIiMm0-9]*\s*(?:;|\}|$)|^\s*(?:\d+|\$|/[^/]*/)?(?:,(?:\d+|\$|/[^/]*/))?\s*e(?:\s|$)`)
	awkRuns       = lazyregexp.New(`\bsystem\s*\(|\|\s*getline\b|\bprintf?\b[^;}\n]*\|\s*["A-Za-z]`)
	awkWrites     = lazyregexp.New(`\bprintf?\b[^;}\n]*>\s*["A-Za-z(]`)
	subscriptRuns = lazyregexp.New("[A-Za-z_]\\w*\\[[^\\]]*(?:\\$\\(|`)")
)

// harmsInScripts returns the harms of scripts in the words of sed and awk, and of subscripts that a shell's
// builtin evaluates.
func harmsInScripts(name string, args []string) []Harm {
	has := func(expr lazyregexp.Regexp) bool { return slices.ContainsFunc(args, expr.MatchString) }
	switch name {
	case "sed", "gsed":
		if has(sedRuns) {
			return []Harm{runsInlineCode}
		}
	case "awk", "gawk", "mawk", "nawk":
		switch {
		case has(awkRuns):
			return []Harm{runsInlineCode}
		case has(awkWrites):
			return []Harm{writesFiles}
		}
	case "test", "[", "printf", "read", "let", "unset", "export", "declare", "typeset", "local", "wait":
		if has(subscriptRuns) {
			return []Harm{runsInlineCode}
		}
	}
	return nil
}

// quotedText matches a text in quotes, and quotedList several of them in brackets.
var (
	quotedText = lazyregexp.New(`"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'` + "|`([^`]*)`")
	quotedList = lazyregexp.New(`[\[(]\s*(?:"[^"\n]*"|'[^'\n]*')(?:\s*,\s*\[?\s*(?:"[^"\n]*"|'[^'\n]*'))+`)
)

// LinesIn returns the texts in code of a program that may be command lines which the code starts.
func LinesIn(code string) (lines []string) {
	code = code[:min(len(code), maxCode)]
	if !codeHarms[1].expr.MatchString(code) && !strings.Contains(code, "`") {
		return nil
	}
	for _, m := range quotedText.FindAllStringSubmatch(code, maxTexts) {
		if text := m[1] + m[2] + m[3]; strings.Contains(text, " ") && mayHarm(strings.Fields(text)) {
			lines = append(lines, text)
		}
	}
	for _, list := range quotedList.FindAllString(code, maxTexts) {
		var argv []string
		for _, m := range quotedText.FindAllStringSubmatch(list, maxTexts) {
			argv = append(argv, m[1]+m[2])
		}
		if mayHarm(argv) {
			lines = append(lines, schemas.ShellLine(argv))
		}
	}
	return lines
}

const maxTexts = 50

// mayHarm reports whether words begin with the name of a command that may do harm.
func mayHarm(words []string) bool {
	return len(words) > 0 && words[0] != "" && slices.ContainsFunc(Harms(words), func(h Harm) bool { return h.Risk != schemas.RiskLow })
}
