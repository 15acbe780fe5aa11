package policy

import (
	"path"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
)

// ShellNeeds returns the read permissions that a harmless command line needs: for the directories in which
// the line may run, for all paths that its words may mean and, if the line runs git, for whole work trees.
// They cover at least all that the line reads. disk must describe the machine on which the line runs. If the
// tool is not a shell, the error is ErrOtherTool. After any other error, the reads are unknown, and a person
// must be asked.
func (p *Policy) ShellNeeds(c Call, disk Disk) ([]Permission, error) {
	if tools.Named(c.ToolName).Kind != tools.Shell {
		return nil, ErrOtherTool
	}
	line, why := p.callLine(&c)
	if why != "" || !line.Harmless() || len(line.Dirs) == 0 {
		return nil, shell.ErrReadsUnknown
	}
	paths, err := line.Reads(disk)
	if err != nil {
		return nil, err
	}
	var perms []Permission
	for _, at := range paths {
		if !path.IsAbs(at) {
			return nil, shell.ErrReadsUnknown
		}
		perms = append(perms, Permission{Access: AccessRead, Path: at})
	}
	return perms, nil
}

// callLine reads the command line of a shell call. If a part of the call is unknown, the text why is the
// reason. If the input cannot be read, the line is nil.
func (p *Policy) callLine(c *Call) (line *shell.Line, why string) {
	line, _, why = p.callLineAt(c)
	return line, why
}

// callLineAt works like callLine, and also returns the location at the beginning of the line.
func (p *Policy) callLineAt(c *Call) (line *shell.Line, at *pathname.Location, why string) {
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return nil, nil, err.Error()
	}
	loc := c.location()
	src, why := p.commandAt(c, in, &loc)
	line, _ = p.shell.Read(src, loc)
	return line, &loc, why
}

// commandAt returns the text of a shell call's command line. If the input names a directory, commandAt sets
// it in the location loc. If a part of the call is unknown, the text why is the reason.
func (p *Policy) commandAt(c *Call, in tools.Input, loc *pathname.Location) (src, why string) {
	src, dir, why := in.Command()
	if why == "" && c.mayBePowerShell() {
		why = "may run in PowerShell, which nod does not read"
	}
	switch all := pathname.Locate(dir, "", "").Dirs; {
	case in.KeepsShell():
		loc.Dirs, loc.Lost = nil, true
	case dir == "":
	case len(all) == 0:
		loc.Dirs, loc.Lost, why = nil, true, "its directory is not a full path"
	default:
		loc.Dirs, loc.Lost = all, false
		if loc.Project == "" {
			loc.Project = all[0]
		}
	}
	loc.LeadsToSecret = p.shell.Secrets.MayLeadFrom(loc)
	return src, why
}
