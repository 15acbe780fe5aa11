package schemas

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusals are the errors of Decode for the files in v1/golden/invalid.
var refusals = map[string]string{
	// The messages in these files have a wrong type, or are no messages of nod.
	"ok-type":              `type: is "nod.v1.okay", but nod.v1.ok is expected`,
	"request-array":        `request is not a JSON object`,
	"request-foreign_type": `type: is "acme.event", but nod.v1.request is expected`,
	"request-no_type":      `type: is missing or no string; it must be nod.v1.request`,
	"request-not_json":     `request is not JSON: line 2, column 14: invalid character '}' looking for beginning of value`,
	"request-null":         `request is not a JSON object`,
	"request-other_type":   `type: is "nod.v1.answer", but nod.v1.request is expected`,
	"request-trailing":     `request is not JSON: line 1, column 27: invalid character '{' after top-level value`,
	"request-type_number":  `type: is missing or no string; it must be nod.v1.request`,
	"settings-not_json":    `settings.json is not JSON: line 4, column 1: invalid character '}' looking for beginning of object key string`,

	// In these files, a field is wrong.
	"answer-both":                   `cancelled: cannot go with an option_id`,
	"answer-digest":                 `digest: must be 64 lower-case hexadecimal digits`,
	"answer-input_array":            `updated_input: must be of type object, not array`,
	"answer-edited_scope":           `scope: an edited input can only be allowed once`,
	"answer-for_once":               `for_seconds: needs a scope beyond once`,
	"answer-integer":                `updated_input.a.n: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"answer-neither":                `option_id: is missing; an answer names an option or is cancelled`,
	"answer-no_from":                `from: is missing`,
	"answer-user_id":                `from.user_id: must not be empty`,
	"await-none":                    `requests: must not be empty`,
	"await-null":                    `requests: must be of type array, not null`,
	"await_reply-decision":          `results[0].decision.outcome: must be one of allowed, denied, cancelled, timed_out, withdrawn`,
	"brake-from":                    `from: is missing`,
	"frozen-by":                     `freezes[0].by.kind: must be one of human, policy, clock, agent`,
	"decision-by":                   `by.kind: must be one of human, policy, clock, agent`,
	"decision-contradiction":        `option_kind: reject_once cannot go with outcome allowed`,
	"decision-outcome":              `outcome: must be one of allowed, denied, cancelled, timed_out, withdrawn`,
	"delivery-state":                `state: must be one of shown, failed, unreachable`,
	"error-code":                    `code: must be one of BAD_REQUEST, VALIDATION_ERROR, NOT_FOUND, UNAUTHORIZED, FORBIDDEN, CONFLICT, STALE, UNDELIVERABLE, UNAVAILABLE, INTERNAL_ERROR, UNKNOWN_ACTION, VOTED`,
	"gate-name":                     `name: is missing`,
	"gate_reply-missing":            `missing: must be of type null or array, not string`,
	"grants-scope":                  `grants[0].scope: must be one of once, session, agent`,
	"lock-granted":                  `granted: must be of type boolean, not string`,
	"log-kind":                      `kind: must be one of asked, shown, undelivered, voted, vouched, decided, claim, settings, session, granted, revoked, frozen, thawed, aftermath, ran, restored, checkpoint`,
	"notice-text":                   `text: is missing`,
	"notices-list":                  `notices: must be of type null or array, not object`,
	"page-prompt":                   `prompts[0].agent: must be 1 to 128 letters, digits, - or _`,
	"pairing-connector":             `connector: must be 1 to 128 letters, digits, - or _`,
	"pass-op":                       `op: must be one of spend, look, load, store`,
	"pass-user":                     `user_id: must be of type string, not number`,
	"passed-reason":                 `reason: must not be empty`,
	"passed_reply-ids":              `pending_ids[0]: must be 1 to 128 letters, digits, - or _`,
	"presence-op":                   `op: must be one of join, renew, leave, lock, unlock`,
	"prompt-other_request":          `request: has other ids than the prompt`,
	"prompt-request":                `request.tool_name: is missing; kind tool_call needs it`,
	"prompt-risk":                   `risk: must be one of low, medium, high`,
	"query-limit":                   `limit: must be at most 1000`,
	"receipt-tier":                  `tier: must be one of request, session, voice, connected, disconnected`,
	"ran-code":                      `report.exit_code: must be at most 255`,
	"run-words":                     `words: must be 64 lower-case hexadecimal digits`,
	"running-container":             `container: is missing`,
	"record-decision":               `decision.session_id: is missing`,
	"record-decision_case":          `decision.Outcome: is not a field; write outcome`,
	"record-event":                  `next_event.kind: must be one of release, escalate, next, deadline`,
	"record-no_decision":            `decision: is missing`,
	"register-worker":               `worker_id: must be 1 to 128 letters, digits, - or _`,
	"registered-lease":              `lease_until: must be of type string, not number`,
	"request-action_type":           `action_type: must be one of command, file_write, file_read, network, mcp_tool, other`,
	"request-bad_id":                `pending_id: must be 1 to 128 letters, digits, - or _`,
	"request-created_at":            `created_at: must be a time such as 2026-01-18T00:00:00Z`,
	"request-depth":                 `action_details.command[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][…: is nested more than 100 levels deep`,
	"request-details_string":        `action_details: must be of type object, not string`,
	"request-empty_title":           `title: must not be empty`,
	"request-float_integer":         `action_details.command: is a number that a double cannot keep exactly; send it as a string`,
	"request-float_long":            `action_details.command: is a number that a double cannot keep exactly; send it as a string`,
	"request-float_overflow":        `action_details.command: is a number that a double cannot keep exactly; send it as a string`,
	"request-float_underflow":       `action_details.command: is a number that a double cannot keep exactly; send it as a string`,
	"request-integer":               `action_details.command: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"request-integer_huge":          `action_details.command: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"request-integer_negative":      `action_details.command[1]: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"request-integer_unknown_field": `extra.n: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"request-kind":                  `kind: must be one of tool_call, permission, question`,
	"request-leap_second":           `created_at: must be a time such as 2026-01-18T00:00:00Z`,
	"request-long_id":               `session_id: must be 1 to 128 letters, digits, - or _`,
	"request-long_title":            `title: has 513 characters; the most is 512`,
	"request-long_tool_name":        `tool_name: has 257 characters; the most is 256`,
	"request-no_details":            `action_details: is missing`,
	"request-no_pending_id":         `pending_id: is missing`,
	"request-no_tool_name":          `tool_name: is missing; kind tool_call needs it`,
	"request-odd_name":              `action_details["a\nb"]: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"request-option_kind":           `options[1].kind: must be one of allow_once, allow_always, reject_once, reject_always`,
	"request-option_no_name":        `options[0].name: is missing`,
	"request-option_twice":          `options[1].option_id: repeats the id of an earlier option`,
	"request-options_17":            `options: has 17 entries; the most is 16`,
	"request-other_case":            `Title: is not a field; write title`,
	"request-other_case_inside":     `options[0].KIND: is not a field; write kind`,
	"request-other_case_unicode":    `["ſession_id"]: is not a field; write session_id`,
	"request-percent_name":          `action_details["%s%d"]: is an integer beyond 2^53, which not every reader keeps exactly; send it as a string`,
	"request-timeout_long":          `timeout_seconds: must be written as a whole number without point or exponent, not as number 1.0000000000000000000000000000000000000000000000000000000…`,
	"request-surrogate":             `action_details.command: holds half of a surrogate pair, such as \ud800 alone`,
	"request-surrogate_name":        `action_details: holds half of a surrogate pair, such as \ud800 alone`,
	"request-surrogate_order":       `action_details.command: holds half of a surrogate pair, such as \ud800 alone`,
	"request-tag":                   `permissions[1]: must be @read:<path>, @write:<path> or @network, without control characters`,
	"request-tag_newline":           `permissions[0]: must be @read:<path>, @write:<path> or @network, without control characters`,
	"request-timeout_31_days":       `timeout_seconds: must be at most 2592000`,
	"request-timeout_exponent":      `timeout_seconds: must be written as a whole number without point or exponent, not as number 6e1`,
	"request-timeout_fraction":      `timeout_seconds: must be of type integer, not number`,
	"request-timeout_negative":      `timeout_seconds: must be at least 0`,
	"request-timeout_string":        `timeout_seconds: must be of type integer, not string`,
	"request-title_null":            `title: must be of type string, not null`,
	"request-twice":                 `kind: is given twice`,
	"request-twice_inside":          `action_details.env[0].A: is given twice`,
	"request-wrong_version":         `type: is "nod.v2.request", a version that nod does not know; send nod.v1.request`,
	"share-session":                 `session_id: must be 1 to 128 letters, digits, - or _`,
	"leave-for_seconds":             `for_seconds: must be at most 28800`,
	"leave-max_risk":                `max_risk: must be one of low, medium, high`,
	"revoke-grant_id":               `grant_id: must be 1 to 128 letters, digits, - or _`,
	"session-agent":                 `agent: must be 1 to 128 letters, digits, - or _`,
	"session-permissions":           `permissions.network: is missing`,
	"session-relative":              `permissions.write_dirs[0]: must be an absolute path without control characters`,
	"session_change-control":        `permissions.working_dir: must be an absolute path without control characters`,
	"session_change-null":           `permissions.read_dirs: must be of type array, not null`,
	"session_change-timeout":        `timeout_seconds: must be at least 0`,
	"settings-31_days":              `permissions.disconnected_timeout_seconds: must be at most 2592000`,
	"settings-case":                 `permissions.Deny: is not a field; write deny`,
	"settings-connector":            `approvers.people[0].identities[1].connector: must be 1 to 128 letters, digits, - or _`,
	"settings-identity_twice":       `approvers.people[1].identities[0]: already belongs to "ann"; an identity belongs to one person and is listed once`,
	"settings-log_bytes":            `log.max_bytes: must be at least 67108864`,
	"settings-name_twice":           `approvers.people[1].name: repeats the name of an earlier approver`,
	"settings-no_people":            `approvers.people: is missing`,
	"settings-no_identity":          `approvers.people[0].identities: must not be empty`,
	"settings-rule_number":          `permissions.deny[1]: must be of type string, not number`,
	"settings-unknown":              `permissions.alow: is not known here; did you mean allow?`,
	"settings-zero_seconds":         `permissions.connected_timeout_seconds: must be at least 1`,
	"settings_change-none":          `settings: must be of type object, not null`,
	"settings_state-revision":       `revision: must be at least 0`,
	"shown-op":                      `op: must be one of get, claim, renew, set`,
	"withdraw-session":              `session_id: must be 1 to 128 letters, digits, - or _`,
}

func TestDecodeRefuses(t *testing.T) {
	files, err := filepath.Glob("v1/golden/invalid/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(refusals), "every file has its row")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			v := emptyNoun(t, file)
			err = Decode(data, v)
			require.EqualError(t, err, refusals[name])
			assert.ErrorIs(t, err, &Error{Code: CodeValidation})
			assert.NotContains(t, err.Error(), "\n")
			assert.True(t, reflect.ValueOf(v).Elem().IsZero(), "nothing of a refused message is left behind")
		})
	}
}
