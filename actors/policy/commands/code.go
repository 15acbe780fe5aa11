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
// command may also be one that starts the interpreter, such as sudo, ssh or docker exec.
func InputLanguage(argv []string) Language {
	name, last := ProgramName(argv[0]), 0
	if known := Entry(name); known.Wraps || known.Interprets || startsElsewhere(name) {
		last = len(argv) - 1
	}
	for i := last; i >= 0; i-- {
		words := argv[i:]
		if fields := strings.Fields(argv[i]); i > 0 && len(fields) > 1 {
			words = fields // ssh may get its command line as one word
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
	return slices.Contains(containerPrograms, name) || name == "kubectl" || name == "oc"
}

// readsCode reports whether an interpreter runs its input as code. It does so if its words contain no code
// and name no script.
func readsCode(argv []string) bool {
	name, args := ProgramName(argv[0]), argv[1:]
	switch name {
	case "ssh", "mosh":
		return len(operands(args, sshValues...)) <= 1
	case "su":
		return !slices.ContainsFunc(args, func(a string) bool { return a == "-c" || a == "--command" })
	}
	isInput := func(a string) bool { return a == "-" || a == "-s" || a == "/dev/stdin" }
	namesCode := func(a string) bool {
		return !strings.HasPrefix(a, "-") || strings.Trim(a, "-") == "c" || a == "-e" || a == "-m" || a == "-p" || a == "--eval"
	}
	first := slices.IndexFunc(args, func(a string) bool { return isInput(a) || namesCode(a) })
	return first < 0 || isInput(args[first])
}

// Inner returns the command that a command starts in a container or, by ssh, on another machine. The result
// may begin with a wrong word; this is safe, because the result only raises risks.
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
		if at := start + 1 + operandAt(args[start+1:], 0, containerValues); at < len(args) {
			return args[at+1:]
		}
	}
	return nil
}

// containerValues are the flags of docker exec and docker run whose next word is a value.
var containerValues = strings.Fields("a add-host annotation attach blkio-weight c cap-add cap-drop cgroup-parent cgroupns cidfile cpu-period cpu-quota cpu-shares cpus cpuset-cpus detach-keys device dns " +
	"domainname e entrypoint env env-file expose gpus group-add h health-cmd hostname index ip ipc isolation l label label-file link log-driver log-opt m mac-address memory mount name net network " +
	"network-alias oom-score-adj p pid pids-limit platform publish pull restart runtime security-opt shm-size stop-signal stop-timeout storage-opt sysctl tmpfs u ulimit user userns uts v volume volume-driver volumes-from w workdir")

// MayBeCode reports whether a word looks like code of a language, and not like a mere name.
func MayBeCode(lang Language, w string) bool {
	if lang == SQLCode {
		return strings.ContainsAny(w, " \n\t.\\")
	}
	return len(w) > 4 && strings.ContainsAny(w, "( \n`;")
}

// quotedText matches a text in quotes, and quotedList several of them in brackets.
var (
	quotedText = lazyregexp.New(`"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'` + "|`([^`]*)`")
	quotedList = lazyregexp.New(`[\[(]\s*(?:"[^"\n]*"|'[^'\n]*')(?:\s*,\s*\[?\s*(?:"[^"\n]*"|'[^'\n]*'))+`)
)

// LinesIn returns the quoted texts in a program's code that may be harmful command lines. It returns nothing
// if the code starts no programs.
func LinesIn(code string) (lines []string) {
	code = code[:min(len(code), maxLines)]
	if !startsPrograms(code) {
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

// nod looks for command lines only in the first maxTexts quoted texts, and in the first maxLines bytes, of
// code.
const (
	maxTexts = 50
	maxLines = 8 << 10
)

// mayHarm reports whether a command line's words begin with the name of a command that may do harm.
func mayHarm(words []string) bool {
	return len(words) > 0 && words[0] != "" && slices.ContainsFunc(Harms(words), func(h Harm) bool { return h.Risk != schemas.RiskLow })
}
