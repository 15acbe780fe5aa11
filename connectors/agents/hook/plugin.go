package hook

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
)

// pluginTemplate is the source of a program that runs nod's hook in an agent, without settings. {{program}}
// says what it is, {{name}} is the host's name, and {{own}} the part that differs from host to host.
//
//go:embed plugin.ts.tmpl
var pluginTemplate string

// pluginScript returns the text for Setup.Script.
func pluginScript(program, name, own string) string {
	return strings.NewReplacer("{{program}}", program, "{{name}}", name, "{{own}}", own).Replace(pluginTemplate)
}

// PluginSettings returns the path of the settings file of OpenClaw in which the plugin with the path
// script belongs.
func PluginSettings(script string) string {
	if path := os.Getenv("OPENCLAW_CONFIG_PATH"); path != "" {
		return path
	}
	return filepath.Join(filepath.Dir(script), "openclaw.json")
}

// LoadPlugin returns a change of OpenClaw's settings that makes OpenClaw load the plugin with the path
// script or, if remove is true, no longer load it. The change keeps every other byte. It has a Warning
// if other settings keep OpenClaw from loading the plugin.
func LoadPlugin(script string, remove bool) (Change, error) {
	change, err := openChange(PluginSettings(script))
	if err != nil {
		return change, err
	}
	if change.After = change.Before; change.isNew && remove {
		return change, nil
	}
	doc, err := parseJSONC(change.Path, change.Before)
	if err != nil {
		return Change{}, err
	}
	edit := doc.addPlugin
	if remove {
		edit = doc.removePlugin
	}
	if err := edit(script); err != nil {
		return Change{}, err
	}
	if len(change.Before) > 0 || !remove {
		change.After = doc.bytes()
	}
	if !remove {
		change.Warning = doc.blocksPlugin()
	}
	return change, nil
}

// addPlugin adds the plugin's file to OpenClaw's list, and turns the plugin on in its entry. This second
// step is necessary because some of OpenClaw's programs do not load a file that is only in the list. If
// the user has turned the plugin off, it stays off.
func (d *document) addPlugin(script string) error {
	if err := d.addAt([]string{"plugins", "load", "paths"}, []string{script}); err != nil {
		return err
	}
	list, ok := d.valueAt("plugins", "load", "paths").(*hujson.Array)
	if !ok {
		return fmt.Errorf("%s: plugins.load.paths is not a list; correct it first, nothing was changed", d.path)
	}
	if !slices.Contains(literals(list), script) {
		if err := d.addElement(list, 4, script); err != nil {
			return err
		}
	}
	return d.addAt([]string{"plugins", "entries", pluginName, "enabled"}, true)
}

const pluginName = "nod"

// removePlugin undoes addPlugin. It also removes the objects that are then empty.
func (d *document) removePlugin(script string) error {
	list, ok := d.valueAt("plugins", "load", "paths").(*hujson.Array)
	if !ok {
		return nil
	}
	i := slices.Index(literals(list), script)
	if i < 0 {
		return nil
	}
	removeElement(list, i)
	if len(list.Elements) == 0 {
		d.removeAt("plugins", "load", "paths")
	}
	if own, ok := d.valueAt("plugins", "entries", pluginName).(*hujson.Object); ok && len(own.Members) == 1 && literal(own.Members[0].Name) == "enabled" {
		d.removeAt("plugins", "entries", pluginName)
	}
	return nil
}

// valueAt returns the value at the end of a path of member names, or nil.
func (d *document) valueAt(path ...string) hujson.ValueTrimmed {
	at := hujson.ValueTrimmed(d.top)
	for _, name := range path {
		o, ok := at.(*hujson.Object)
		if !ok {
			return nil
		}
		i := agents.Member(o, name)
		if i < 0 {
			return nil
		}
		at = o.Members[i].Value.Value
	}
	return at
}

// addAt adds a value at the end of a path of member names, together with the missing objects. It does
// not replace a value.
func (d *document) addAt(path []string, value any) error {
	for depth := range path {
		if d.valueAt(path[:depth+1]...) != nil {
			continue
		}
		parent, ok := d.valueAt(path[:depth]...).(*hujson.Object)
		if !ok {
			return fmt.Errorf("%s: %s is not an object; correct it first, nothing was changed", d.path, strings.Join(path[:depth], "."))
		}
		for i := len(path) - 1; i > depth; i-- {
			value = map[string]any{path[i]: value}
		}
		return d.addMember(parent, depth+1, path[depth], value)
	}
	return nil
}

// removeAt removes the member at the end of a path of names, and then each object above it that is empty.
func (d *document) removeAt(path ...string) {
	for depth := len(path) - 1; depth >= 0; depth-- {
		parent, ok := d.valueAt(path[:depth]...).(*hujson.Object)
		if !ok {
			return
		}
		removeMember(parent, agents.Member(parent, path[depth]))
		if len(parent.Members) > 0 {
			return
		}
	}
}

// blocksPlugin returns a warning if a setting keeps OpenClaw from loading nod's plugin, and otherwise "".
func (d *document) blocksPlugin() string {
	off := func(path ...string) bool {
		on, ok := d.valueAt(append(path, "enabled")...).(hujson.Literal)
		return ok && string(on) == "false"
	}
	// wrong reports whether the setting list keeps OpenClaw from loading the plugin. If wanted is true,
	// the list must contain the plugin, and otherwise it must not. A missing list is not wrong.
	wrong := func(list string, wanted bool) bool {
		v := d.valueAt("plugins", list)
		names, ok := v.(*hujson.Array)
		return v != nil && (!ok || slices.Contains(literals(names), pluginName) != wanted)
	}
	switch {
	case off("plugins") || off("plugins", "entries", pluginName):
		return d.path + " turns nod's plugin off: OpenClaw asks nobody until you set enabled to true"
	case wrong("allow", true) || wrong("deny", false):
		return d.path + ` does not let nod's plugin run: OpenClaw asks nobody until you add "nod" to plugins.allow and remove it from plugins.deny`
	}
	return ""
}
