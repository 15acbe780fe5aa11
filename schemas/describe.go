package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// describe turns a schema's error into one line with the refused field and the reason, without
// the message's values. Of several faults it takes the first by path, so that a message always
// gets the same error. For an unknown member it suggests the most similar known one.
func describe(err error, schema *jsonschema.Schema) error {
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return Errorf(CodeInternal, "validate the message: %v", err)
	}
	var faults []string
	collect(violation, schema, &faults)
	slices.Sort(faults)
	return Errorf(CodeValidation, "%s", faults[0])
}

// collect appends the innermost violations to faults, as "path: text".
func collect(v *jsonschema.ValidationError, schema *jsonschema.Schema, faults *[]string) {
	for _, cause := range v.Causes {
		collect(cause, schema, faults)
	}
	if len(v.Causes) > 0 {
		return
	}
	location, words := v.InstanceLocation, wordsFor(v.ErrorKind)
	switch k := v.ErrorKind.(type) { // for a missing or unknown member, the path in the error lacks the member
	case *kind.Required:
		location = append(slices.Clip(location), k.Missing[0])
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		location = append(slices.Clip(location), k.Properties[0])
		if meant := Nearest(k.Properties[0], membersAt(schema, v.SchemaURL, map[*jsonschema.Schema]bool{})); meant != "" {
			words = "is not known here; did you mean " + meant + "?"
		}
	}
	*faults = append(*faults, short(pathOf(location), 200)+": "+words)
}

// membersAt returns the names of the members at a location of a schema, without the subschemas
// in seen.
func membersAt(s *jsonschema.Schema, location string, seen map[*jsonschema.Schema]bool) (names []string) {
	if s == nil || seen[s] {
		return nil
	}
	seen[s] = true
	if s.Location == location {
		return slices.Collect(maps.Keys(s.Properties))
	}
	below := append(slices.Collect(maps.Values(s.Properties)), s.Ref, s.Items2020)
	for _, part := range slices.Concat(below, s.AllOf, s.AnyOf, s.OneOf) {
		names = append(names, membersAt(part, location, seen)...)
	}
	return names
}

func pathOf(location []string) string {
	var path strings.Builder
	for _, token := range location {
		if _, err := strconv.Atoi(token); err == nil {
			path.WriteString("[" + token + "]")
		} else {
			path.WriteString(step(token))
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}

func wordsFor(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "is missing"
	case *kind.AdditionalProperties:
		return "is not known here; look for a typing mistake"
	case *kind.Type:
		return "must be of type " + strings.Join(k.Want, " or ") + ", not " + k.Got
	case *kind.Enum:
		return "must be one of " + list(k.Want)
	case *kind.Const:
		return fmt.Sprintf("must be %v", k.Want)
	case *kind.Format:
		return "must be a time such as 2026-01-18T00:00:00Z"
	case *kind.Pattern:
		return "must be " + wordsForPattern(k.Want)
	case *kind.MinLength:
		return "must not be empty"
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters; the most is %d", k.Got, k.Want)
	case *kind.MinItems:
		return "must not be empty"
	case *kind.MaxItems:
		return fmt.Sprintf("has %d entries; the most is %d", k.Got, k.Want)
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	default:
		return "does not match its JSON Schema at " + strings.Join(k.KeywordPath(), "/")
	}
}

func wordsForPattern(pattern string) string {
	switch {
	case pattern == idPattern:
		return "1 to 128 letters, digits, - or _"
	case strings.HasPrefix(pattern, "^@"):
		return tagWords
	case strings.HasPrefix(pattern, "^/"), strings.HasPrefix(pattern, "^(/"):
		return "an absolute path without control characters"
	case strings.HasPrefix(pattern, "^[0-9a-f]"):
		return "64 lower-case hexadecimal digits"
	default:
		return "like " + pattern
	}
}

func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}

// describeUnmarshal describes the error for a number that a schema accepts as an integer and Go
// does not, such as 1.0 or 1e2.
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
