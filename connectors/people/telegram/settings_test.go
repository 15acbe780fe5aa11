package telegram_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/telegram"
)

// settings.schema.json contains exactly the fields of Settings. It requires the fields whose tags do not
// contain omitempty.
func TestTheSchemaIsTheStruct(t *testing.T) {
	t.Parallel()
	type node struct {
		Properties map[string]node
		Required   []string
	}
	var compare func(typ reflect.Type, schema node)
	compare = func(typ reflect.Type, schema node) {
		var names, always []string
		for field := range typ.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
			if options == "" {
				always = append(always, name)
			}
			if field.Type.Kind() == reflect.Pointer {
				compare(field.Type.Elem(), schema.Properties[name])
			}
		}
		require.ElementsMatch(t, always, schema.Required, typ)
		require.Len(t, schema.Properties, len(names), typ)
		for _, name := range names {
			require.Contains(t, schema.Properties, name, typ)
		}
	}
	var schema node
	require.NoError(t, json.Unmarshal(telegram.Channel.Settings.Schema, &schema))
	compare(reflect.TypeFor[telegram.Settings](), schema)
}
