package commands

import (
	"slices"
	"strings"
)

var containerPrograms = []string{"docker", "podman", "nerdctl", "docker-compose"}

// Away reports, for each word of a command, whether the word means a file of a container or of another
// machine. A flag's value that gives a container a directory of this machine counts as a file of the
// container; Mounted returns these directories.
func Away(argv []string) []bool {
	away := make([]bool, len(argv))
	for i := range argv {
		if IsElsewhere(argv[i]) || i > 0 && !Entry(ProgramName(argv[0])).Wraps {
			break
		}
		markAway(argv[i:], away[i:])
	}
	return away
}

func markAway(argv []string, away []bool) {
	name, args := ProgramName(argv[0]), argv[1:]
	from := len(argv)
	switch {
	case name == "ssh":
		from = 1 + operandAt(args, 1, sshValues)
	case (name == "kubectl" || name == "oc") && slices.Contains(args, "exec"):
		if at := slices.Index(args, "--"); at >= 0 {
			from = at + 1
		}
	case slices.Contains(containerPrograms, name):
		from = 1 + insideContainer(args)
		for i := 1; i < len(argv); i++ {
			flag := strings.TrimLeft(argv[i-1], "-")
			away[i] = away[i] || flag != argv[i-1] && slices.Contains([]string{"v", "volume", "mount", "w", "workdir", "tmpfs"}, flag)
		}
	}
	for i := from; i < len(argv); i++ {
		away[i] = true
	}
}

// insideContainer returns, for the arguments of docker, the index of the word that names the container or its
// image. The words after it run in the container. Without such a word it returns len(args).
func insideContainer(args []string) int {
	at := operandAt(args, 0, globalFlags["docker"])
	if at < len(args) && slices.Contains([]string{"compose", "container"}, args[at]) {
		at += 1 + operandAt(args[at+1:], 0, globalFlags["docker"])
	}
	if at >= len(args) || !slices.Contains([]string{"run", "create", "exec"}, args[at]) {
		return len(args)
	}
	return at + 1 + operandAt(args[at+1:], 0, containerValues)
}

// operandAt returns the index of operand n, counted from 0, of a command, or len(args).
func operandAt(args []string, n int, takeValue []string) int {
	for i := 0; i < len(args); i++ {
		switch flag := strings.TrimLeft(args[i], "-"); {
		case flag == args[i]:
			if n--; n < 0 {
				return i
			}
		case slices.Contains(takeValue, flag):
			i++
		}
	}
	return len(args)
}

// Mounted returns the directories and files of this machine that a command gives to a container.
func Mounted(argv []string) (all []string) {
	name, args := ProgramName(argv[0]), argv[1:]
	if !slices.Contains(containerPrograms, name) {
		return nil
	}
	inside := insideContainer(args)
	if inside == len(args) {
		return nil
	}
	args = args[:inside]
	for _, v := range flagValues(args, "v", "volume") {
		from, _, two := strings.Cut(v, ":")
		if isNamed := from != "" && !strings.ContainsAny(from, "/.~"); two && !isNamed { // a named volume is no directory of this machine
			all = append(all, from)
		}
	}
	return append(all, mountSources(args)...)
}

// HostOf returns the machine on which a command runs another command, as the command names it, or
// "the container". It returns "" for a command that runs no other, or runs it on this machine.
func HostOf(argv []string) string {
	switch name := ProgramName(argv[0]); {
	case IsElsewhere(argv[0]):
		return ""
	case startsElsewhere(name):
		return "the container"
	case name != "ssh":
		return ""
	}
	if all := hosts("ssh", argv[1:]); len(all) > 0 && all[0] != Unknown {
		return all[0]
	}
	return "another machine"
}

const contextInUse = "the context in use"

// Daemon returns the names of the daemon that runs the containers of a command, or nothing for a command
// without containers.
func Daemon(argv []string) []string {
	if !slices.Contains([]string{"docker", "nerdctl"}, ProgramName(argv[0])) {
		return nil
	}
	globals := argv[1 : len(argv)-len(withoutGlobals(argv))+1]
	var names []string
	for _, flag := range [][]string{{"context", "c", "context"}, {"host", "H", "host"}} {
		for _, value := range flagValues(globals, flag[1:]...) {
			if value = orUnknown(withoutUser(value)); value != Unknown {
				value = flag[0] + " " + value
			}
			names = append(names, value)
		}
	}
	if len(names) == 0 {
		return []string{contextInUse}
	}
	return names
}
