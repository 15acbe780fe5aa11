package contained

import (
	"strings"

	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/internal/lazyregexp"
)

func (c *command) runsCode(t shell.Term) {
	switch {
	case !t.Known:
		c.refuse("runs code that is not known as a whole")
	case shells[c.name]:
		c.all(c.script.Inner(t.Text, c.Dirs))
	case dangerous(c.withoutLookups(t.Text)):
		c.refuse("runs code that may delete, overwrite or start programs")
	case len(t.Text) > maxCode:
		c.refuse("runs code that is too long to check")
	case namesSecret(c, t.Text):
		c.refuse("runs code that names a secret or settings")
	default:
		c.importsFiles(t.Text)
	}
}

// importsFiles checks the files that a program's code imports by their paths, because a line may have put
// code into such a file.
func (c *command) importsFiles(code string) {
	for _, m := range imports.FindAllStringSubmatch(code, -1) {
		text := m[1] + m[2]
		if private(text) {
			text += "/x" // any file in the directory
		}
		c.loads(shell.Term{Text: text, Known: true})
	}
	if strings.HasPrefix(c.name, "python") && importWord.MatchString(code) {
		c.loads(shell.Term{Text: "./x.py", Known: true}) // Python looks for modules in the working directory first
	}
	if paths := searchPath.FindAllString(code, -1); len(paths) != len(ownSearchPath.FindAllString(code, -1)) {
		c.refuse("changes where code is loaded from")
	}
}

var (
	imports    = lazyregexp.New(`(?:\b(?:require|require_relative|import|from|use\s+lib|include_path)\b|-I|path\.\w+)\s*\(?\s*(?:\d+\s*,\s*)?(?:'([^']*)'|"([^"]*)")`)
	importWord = lazyregexp.New(`\bimport\b`)
	// searchPath matches code that may change the directories in which a language looks for modules.
	// ownSearchPath matches code that adds a directory which the code spells out, or that only reads the list.
	searchPath    = lazyregexp.New(`\bsys\s*\.\s*path\b|\bsys\s+as\b|\bfrom\s+sys\s+import\b|\bsys\s*\.\s*(?:path_hooks|path_importer_cache|meta_path|modules)\b|\$LOAD_PATH|\$:|@INC|package\.c?path|module\.paths|globalPaths|\bsite\.`)
	ownSearchPath = lazyregexp.New(`\bsys\.path\.(?:insert\s*\(\s*\d+\s*,|append\s*\()\s*(?:'[^']*'|"[^"]*")\s*\)|\b(?:print\s*\(|in\s)\s*sys\.path\b\s*[):\]]`)
)

// maxCode is the length limit, in bytes, for code in a command line.
const maxCode = 4 << 10

var codeWord = lazyregexp.New("[^\\s'\"`(),;=<>{}]+")

// arguments matches an index of a program's arguments, such as argv[1]. nod ignores the index, because it
// would take the brackets for a file name pattern.
var arguments = lazyregexp.New(`\b(argv|ARGV|args)\[\d+\]`)

func namesSecret(c *command, code string) bool {
	for _, w := range codeWord.FindAllString(arguments.ReplaceAllString(code, "$1"), 200) {
		if strings.ContainsAny(w, "/.") && c.secretIn(shell.Term{Text: w, Known: true}) != "" && !strings.HasPrefix(w, "process.env") && !strings.HasPrefix(w, "os.env") {
			return true
		}
	}
	return false
}

var safeOpen = lazyregexp.New(`\bopen\s*\([^,()]*(?:,\s*(?:mode\s*=\s*)?['"]r[bt]?['"])?(?:,\s*(?:encoding|errors)\s*=\s*['"][^'"]*['"])?\s*\)`)

// dangerous reports whether code may delete or overwrite files, start programs, use a database or
// the network, or hide what it does.
func dangerous(code string) bool {
	code = standardOutput.ReplaceAllString(code, "")
	return dangerousCode.MatchString(safeOpen.ReplaceAllString(code, ""))
}

