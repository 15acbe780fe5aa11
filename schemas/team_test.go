package schemas

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A record with conditions about people has a type that versions without votes refuse. Load of this
// version accepts the type in a record, and refuses it in any other message.
func TestOnlyLoadReadsTeamRecords(t *testing.T) {
	plain := golden(t, "record")
	team := bytes.Replace(plain, []byte(`"nod.v1.record"`), []byte(`"`+TeamRecord+`"`), 1)
	var rec Record
	require.NoError(t, Load(team, &rec))
	assert.Equal(t, TeamRecord, rec.Type)
	assert.Equal(t, "ann", rec.Votes[0].Name)
	assert.ErrorContains(t, Decode(team, &rec), "nod.v2.record")
	var d Decision
	assert.ErrorContains(t, Load(bytes.Replace(golden(t, "decision"), []byte(TypeDecision), []byte(TeamRecord), 1), &d), "nod.v2.record")
	noun := *nouns()[reflect.TypeFor[*Record]()]
	noun.team = "" // stands for a version that does not know votes
	assert.ErrorContains(t, noun.load(team, &rec), "type: is \"nod.v2.record\", but nod.v1.record is expected")
}
