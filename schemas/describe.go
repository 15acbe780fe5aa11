package schemas

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// check returns an error of one line if the message breaks the schema. The error names the refused
// field and the reason, but contains no value of the message. If there are several faults, check
// reports the one whose path sorts first, so that a message always gets the same error.
func (s *schema) check(tree map[string]any) error {
	var all faults
	s.validate(tree, &all)
	if len(all) == 0 {
		return nil
	}
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = f.err().Error()
	}
	return Errorf(CodeValidation, "%s", slices.Min(lines))
}

// describeUnmarshal describes an error of json.Unmarshal for a message that the schema accepts. An
// example of such a message has 1.0 or 1e2 for an integer, which the schema accepts and Go does not.
func describeUnmarshal(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return invalid(wrong.Field, "must be written as a %s, not as %s", goWord(wrong.Type.Kind().String()), short(wrong.Value, 64))
	}
	return Errorf(CodeValidation, "the message does not decode: %v", err)
}

func goWord(kind string) string {
	if strings.Contains(kind, "int") {
		return "whole number without point or exponent"
	}
	return kind
}