// withoutLookups returns code of Node.js or Bun without the calls that only look up the path of a module. A
// name, and not a string, replaces each call, so that nod still notices code that loads the module.
func (c *command) withoutLookups(code string) string {
	if c.name != "node" && c.name != "bun" {
		return code
	}
	return moduleLookup.ReplaceAllString(code, "${1}looked_up")
}

var moduleLookup = lazyregexp.New(`(^|[^\w$.?\]])require\.resolve\(\s*(?:'[@\w./-]+'|"[@\w./-]+")\s*\)`)

var standardOutput = lazyregexp.New(`\b(?:sys|process)\.std(?:out|err)\.write`)

// dangerousCode matches dangerous code in Python, JavaScript, Ruby, Perl, PHP and Lua. It also
// matches eval, getattr, an index and similar forms, because code can use them to call a function
// under a hidden name.
var dangerousCode = lazyregexp.New(`(?i)` + strings.Join([]string{
	`write|\bcopy_|\bcopy\s*\(|\bsave|\bto_(?:csv|json|excel|parquet)|extract|clear|fileio|filehandler|inplace|gzipfile|snapshot|splfile|io\.output|file\.new|\bmk[ds]|copytree|['"](?:w[bt]?\+?[bt]?|r[bt]?\+[bt]?)['"]|venv|profile`,
	`unlink|rmtree|rmdir|rm_|\bremove|\brm(?:Sync)?\b|delete|fileutils|shutil|send2trash|rimraf|truncate|move`,
	`rename|\.replace\s*\(\s*[^,()]*\)|os\.replace|copyfile|\bcp(?:Sync)?\s*\(|symlink|\blink(?:Sync)?\s*\(|chmod|chown|mkfifo`,
	`write_?file|write_text|write_bytes|createwritestream|append_?file|output_?file|file_put|fwrite|fputs|file\.write|io\.write|mode\s*=|\bopen\b|sysopen|fdopen|fopen|touch`,
	`subprocess|child_process|system|popen|spawn|exec|fork|backtick|` + "`" + `|%x|\bqx\b|kernel|\bpty\b|\bkill\b|posix|asyncio\.create|multiprocessing|runpy|pexpect`,
	`(?:\b|_)eval(?:\b|_)|evalscript|compile\s*\(|__|importlib|getattr|setattr|attrgetter|methodcaller|globals|locals|vars\s*\(|base64|codecs|fromhex|\bchr\b|fromcharcode|atob|Function\s*\(|Reflect|constructor`,
	`ctypes|cffi|\bffi\b|marshal|pickle|\\x|\\u|\\[0-7]{2}|binding|\]\s*\(|\{\s*\[|\bsend\b|public_send|method\s*\(|->\s*\$|&\s*[\{$]|\$\w+\s*\(|call_user_func`,
	`sqlite|psycopg|mysql|pymongo|redis|sqlalchemy|drop\s+table|socket|urllib|requests|http|fetch\s*\(|\bnet\b|paramiko`,
	`\b(?:fs|os)\s*\[|(?:require|import)\s*\(\s*(?:[^'"\s]|(?:'[^']*'|"[^"]*")\s*[^)'"\s])|\brequire\b\s*(?:[^\s('"A-Za-z]|$)|['"]require['"]|getbuiltinmodule|zipimport|bun\.(?:build|plugin|sql|s3|connect|listen)|['"]data:|\bvm['"]|runin\w*context|mainmodule|createrequire|dlopen|worker_threads|\bworker\s*\(|['"](?:node:)?(?:module|cluster|inspector|wasi|repl)['"]|import\s+\*|from\s+os\s+import|\bgem\b|include|dofile|loadstring|loadfile|\bload\b\s*\(\s*['"]|\bdo\s+['"]`,
}, "|"))
