package wake_test

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/wake"
	"github.com/nodbus/nod/schemas"
)

// settings.schema.json contains exactly the fields of Settings. It requires the fields whose tags contain
// neither omitempty nor omitzero.
func TestTheSchemaIsTheStruct(t *testing.T) {
	type node struct {
		Properties map[string]node
		Required   []string
		Items      *node
	}
	var compare func(typ reflect.Type, schema node)
	compare = func(typ reflect.Type, schema node) {
		if typ.Kind() == reflect.Slice {
			typ, schema = typ.Elem(), *schema.Items
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		var always []string
		for field := range typ.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			require.Contains(t, schema.Properties, name, typ)
			compare(field.Type, schema.Properties[name])
			if options == "" {
				always = append(always, name)
			}
		}
		require.Len(t, schema.Properties, typ.NumField(), typ)
		require.ElementsMatch(t, always, schema.Required, typ)
	}
	var schema node
	require.NoError(t, json.Unmarshal(wake.Channel.Settings.Schema, &schema))
	compare(reflect.TypeFor[wake.Settings](), schema)
}

// decode decodes settings with a list of targets. A text that begins with {"web_url" is the whole section
// connectors.wake instead.
func decode(targets string) error {
	if !strings.HasPrefix(targets, `{"web_url"`) {
		targets = `{"web_url": "https://nod.example.com", "targets": [` + targets + `]}`
	}
	_, err := schemas.DecodeSettings([]byte(`{"connectors": {"wake": `+targets+`}}`), wake.Channel.Settings)
	return err
}

const (
	hook = `{"name": "a", "kind": "webhook", "url": "https://example.com/x", "secret_file": "/x"}`
	ntfy = `{"name": "b", "kind": "ntfy", "url": "https://ntfy.sh", "topic": "nod-1"}`
	form = `{"name": "c", "kind": "form", "url": "http://127.0.0.1:1/x", "secret_env": "X", "fields": [{"name": "token", "value": "{secret}"}]}`
)

func TestSettings(t *testing.T) {
	require.NoError(t, decode(hook+","+ntfy+","+form))
	for wrong, want := range map[string]string{
		hook + "," + strings.Replace(ntfy, `"b"`, `"a"`, 1):                            "the same name",
		strings.Replace(hook, `"https://example.com/x"`, `"http://example.com"`, 1):    "https://",
		strings.Replace(hook, `"https://example.com/x"`, `"https://a@example.com"`, 1): "plain address",
		strings.Replace(hook, `, "secret_file": "/x"`, ``, 1):                          "a webhook needs secret_env or secret_file",
		strings.Replace(hook, `"secret_file"`, `"secret_env": "X", "secret_file"`, 1):  "exclude each other",
		strings.Replace(hook, `"url"`, `"url_file"`, 1):                                "",
		strings.Replace(hook, `"url"`, `"url_env": "X", "url"`, 1):                     "needs one of url, url_env and url_file",
		strings.Replace(hook, `"kind"`, `"topic": "x", "kind"`, 1):                     "topic belongs",
		strings.Replace(ntfy, `"nod-1"`, `"nod/1"`, 1):                                 "topic",
		strings.Replace(ntfy, `"kind"`, `"payload": true, "kind"`, 1):                  "payload needs secret",
		strings.Replace(form, `"secret_env": "X", `, ``, 1):                            "{secret} needs",
		strings.Replace(form, `"form"`, `"pager"`, 1):                                  "kind",
		strings.Replace(ntfy, `"kind"`, `"after_seconds": -1, "kind"`, 1):              "after_seconds",
		`{"web_url": "http://nod.example.com", "targets": []}`:                         "web_url",
		`{"web_url": "https://nod.example.com/?x=1", "targets": []}`:                   "web_url",
	} {
		err := decode(wrong)
		if want == "" {
			require.NoError(t, err, wrong)
			continue
		}
		require.ErrorContains(t, err, want, wrong)
		require.ErrorContains(t, err, "wake", wrong)
	}
}

// A missing or malformed secret is one line that names the setting and not the secret.
func TestSecretsAreChecked(t *testing.T) {
	for secret, want := range map[string]string{
		"": "NOD_TEST_WAKE is not set", "whsec_dG9vc2hvcnQ=": "24 to 64 bytes", "whsec_no-base64-at-all-but-long-enough": "24 to 64 bytes",
	} {
		t.Setenv("NOD_TEST_WAKE", secret)
		_, err := wake.New(wake.Settings{Targets: []wake.Target{{Name: "a", Kind: wake.Webhook, URL: "https://example.com", SecretEnv: "NOD_TEST_WAKE"}}}, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "connectors.wake.targets a.")
		require.NotContains(t, err.Error(), "\n")
		if secret != "" {
			require.NotContains(t, err.Error(), secret)
		}
	}
}
