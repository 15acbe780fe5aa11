package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
)

// downloadHarms returns the harms of code that the line downloads and then runs, from a pipe or from a file.
func (f *Facts) downloadHarms() (all []commands.Harm) {
	places, files := map[int]string{}, map[string]string{}
	for i, argv := range f.Commands {
		if !isOperandDot(argv) && commands.Downloads(f.harmsOf(i)) {
			places[i] = f.destination(i)
			for _, file := range commands.DownloadedFiles(argv) {
				files[path.Clean(file)] = places[i]
			}
		}
	}
	if len(places) == 0 {
		return nil
	}
	add := func(place string) {
		if h := commands.FromDownload(place); place != "" && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	for i, argv := range f.Commands {
		if isOperandDot(argv) {
			continue
		}
		if file := commands.ScriptOf(argv); file != "" {
			add(files[path.Clean(file)])
		}
		if f.unseenOf(i, true) == commands.DownloadedScript {
			for k := range f.Commands {
				add(places[k])
			}
		}
	}
	return all
}

// uploadHarm returns the harm of a command that sends files to another machine. Servers of this machine do not
// count. If the command sends no files, ok is false.
func (f *Facts) uploadHarm(i int) (h commands.Harm, ok bool) {
	argv := f.Commands[i]
	files := commands.Uploads(argv)
	to := commands.Destinations(argv)
	if len(files) == 0 || len(to) > 0 && !slices.ContainsFunc(to, func(place string) bool { return !isThisMachine(place) }) {
		return commands.Harm{}, false
	}
	what := "files"
	switch {
	case files[0] == "-" || files[0] == ".":
		what = "its input"
	case plainWord.MatchString(files[0]):
		what += " (" + files[0] + ")"
	}
	return commands.Harm{Risk: schemas.RiskHigh, Why: "uploads " + what + " to " + f.destination(i)}, true
}

// isThisMachine reports whether a place, which may have a port, is this machine.
func isThisMachine(place string) bool {
	host := place
	if at := strings.LastIndexByte(place, ':'); at > 0 && !strings.HasSuffix(place, "]") {
		host = place[:at]
	}
	return loopback.Is(strings.Trim(host, "[]"))
}

// secretScript returns a file with secrets, such as .env, that a command runs as a script, and the harm of
// this. For any other command, file is "".
func (f *Facts) secretScript(i int) (h commands.Harm, file string) {
	argv := f.Commands[i]
	file = commands.ScriptOf(argv)
	if file == "" || file == argv[0] && f.inexact[i] || !slices.ContainsFunc(f.Location.Resolve(file), f.secrets.Listed) {
		return commands.Harm{}, ""
	}
	why := "runs a file with secrets as a script"
	if argv[0] == "." || argv[0] == "source" {
		why = "loads a file with secrets into the shell"
	}
	return commands.Harm{Risk: schemas.RiskHigh, Why: why}, file
}
