package hook

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
)

// PluginSettings returns the path of OpenClaw's settings file for the plugin at script.
func PluginSettings(script string) string {
	if path := os.Getenv("OPENCLAW_CONFIG_PATH"); path != "" {
		return path
	}
	return filepath.Join(filepath.Dir(script), "openclaw.json")
}

// LoadPlugin returns the change of OpenClaw's settings that makes it load the plugin at script or, if remove
// is true, no longer load it. It keeps every other byte. The change has a Warning if other settings keep
// OpenClaw from loading the plugin.
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
	if out := doc.bytes(); len(change.Before) > 0 || !remove {
		change.After = out
	}
	if !remove {
		change.Warning = doc.blocksPlugin()
	}
	return change, nil
}

// addPlugin adds the plugin's file to OpenClaw's list, and turns the plugin on unless the user has turned it
// off: OpenClaw loads a file of the list into some of its programs only if its entry says so.
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

// removePlugin undoes addPlugin. Objects that are empty then go too.
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

// valueAt returns the value at a path of members, or nil.
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

// addAt adds a value at a path of members, with the objects that are missing. It leaves a value that is there.
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

// removeAt removes the member at a path, and then each object above it that is empty.
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

// blocksPlugin returns a warning if a setting keeps OpenClaw from loading nod's plugin.
func (d *document) blocksPlugin() string {
	plugins, ok := memberObject(d.top, "plugins")
	if !ok {
		return ""
	}
	names := func(list string) (there, named bool) {
		i := agents.Member(plugins, list)
		if i < 0 {
			return false, false
		}
		return true, bytes.Contains(plugins.Members[i].Value.Pack(), []byte(`"nod"`))
	}
	off := func(o *hujson.Object) bool {
		i := agents.Member(o, "enabled")
		return i >= 0 && string(plainValue(o.Members[i].Value)) == "false"
	}
	allow, allowed := names("allow")
	_, denied := names("deny")
	entries, _ := memberObject(plugins, "entries")
	own := &hujson.Object{}
	if entries != nil {
		if o, ok := memberObject(entries, "nod"); ok {
			own = o
		}
	}
	switch {
	case off(plugins) || off(own):
		return d.path + " turns nod's plugin off: OpenClaw asks nobody until you set enabled to true"
	case denied || allow && !allowed:
		return d.path + ` does not let nod's plugin run: OpenClaw asks nobody until you add "nod" to plugins.allow and remove it from plugins.deny`
	}
	return ""
}

func memberObject(o *hujson.Object, name string) (*hujson.Object, bool) {
	i := agents.Member(o, name)
	if i < 0 {
		return nil, false
	}
	inner, ok := o.Members[i].Value.Value.(*hujson.Object)
	return inner, ok
}
