package commands

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Harm is a harm that a command may do. It has a risk, and a reason for people.
type Harm struct {
	Risk schemas.Risk
	Why  string
}

var (
	deletes            = Harm{schemas.RiskMedium, "deletes files"}
	deletesUnasked     = Harm{schemas.RiskHigh, "deletes files without asking"}
	deletesDirectories = Harm{schemas.RiskHigh, "deletes whole directories"}
	destroys           = Harm{schemas.RiskHigh, "destroys data"}
	writesDisk         = Harm{schemas.RiskHigh, "writes to a disk"}
	writesFiles        = Harm{schemas.RiskMedium, "writes files"}
	changesAccess      = Harm{schemas.RiskMedium, "changes who may use files"}
	runsAsRoot         = Harm{schemas.RiskHigh, "runs as root"}
	usesNetwork        = Harm{schemas.RiskMedium, "uses the network"}
	opensAccess        = Harm{schemas.RiskHigh, "lets every user change files"}
	runsRemotely       = Harm{schemas.RiskHigh, "runs on another machine"}
	copiesRemotely     = Harm{schemas.RiskHigh, "copies to or from another machine"}
	overwritesOthers   = Harm{schemas.RiskHigh, "overwrites work that others may need"}
	publishes          = Harm{schemas.RiskHigh, "publishes"}
	discardsChanges    = Harm{schemas.RiskHigh, "discards changes"}
	changesRepository  = Harm{schemas.RiskMedium, "changes the repository"}
	changesSettings    = Harm{schemas.RiskHigh, "changes settings"}
	controlsServices   = Harm{schemas.RiskHigh, "starts or stops services"}
	stopsProcesses     = Harm{schemas.RiskMedium, "stops processes"}
	stopsMachine       = Harm{schemas.RiskHigh, "stops the machine"}
	installs           = Harm{schemas.RiskMedium, "installs software"}
	runsProject        = Harm{schemas.RiskMedium, "runs the project's code"}
	runsInlineCode     = Harm{schemas.RiskHigh, "runs code that the command holds"}
	runsScript         = Harm{schemas.RiskHigh, "runs a script"}
	runsInput          = Harm{schemas.RiskHigh, "runs its input as code"}
	runsProgram        = Harm{schemas.RiskMedium, "runs a program"}
	controlsContainers = Harm{schemas.RiskMedium, "controls containers"}
	changesSystems     = Harm{schemas.RiskHigh, "changes other systems"}
	deletesElsewhere   = Harm{schemas.RiskHigh, "deletes on other systems"}
	opensMachine       = Harm{schemas.RiskHigh, "opens this machine to a container"}
	opensDirectory     = Harm{schemas.RiskMedium, "gives a container a directory that nod cannot tell"}
	servesPrograms     = Harm{schemas.RiskHigh, "lets another machine use a program of this one"}
	showsSecrets       = Harm{schemas.RiskHigh, "shows secrets"}
)

// ProgramName returns a program's name in the spelling of the command table: without its
// directory, in lower case, without .exe.
func ProgramName(name string) string {
	name = pathname.Slashes(name)
	return strings.TrimSuffix(strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]), ".exe")
}

// Harms returns the harms that one command may do.
func Harms(argv []string) []Harm {
	whole := harms(argv)
	plain := withoutGlobals(argv)
	if len(plain) == len(argv) {
		return whole
	}
	if !onlyReads(plain) {
		if all := harms(plain); len(all) > 0 && worstRank(all) >= worstRank(whole) {
			whole = all
		}
	}
	if ProgramName(argv[0]) == "git" {
		globals := argv[1 : len(argv)-len(plain)+1]
		if slices.ContainsFunc(flagValues(globals, "c", "config-env"), gitProgramKey.MatchString) {
			whole = append(whole, runsInlineCode)
		}
		if slices.ContainsFunc(globals, func(a string) bool { return strings.HasPrefix(a, "--exec-path=") }) {
			whole = append(whole, runsScript)
		}
	}
	return whole
}

// gitProgramKey matches a setting of git that may name a program or a command line.
var gitProgramKey = lazyregexp.New(`(?i)^(alias\.|filter\.|core\.(sshcommand|pager|editor|fsmonitor|hookspath|gitproxy|askpass)|pager\.|sequence\.editor|credential\.|diff\.|difftool\.|merge\.|mergetool\.|gpg\.|include|remote\.[^=]*pack)`)

