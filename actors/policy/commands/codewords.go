package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// The harms that nod finds by words in code which it does not parse.
var (
	codeDeletes  = Harm{schemas.RiskHigh, "runs code that deletes files"}
	codeStarts   = Harm{schemas.RiskHigh, "runs code that starts programs"}
	codeBuilds   = Harm{schemas.RiskHigh, "runs code that it builds or decodes"}
	codeConnects = Harm{schemas.RiskMedium, "runs code that uses the network"}
	codeWrites   = Harm{schemas.RiskMedium, "runs code that writes files"}
	dropsMongo   = Harm{schemas.RiskHigh, "deletes a whole database or collection"}
	deletesMongo = Harm{schemas.RiskHigh, "deletes documents of a database"}
	changesMongo = Harm{schemas.RiskMedium, "changes documents of a database"}
)

// codeWords has names in Python, JavaScript, Ruby, Perl, PHP, Lua, R and PowerShell, each with the harm of code
// that uses it. A name matches itself and, if it has no dot, also the last part of a longer name. A name that
// ends in ( matches only a call.
var codeWords = wordsByName(map[Harm]string{
	codeDeletes: "rmtree os.remove os.unlink os.rmdir os.removedirs os.truncate os.RemoveAll os.Remove unlink( unlink unlinkSync rmSync rmdirSync fs.rm fs.rmdir fs.remove fs.removeSync fs.emptyDir fs.emptyDirSync fsp.rm fsp.rmdir fsPromises.rm promises.rm promises.rmdir rimraf " +
		"FileUtils.rm FileUtils.rm_r FileUtils.rm_f FileUtils.rm_rf FileUtils.remove FileUtils.remove_dir FileUtils.remove_entry File.delete File.unlink Dir.rmdir Dir.delete Dir.unlink send2trash Remove-Item Deno.remove Deno.removeSync file.remove",
	codeStarts: "os.system os.popen os.execl os.execle os.execlp os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnv os.spawnvp os.spawnlp os.posix_spawn os.startfile os.execute subprocess pty.spawn child_process execSync spawnSync execFileSync execFile( spawn( Deno.Command Deno.run Bun.spawn Bun.spawnSync " +
		"Kernel.system Kernel.exec Kernel.spawn system( shell_exec passthru( proc_open popen( popen2 popen3 IO.popen Open3 Invoke-Expression Start-Process pexpect",
	codeBuilds:   "b64decode atob( base64 decode64 base64_decode fromhex marshal.loads pickle.loads pickle.load __import__ importlib.import_module runpy instance_eval class_eval create_function",
	codeConnects: "urllib urllib2 urllib3 requests.get requests.post requests.put requests.patch requests.delete requests.request requests.Session httpx aiohttp http.client http.get http.request https.get https.request fetch( axios XMLHttpRequest WebSocket socket.socket socket.create_connection net.connect net.createConnection Net::HTTP open-uri URI.open LWP IO::Socket::INET curl_init curl_exec Invoke-WebRequest Invoke-RestMethod smtplib paramiko boto3 ftplib",
	codeWrites:   "write_text( write_bytes( writeFile writeFileSync writeTextFile appendFile appendFileSync createWriteStream shutil.move shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.rename os.replace File.write file_put_contents IO.write rename( renameSync copyFile copyFileSync Bun.write Set-Content Out-File",
})

// mongoWords has names of functions in MongoDB's shell, each with its harm.
var mongoWords = wordsByName(map[Harm]string{
	dropsMongo:   "drop( dropDatabase dropCollection",
	deletesMongo: "deleteMany deleteOne remove( findOneAndDelete bulkWrite",
	changesMongo: "update( updateMany updateOne replaceOne insertMany insertOne insert( renameCollection findOneAndUpdate",
})

func wordsByName(names map[Harm]string) map[string]Harm {
	out := map[string]Harm{}
	for h, list := range names {
		for name := range strings.FieldsSeq(list) {
			out[name] = h
		}
	}
	return out
}

