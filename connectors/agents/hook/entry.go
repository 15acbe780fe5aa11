package hook

import (
	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
)

// entryNames are the names of a hook's fields in a host's settings file.
type entryNames struct {
	command, timeout, closed string
	flat                     bool
}

// hookEntry is nod's hook in a settings file.
type hookEntry struct {
	names   entryNames
	matcher string
	command string
	timeout int64 // the timeout, in the host's unit
	closed  bool  // the host blocks the call if the hook fails; see Setup.ClosedField
}

// MarshalJSON encodes the hook as a JSON object of type "command", with the field names of the host.
func (e hookEntry) MarshalJSON() ([]byte, error) {
	return hujson.Value{Value: &hujson.Object{Members: append([]hujson.ObjectMember{
		{Name: hujson.Value{Value: hujson.String("type")}, Value: hujson.Value{Value: hujson.String("command")}},
	}, e.fields()...)}}.Pack(), nil
}

// fields returns the fields of the hook that nod sets and updates.
func (e hookEntry) fields() []hujson.ObjectMember {
	fields := []hujson.ObjectMember{
		{Name: hujson.Value{Value: hujson.String(e.names.command)}, Value: hujson.Value{Value: hujson.String(e.command)}},
		{Name: hujson.Value{Value: hujson.String(e.names.timeout)}, Value: hujson.Value{Value: hujson.Int(e.timeout)}},
	}
	if e.closed && e.names.closed != "" {
		fields = append(fields, hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(e.names.closed)}, Value: hujson.Value{Value: hujson.Bool(true)}})
	}
	return fields
}

type hookGroup struct {
	Matcher string      `json:"matcher"`
	Hooks   []hookEntry `json:"hooks"`
}

func (e hookEntry) listElement() any {
	if e.names.flat {
		return e
	}
	return hookGroup{Matcher: e.matcher, Hooks: []hookEntry{e}}
}

// update sets the fields of entry in a hook of the file. Fields that the user added stay.
func update(hook *hujson.Object, entry hookEntry) {
	for _, f := range entry.fields() {
		name, value := f.Name.Value.(hujson.Literal).String(), f.Value.Value.(hujson.Literal) // cannot fail, because entry.fields returns only literals
		i := agents.Member(hook, name)
		if i < 0 {
			f.Name.BeforeExtra, f.Value.BeforeExtra = siblingExtra(hook)
			hook.Members = append(hook.Members, f)
			continue
		}
		old, ok := hook.Members[i].Value.Value.(hujson.Literal)
		if !ok || old.Kind() != value.Kind() || old.String() != value.String() {
			hook.Members[i].Value.Value = value
		}
	}
}