// rank returns the rank of the harm's risk. A worse risk has a higher rank, and an unknown risk has the rank -1.
func (h Harm) rank() int {
	return slices.Index([]schemas.Risk{schemas.RiskLow, schemas.RiskMedium, schemas.RiskHigh}, h.Risk)
}

// worstRank returns the rank of the worst of these harms, or 0 if there are none.
func worstRank(all []Harm) (worst int) {
	for _, h := range all {
		worst = max(worst, h.rank())
	}
	return worst
}

// onlyReads reports whether a program's subcommand with these words only reads, according to the table.
func onlyReads(argv []string) bool {
	known := Reader(ProgramName(argv[0]) + " " + argv[1])
	return known != nil && known.Fits(argv[2:])
}

// harms works like Harms for a command without flags before its subcommand.
func harms(argv []string) []Harm {
	name := ProgramName(argv[0])
	known := Entry(name)
	h := known.Harm
	for n := 2; n <= 3 && n <= len(argv); n++ {
		if more := Entry(name + " " + strings.Join(argv[1:n], " ")).Harm; more != (Harm{}) {
			h = more
		}
	}
	if milder, ok := harmOfUse(name, argv[1:]); ok {
		h = milder
	}
	var out []Harm
	switch gitRead := name == "git" && len(argv) > 1 && Reader("git "+argv[1]) != nil; {
	case h == Harm{}, gitRead && h == changesRepository: // the command does no known harm, or is a git command that only reads
	case h == deletes:
		out = append(out, deletion(argv[1:]))
	case h == runsProgram && known.inline != "" && slices.Contains(argv[1:], known.inline): // the harm runsInlineCode is added below instead, because its reason says more
	case h == runsInlineCode && (known.Interprets || name == "." || name == "source"):
		out = append(out, interpretation(name, argv[1:]))
	case h == changesSystems && slices.ContainsFunc(argv[1:], deletesData), h == usesNetwork && deletesByRequest(name, argv[1:]):
		out = append(out, deletesElsewhere)
	case h == publishes && name == "git" && slices.ContainsFunc(argv[2:], deletesBranches):
		out = append(out, deletesElsewhere)
	case name == "chmod" && slices.ContainsFunc(argv[1:], opensToAll):
		out = append(out, opensAccess)
	default:
		out = append(out, h)
	}
	if worse := harmOfContainers(name, argv[1:]); worse != (Harm{}) {
		out = append(slices.DeleteFunc(out, func(h Harm) bool { return h == controlsContainers }), worse)
	}
	if servesProgram(name, argv[1:]) {
		out = append(out, servesPrograms)
	}
	switch {
	case known.inline != "" && slices.Contains(argv[1:], known.inline):
		out = append(out, runsInlineCode)
	case name == "rsync" && len(remoteFiles(argv[1:]))+len(hosts(name, argv[1:])) > 0:
		out = []Harm{copiesRemotely}
	case h == publishes && name == "git" && slices.ContainsFunc(argv[2:], func(a string) bool { return strings.HasPrefix(a, "+") }):
		out = append(out, overwritesOthers)
	case name == "git" && slices.ContainsFunc(argv, func(a string) bool { return a == "--force" || a == "-f" || a == "--force-with-lease" || a == "--hard" }):
		worse := overwritesOthers
		switch {
		case len(argv) < 2:
		case argv[1] == "clean" || argv[1] == "add" || slices.Contains(out, throwsAway):
			worse = Harm{}
		case argv[1] == "reset":
			worse = discardsChanges
		case argv[1] == "checkout", argv[1] == "switch":
			worse = throwsAway
		}
		if worse != (Harm{}) && !slices.Contains(out, worse) {
			out = append(out, worse)
		}
	case name == "find":
		if h, ok := harmOfFind(argv[1:]); ok {
			out = append(out, h)
		}
	case name == "sed" && slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") }):
		out = append(out, writesFiles)
	}
	if h, ok := harmOfDownload(name, argv[1:]); ok {
		out = append([]Harm{h}, slices.DeleteFunc(out, func(h Harm) bool { return h == runsProject || h == installs && runsPackage(name, argv[1:]) != "" })...)
	}
	return append(out, harmsInScripts(name, argv[1:])...)
}