// orderOfHarms is the order in which people are told the harms of code.
var orderOfHarms = []Harm{codeDeletes, codeStarts, codeBuilds, codeConnects, codeWrites, dropsMongo, deletesMongo, changesMongo, tooMuchCode}

// CodeFindings returns the harms that nod finds in code by its words. For shell code it returns nil.
func CodeFindings(lang Language, text string) (all []Finding) {
	words := codeWords
	switch lang {
	case SQLCode:
		return SQLFindings(text)
	case MongoCode:
		words = mongoWords
	case ProgramCode:
	default:
		return nil
	}
	found := map[Harm]bool{}
	if len(text) > maxCode {
		text = text[:maxCode]
		found[tooMuchCode] = true
	}
	eachName(text, func(from, to int) {
		h, ok := harmOfName(words, text, from, to)
		if !ok && lang == ProgramCode {
			h, ok = harmOfUsedName(text, from, to)
		}
		if ok {
			found[h] = true
		}
	})
	for _, h := range orderOfHarms {
		if found[h] {
			all = append(all, Finding{Harm: h})
		}
	}
	return all
}

// eachName calls the function do with the place of each name in code. A name includes the dots, colons and
// dashes within it.
func eachName(text string, do func(from, to int)) {
	for i := 0; i < len(text); i++ {
		if !isNameByte(text[i]) {
			continue
		}
		from := i
		for i < len(text) && (isNameByte(text[i]) || strings.IndexByte(".:-", text[i]) >= 0 && i+1 < len(text) && (isNameByte(text[i+1]) || text[i+1] == ':')) {
			i++
		}
		do(from, i)
	}
}

func harmOfName(words map[string]Harm, text string, from, to int) (h Harm, ok bool) {
	name := text[from:to]
	for _, part := range []string{name, lastParts(name, 2), lastParts(name, 1), firstPart(name)} {
		if h, ok = words[part]; ok {
			return h, true
		}
		if h, ok = words[part+"("]; ok && isCalled(text, to) {
			return h, true
		}
	}
	return Harm{}, false
}

// harmOfUsedName returns the harm of a name that does harm only in certain uses, such as open in order to
// write.
func harmOfUsedName(text string, from, to int) (h Harm, ok bool) {
	switch text[from:to] {
	case "eval", "exec", "compile", "Function": // not as part of a longer name, such as re.compile
		return codeBuilds, isCalled(text, to) && (from == 0 || text[from-1] != '.')
	case "open":
		return codeWrites, opensToWrite.MatchString(text[to:min(len(text), to+maxOpen)])
	case "http", "https", "net", "dgram", "tls", "node:http", "node:https", "node:net", "node:tls":
		return codeConnects, from > 0 && to < len(text) && isQuote(text[from-1]) && isQuote(text[to])
	}
	return Harm{}, false
}

// isCalled reports whether the code calls the name that ends at this index. Ruby, Perl and PowerShell call a
// function even without brackets.
func isCalled(text string, to int) bool {
	after := strings.TrimLeft(text[to:min(len(text), to+8)], " \t")
	return after != "" && (after[0] == '(' || after[0] == '$' || isQuote(after[0]))
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func lastParts(name string, n int) string {
	for at := len(name) - 1; at >= 0; at-- {
		if name[at] == '.' {
			if n--; n == 0 {
				return name[at+1:]
			}
		}
	}
	return name
}

func firstPart(name string) string {
	first, _, _ := strings.Cut(name, ".")
	return first
}

// opensToWrite matches the arguments of Python's open that open a file for writing. nod searches only the
// first maxOpen bytes.
var opensToWrite = lazyregexp.New(`^\s*\((?:[^()\n]|\([^()\n]*\))*,\s*(?:mode\s*=\s*)?["'][rbt]*[wax+][bt+]*["']`)

const maxOpen = 200

// startsPrograms reports whether code may start programs.
func startsPrograms(code string) bool {
	return strings.Contains(code, "`") || slices.ContainsFunc(CodeFindings(ProgramCode, code), func(f Finding) bool { return f.Harm == codeStarts })
}
