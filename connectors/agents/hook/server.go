package hook

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
	"github.com/tailscale/hujson"
)

// The values of NAME in `nod install NAME` that install nod as a server of a host.
const (
	MCPName = "mcp"
	ACPName = "acp"
)

// Server is a nod program that a host starts. The settings of the host list such programs.
type Server struct {
	List string // the settings member with the list, such as mcpServers
	Name string // the program's key in that list
	Args []string
	Note string // advice for the user; may be empty
}

// MCPServer describes nod as an MCP server, for Claude Code and for hosts with the same settings
// format.
func MCPServer() Server {
	return Server{
		List: "mcpServers", Name: "nod", Args: []string{"mcp"},
		Note: "in print mode, name its tool: claude -p … --permission-prompt-tool mcp__nod__approve",
	}
}

// acpList is the member of an editor's settings that lists its agents. throughNod ends the name of each
// agent that runs through nod.
const (
	acpList    = "agent_servers"
	throughNod = ", through nod"
)

// ACPServers returns a Server with which InstallServer uninstalls every ACPServer.
func ACPServers() Server { return Server{List: acpList} }

// ACPServer describes nod as an agent of an editor, whose settings must have the format of Zed's. nod runs
// between the editor and the real agent, which command starts. The error means that command is empty.
func ACPServer(command []string) (Server, error) {
	if len(command) == 0 {
		return Server{}, errors.New("name the agent's command after --, such as: nod install acp --settings ~/.config/zed/settings.json -- gemini --experimental-acp")
	}
	return Server{
		List: acpList, Name: filepath.Base(command[0]) + throughNod,
		Args: append([]string{"acp", "--"}, command...),
	}, nil
}

// InstallServer adds s to the settings file o.Settings or, if o.Uninstall is true, removes s. It
// returns the change, and keeps everything else in the file, including comments.
func InstallServer(s Server, o InstallOptions) (Change, error) {
	if o.Settings == "" {
		return Change{}, errors.New("name the host's settings file with --settings")
	}
	path, err := filepath.Abs(o.Settings)
	if err != nil {
		return Change{}, fmt.Errorf("find the host's settings: %w", err)
	}
	change, err := openChange(path)
	if err != nil {
		return Change{}, err
	}
	doc, err := parseJSONC(change.Path, change.Before)
	if err != nil {
		return Change{}, err
	}
	if o.Uninstall {
		err = doc.unlist(s)
	} else if err = doc.list(s, o.Program); err == nil {
		change.Note = s.Note
	}
	if err != nil {
		return Change{}, err
	}
	change.After = doc.bytes()
	if o.DryRun || !change.Changed() {
		return change, nil
	}
	return change, change.Write()
}

// serverList returns the object s.List of the file, or nil if the file has none.
func (d *document) serverList(s Server) (*hujson.Object, error) {
	i := agents.Member(d.top, s.List)
	if i < 0 {
		return nil, nil
	}
	list, ok := d.top.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%s: %q is not an object; correct it first, nothing was changed", d.path, s.List)
	}
	return list, nil
}

func (d *document) list(s Server, program string) error {
	entry := map[string]any{"command": program, "args": s.Args}
	list, err := d.serverList(s)
	switch {
	case err != nil:
		return err
	case list == nil:
		return d.addMember(d.top, 1, s.List, map[string]any{s.Name: entry})
	}
	if i := agents.Member(list, s.Name); i >= 0 {
		wanted, err := schemas.Encode(entry)
		if err != nil {
			return err
		}
		is := list.Members[i].Value.Clone()
		if is.Minimize(); bytes.Equal(is.Pack(), wanted) {
			return nil
		}
		removeMember(list, i)
	}
	return d.addMember(list, 2, s.Name, entry)
}

func (d *document) unlist(s Server) error {
	list, err := d.serverList(s)
	if list == nil {
		return err
	}
	for i := len(list.Members) - 1; i >= 0; i-- {
		name := list.Members[i].Name.Value.(hujson.Literal).String() // member names are always literals
		if name == s.Name || s.Name == "" && strings.HasSuffix(name, throughNod) {
			removeMember(list, i)
		}
	}
	if len(list.Members) == 0 {
		removeMember(d.top, agents.Member(d.top, s.List))
	}
	return nil
}
