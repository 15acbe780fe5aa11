package commands

import "strings"

// decidedByPeople are harms that containment does not prevent. A command with such a harm loses
// work in the project, or is meant for something outside the project. A person decides about
// it.
var decidedByPeople = map[Harm]bool{
	destroys: true, writesDisk: true, runsAsRoot: true, runsRemotely: true, publishes: true, changesSettings: true, stopsProcesses: true,
	stopsMachine: true, controlsContainers: true, changesSystems: true, installs: true,
}

// DecidedByPerson returns the reason if a person decides about a command even though the
// command could run contained. Otherwise it returns "".
func DecidedByPerson(argv []string) string {
	for _, h := range Harms(argv) {
		if decidedByPeople[h] {
			return h.Why
		}
	}
	return ""
}

// IsText reports whether a command's operands are text, and no paths or code.
func IsText(name string) bool { return Entry(name).Text }

// IsRunner reports whether the words name a command that builds, tests or checks the project.
func IsRunner(words ...string) bool { return Entry(strings.Join(words, " ")).runner }
