package commands

import "strings"

// decidedByPeople are the harms that containment does not prevent. A command with such a harm loses
// work in the project, or acts outside the project. A person decides about the command.
var decidedByPeople = map[Harm]bool{
	destroys: true, writesDisk: true, runsAsRoot: true, runsRemotely: true, publishes: true, changesSettings: true, stopsProcesses: true,
	stopsMachine: true, controlsContainers: true, changesSystems: true, installs: true,
}

// DecidedByPerson returns the reason why a person must decide about a command that could run
// contained. If no person must decide, it returns "".
func DecidedByPerson(argv []string) string {
	for _, h := range Harms(argv) {
		if decidedByPeople[h] {
			return h.Why
		}
	}
	return ""
}

// IsText reports whether a command's operands are text, and neither paths nor code.
func IsText(name string) bool { return Entry(name).Text }

// IsRunner reports whether the words name a command that builds, tests or checks the project.
func IsRunner(words ...string) bool { return Entry(strings.Join(words, " ")).runner }
