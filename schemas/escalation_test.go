package schemas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Quiet hours are in the person's time zone and begin on the named days. Quiet hours that follow directly
// are joined.
func TestQuietHoursEndInThePersonsTimeZone(t *testing.T) {
	nights := Approver{TimeZone: "Europe/Berlin", Quiet: []QuietHours{{From: "22:00", To: "07:00"}, {Days: []string{"sat", "sun"}, From: "00:00", To: "00:00"}}}
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		assert.NoError(t, err)
		return when
	}
	for when, until := range map[string]string{
		"2026-11-25T20:59:00Z": "2026-11-25T20:59:00Z", // a Wednesday, 21:59 in Berlin
		"2026-11-25T21:00:00Z": "2026-11-26T06:00:00Z",
		"2026-11-26T05:59:59Z": "2026-11-26T06:00:00Z",
		"2026-11-26T06:00:00Z": "2026-11-26T06:00:00Z",
		"2026-11-27T22:30:00Z": "2026-11-30T06:00:00Z", // joins the quiet hours of Friday night, the weekend and the night to Monday
		"2026-11-28T12:00:00Z": "2026-11-30T06:00:00Z",
		"2026-03-26T23:00:00Z": "2026-03-27T06:00:00Z",
		"2026-03-29T23:00:00Z": "2026-03-30T05:00:00Z", // the clocks went forward in the night before
		"2026-10-24T21:00:00Z": "2026-10-26T06:00:00Z", // the clocks go back in the night to Sunday
	} {
		assert.Equal(t, at(until), nights.QuietUntil(at(when)).UTC(), when)
	}
	never := Approver{TimeZone: "UTC", Quiet: []QuietHours{{From: "00:00", To: "00:00"}}}
	assert.Greater(t, never.QuietUntil(at("2026-11-25T12:00:00Z")).Sub(at("2026-11-25T12:00:00Z")), DefaultDisconnectedTimeout)
	assert.Equal(t, at("2026-11-25T12:00:00Z"), (&Approver{}).QuietUntil(at("2026-11-25T12:00:00Z")))
}

func TestEscalationsAndQuietHoursAreChecked(t *testing.T) {
	const ann, bob = `{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]`, `{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}`
	const night = `, "quiet": [{"from": "22:00", "to": "07:00"}]`
	settings := func(ann, more string) string {
		return `{"approvers": {"people": [` + ann + `}, ` + bob + `]` + more + `}}`
	}
	steps := func(list string) string {
		return settings(ann, `, "escalation": [{"risk": "low", "steps": [`+list+`]}]`)
	}
	for text, message := range map[string]string{
		steps(`{"to": ["Ann"]}, {"to": ["Bob"], "after_seconds": 60}`):                                            "",
		steps(`{"to": ["Ann"], "after_seconds": 5}`):                                                              "approvers.escalation[0].steps[0].after_seconds: the first step comes at once",
		steps(`{"to": ["Ann"]}, {"to": ["Bob"]}`):                                                                 "approvers.escalation[0].steps[1].after_seconds: must be more than",
		steps(`{"to": ["Ann"]}, {"to": ["Eve"], "after_seconds": 60}`):                                            `approvers.escalation[0].steps[1].to[0]: "Eve" is neither a person nor a group`,
		settings(ann+`, "time_zone": "Europe/Berlin"`+night+`, "stand_in": "Bob"`, ""):                            "",
		settings(ann+`, "time_zone": "Europe/Berlin"`, ""):                                                        "",
		settings(ann+night, ""):                                                                                   "approvers.people[0].time_zone: is missing",
		settings(ann+`, "time_zone": "Berlin"`, ""):                                                               `approvers.people[0].time_zone: "Berlin" is no known time zone`,
		settings(ann+`, "time_zone": "Local"`, ""):                                                                `approvers.people[0].time_zone: "Local" is no known time zone`,
		settings(ann+`, "stand_in": "Bob"`, ""):                                                                   "approvers.people[0].stand_in: is for quiet hours",
		settings(ann+`, "time_zone": "UTC"`+night+`, "stand_in": "Ann"`, ""):                                      "approvers.people[0].stand_in: is \"Ann\": name another person",
		settings(ann+`, "time_zone": "UTC"`+night+`, "stand_in": "Eve"`, ""):                                      `approvers.people[0].stand_in: "Eve" is neither`,
		settings(ann+`, "time_zone": "UTC", "quiet": [{"from": "24:00", "to": "07:00"}]`, ""):                     "approvers.people[0].quiet[0].from",
		settings(ann+`, "time_zone": "UTC", "quiet": [{"days": ["friday"], "from": "22:00", "to": "07:00"}]`, ""): "approvers.people[0].quiet[0].days[0]",
	} {
		s, err := DecodeSettings([]byte(text))
		if message == "" {
			assert.NoError(t, err, text)
			assert.EqualValues(t, TeamsGroups, s.TeamsVersion(), text)
			continue
		}
		assert.ErrorContains(t, err, message, text)
	}
}
