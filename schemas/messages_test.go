package schemas

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMessagesAreCompletelyDescribed(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range Messages() {
		key := m.Type + " on " + m.Subject + " as " + m.How
		assert.False(t, seen[key], "%s is listed twice", key)
		seen[key] = true
		for _, text := range []string{m.Type, m.Subject, m.From, m.To, m.What} {
			assert.NotEmpty(t, text, key)
		}
		assert.Contains(t, []string{HowRequest, HowReply, HowPublish, HowQueue, HowFanOut, HowStored}, m.How, key)

		noun := reflect.ValueOf(m.New())
		require.Equal(t, reflect.Pointer, noun.Kind(), key)
		first := noun.Elem().Type().Field(0)
		assert.Equal(t, "Type", first.Name, "%s: the first field is the type", key)
		assert.True(t, noun.Elem().IsZero(), key)
		assert.Equal(t, m.Type, nouns()[noun.Type()].typ, "%s: one noun, one type", key)
	}
}

func TestEveryQuestionHasItsReply(t *testing.T) {
	replies := make(map[string]bool)
	for _, m := range Messages() {
		if m.How == HowReply {
			replies[m.Subject] = true
		}
	}
	for _, m := range Messages() {
		if m.How == HowRequest {
			assert.True(t, replies[m.Subject], "%s on %s", m.Type, m.Subject)
		}
	}
}

// Messages makes its patterns with the functions that return subjects. The test checks that Messages
// uses every function that returns a subject, and that Tokens finds the placeholders of each pattern.
func TestEverySubjectIsListed(t *testing.T) {
	source := string(mustRead(t, "messages.go")) + string(mustRead(t, "endpoints.go"))
	functions := regexp.MustCompile(`func (\w+Subject)\(`).FindAllStringSubmatch(string(mustRead(t, "subjects.go")), -1)
	require.NotEmpty(t, functions)
	for _, f := range functions {
		if f[1] == "TimerSubject" || f[1] == "DueSubject" {
			continue // this package has no message for timers
		}
		assert.Contains(t, source, f[1]+"(", "%s has no row", f[1])
	}
	for _, m := range Messages() {
		if !strings.HasPrefix(m.Subject, prefix) || strings.HasSuffix(m.Subject, ">") && !strings.Contains(m.Subject, "<") {
			continue // these rows have a bucket's key in place of a subject, or are replies on any subject
		}
		subject := strings.NewReplacer("<", "", ">", "").Replace(m.Subject)
		tokens := strings.Split(strings.TrimPrefix(subject, prefix), ".")
		got, ok := Tokens(subject, tokens[0], len(tokens)-1)
		assert.True(t, ok, m.Subject)
		assert.Equal(t, tokens[1:], got)
	}
}