// deletesByRequest reports whether a command asks a service to delete something.
func deletesByRequest(name string, args []string) bool {
	switch name {
	case "curl", "wget", "http":
		return slices.ContainsFunc(append(flagValues(args, "X", "request", "method"), args[:min(len(args), 1)]...), func(m string) bool { return strings.EqualFold(m, "DELETE") })
	case "gh", "glab":
		return len(args) > 1 && args[1] == "delete" || slices.ContainsFunc(flagValues(args, "X", "method"), func(m string) bool { return strings.EqualFold(m, "DELETE") })
	}
	return false
}

// harmOfContainers returns the harm of a command that does more than control containers: it deletes volumes,
// publishes an image, or may let a container change the machine. Any other command gets the zero Harm.
func harmOfContainers(name string, args []string) Harm {
	if !slices.Contains(containerPrograms, name) || len(args) == 0 {
		return Harm{}
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(words, a) })
	}
	switch {
	case has("down") && slices.ContainsFunc(args, func(a string) bool { return a == "-v" || strings.HasPrefix(a, "--v") }), has("volume") && has("rm", "remove", "prune"), has("system") && has("prune") && has("--volumes"):
		return destroys
	case has("build") && has("--push"):
		return publishes
	case !has("run", "create", "exec"):
		return Harm{}
	case slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--privileged") && a != "--privileged=false" || a == "--device" || strings.HasPrefix(a, "--device=")
	}),
		slices.Contains(flagValues(args, "pid"), "host"), slices.ContainsFunc(flagValues(args, "security-opt"), func(v string) bool { return strings.HasSuffix(v, "unconfined") }),
		slices.ContainsFunc(flagValues(args, "cap-add"), func(v string) bool { return mightyCapability.MatchString(v) }):
		return opensMachine
	}
	worst := Harm{}
	for _, v := range append(flagValues(args, "v", "volume"), mountSources(args)...) {
		from, to, _ := strings.Cut(v, ":")
		switch {
		case isMachine(from, strings.HasSuffix(to, ":ro")):
			return opensMachine
		case from == "" || strings.HasPrefix(from, "~"):
			worst = opensDirectory
		}
	}
	return worst
}

// mightyCapability matches a capability with which a container may change the machine.
var mightyCapability = lazyregexp.New(`(?i)^(cap_)?(all|sys_admin|sys_ptrace|sys_module|sys_rawio|dac_read_search|bpf)$`)

func mountSources(args []string) (all []string) {
	for _, mount := range flagValues(args, "mount") {
		for part := range strings.SplitSeq(mount, ",") {
			if key, value, _ := strings.Cut(part, "="); key == "source" || key == "src" {
				all = append(all, value)
			}
		}
	}
	return all
}

// isMachine reports whether a path that a container gets has files of the machine itself, or is or contains a
// user's home. A path below /etc does not count if the container may only read it.
func isMachine(from string, readOnly bool) bool {
	if !path.IsAbs(from) {
		return false
	}
	from = path.Clean(from)
	if strings.HasSuffix(from, "docker.sock") || slices.Contains([]string{"/", "/home", "/Users", "/var", "/etc"}, from) || slices.Contains([]string{"/home", "/Users"}, path.Dir(from)) {
		return true
	}
	return slices.ContainsFunc([]string{"/root", "/usr", "/run", "/var/run", "/var/lib", "/proc", "/sys", "/dev", "/boot", "/etc"}, func(dir string) bool {
		return (from == dir || strings.HasPrefix(from, dir+"/")) && !(dir == "/etc" && readOnly)
	})
}

// servesProgram reports whether a command connects a program of this machine, such as a shell, with another
// machine.
func servesProgram(name string, args []string) bool {
	switch name {
	case "nc", "ncat":
		return slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "--") && strings.Contains(a, "exec") || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "ec")
		})
	case "socat":
		return slices.ContainsFunc(args, func(a string) bool {
			kind, _, _ := strings.Cut(strings.ToLower(a), ":")
			return slices.Contains([]string{"exec", "system", "shell"}, kind)
		})
	}
	return false
}

// deletesBranches reports whether a word of git push deletes a branch or a tag of the remote.
func deletesBranches(w string) bool {
	return slices.Contains([]string{"-d", "--delete", "--mirror", "--prune"}, w) || strings.HasPrefix(w, ":") && len(w) > 1
}

// interpretation returns the harm of a shell, which runs code in its words, a script, or its input.
func interpretation(name string, args []string) Harm {
	operand := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") })
	flags := args
	if operand >= 0 {
		flags = args[:operand]
	}
	switch {
	case name == "eval", slices.ContainsFunc(flags, func(a string) bool { return strings.Contains(a, "c") }): // -c, -lc, --command
		return runsInlineCode
	case operand < 0 || slices.Contains(flags, "-s"):
		return runsInput
	}
	return runsScript
}

// deletionVerb matches verbs of deletion as words of a command line, of SQL, or of an API call such as delete-object.
var deletionVerb = lazyregexp.New(`(?i)(^|[^a-z])(delete|destroy|drop|truncate|terminate|purge|uninstall|remove|rm|rb|flushall|flushdb)([^a-z]|$)`)

// deletesData reports whether a word of a command for other systems is a verb of deletion.
func deletesData(w string) bool { return deletionVerb.MatchString(w) }

// harmOfUse returns the harm of a use of a program that does less harm than the program's entry says. For
// every other use, ok is false.
func harmOfUse(name string, args []string) (h Harm, ok bool) {
	switch {
	case name == "git":
		return harmOfGit(args)
	case name == "set": // without words, set shows all variables
		return Harm{}, len(args) > 0 && plainOptions.MatchString(strings.Join(args, " "))
	case name == "kubectl":
		return harmOfKubectl(args)
	case name == "terraform", name == "tofu":
		return usesNetwork, len(args) > 0 && slices.Contains([]string{"plan", "validate", "version"}, args[0])
	case name == "systemctl":
		return controlsServices, slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"start", "stop", "restart", "reload", "try-restart", "reload-or-restart", "kill"}, a)
		})
	}
	return Harm{}, false
}

// plainOptions matches the words of set if they only set options of the shell, such as -e or pipefail. These
// options start no program and change no file.
var plainOptions = lazyregexp.New(`^[-+][abefmnuvxo]+(?: (?:pipefail|errexit|nounset|xtrace|allexport|noglob|noclobber|[-+][abefmnuvxo]+))*$`)

// harmOfKubectl returns the harm of a kubectl subcommand that only reads. For every other subcommand, and for
// words that name secrets, ok is false.
func harmOfKubectl(args []string) (h Harm, ok bool) {
	for len(args) > 2 && slices.Contains([]string{"-n", "--namespace", "--context"}, args[0]) {
		args = args[2:]
	}
	if len(args) == 0 || slices.ContainsFunc(args, func(a string) bool {
		return strings.Contains(strings.ToLower(a), "secret") || a == "--raw" || strings.HasPrefix(a, "--raw=")
	}) {
		return Harm{}, false
	}
	return usesNetwork, slices.Contains([]string{"get", "describe", "logs", "top", "explain", "version", "api-resources", "api-versions", "cluster-info", "events"}, args[0])
}

// worldWritable matches the modes of chmod that let every user write.
var worldWritable = lazyregexp.New(`^(0?[0-7]{2}[2367]|[1-7][0-7]{2}[2367]|[augo]*[ao][augo]*[+=][rstXx]*w[rstwXx]*)$`)

func opensToAll(mode string) bool { return worldWritable.MatchString(mode) }

// deletion returns the harm of a command that deletes files. The flags decide which harm it is.
func deletion(args []string) Harm {
	h := deletes
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a, "-") || !strings.ContainsAny(a, "rRf"):
		case a == "--force", !strings.HasPrefix(a, "--") && !strings.ContainsAny(a, "rR"):
			if h == deletes {
				h = deletesUnasked
			}
		default:
			h = deletesDirectories
		}
	}
	return h
}

// Boundable reports whether nod knows the effects of a command, so that a rule may allow exactly this
// command. The name must be plain, and no word may contain code or set a variable. nod must know the harms.
// None of the harms may have a high risk, delete files, use the network, install software or stop processes.
func Boundable(argv []string) bool {
	name := ProgramName(argv[0])
	known := Entry(name)
	if known.Interprets || known.Wraps || name == "nod" || !word.Plain(argv[0]) {
		return false
	}
	for _, h := range Harms(argv) {
		if h.Risk == schemas.RiskHigh || strings.HasPrefix(h.Why, downloadedCode) || h == deletes || h == usesNetwork || h == installs || h == stopsProcesses {
			return false
		}
	}
	sets := slices.ContainsFunc(argv[1:], func(a string) bool { return !strings.HasPrefix(a, "-") && strings.Contains(a, "=") })
	return known.Harm != (Harm{}) && !sets && !slices.Contains(argv, known.inline)
}
