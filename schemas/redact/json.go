package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/nodbus/nod/internal/lazyregexp"
)

var (
	secretField = lazyregexp.New(`(?i)^` + secretName + `$`)
	pathField   = lazyregexp.New(`(?i)^(?:file_?path|abs(?:olute)?_?path|notebook_?path|path|file|file_?name|uri|target_?file|relative_?workspace_?path)$`)
	placeField  = lazyregexp.New(`^(?:cwd|workdir|dir)$`)
)

// JSON returns a JSON value with a Mark for each secret, and the number of marks. It replaces secrets
// in strings and in the names of members. It replaces a whole value if the member's name stands for a
// secret, and all texts of an object that names a secret file. The order of members stays the same.
// If data has no secret, JSON returns it unchanged. An error means that data is not valid JSON.
func (r Redactor) JSON(data json.RawMessage) (json.RawMessage, int, error) {
	w := jsonWriter{r: r, in: json.NewDecoder(bytes.NewReader(data))}
	w.in.UseNumber()
	if err := w.value(inherited{}); err != nil {
		return nil, 0, err
	}
	if _, err := w.in.Token(); !errors.Is(err, io.EOF) {
		return nil, 0, errors.New("there is more than one JSON value")
	}
	if w.n == 0 {
		return data, 0, nil
	}
	return w.out.Bytes(), w.n, nil
}

// inherited is what the surrounding objects say about a value.
type inherited struct {
	secret bool // the name of a member around the value stands for a secret
	file   bool // the value is part of the content of a secret file
}

type jsonWriter struct {
	r   Redactor
	in  *json.Decoder
	out bytes.Buffer
	n   int
}

// value copies the next JSON value from in to out, without its secrets.
func (w *jsonWriter) value(in inherited) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return w.object(in)
		}
		return w.array(in)
	case string:
		w.text(t, in)
	case json.Number:
		if in.secret {
			w.mark()
			return nil
		}
		w.out.WriteString(t.String())
	default: // true, false and null are no secrets
		plain, err := json.Marshal(t)
		if err != nil {
			return err
		}
		w.out.Write(plain)
	}
	return nil
}

func (w *jsonWriter) array(in inherited) error {
	w.out.WriteByte('[')
	for first := true; w.in.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if err := w.value(in); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	_, err := w.in.Token()
	return err
}

// object copies an object without its secrets. It reads all members before it writes the first,
// because the member with a file's path may follow the member with the file's content.
func (w *jsonWriter) object(in inherited) error {
	var members []member
	for w.in.More() {
		key, err := w.in.Token()
		if err != nil {
			return err
		}
		m := member{name: key.(string)} // the decoder returns only names here, and names are strings
		if err := w.in.Decode(&m.value); err != nil {
			return err
		}
		members = append(members, m)
	}
	if _, err := w.in.Token(); err != nil {
		return err
	}
	for _, m := range members {
		in.file = in.file || w.namesSecretFile(m)
	}
	w.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.text(m.name, inherited{})
		w.out.WriteByte(':')
		if err := w.member(m, in); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

type member struct {
	name  string
	value json.RawMessage
}

func (w *jsonWriter) namesSecretFile(m member) bool {
	var path string
	return w.r.SecretFile != nil && pathField.MatchString(m.name) && json.Unmarshal(m.value, &path) == nil && w.r.SecretFile(path)
}

// member copies the value of a member, with a decoder of its own.
func (w *jsonWriter) member(m member, in inherited) error {
	in.secret = in.secret || secretField.MatchString(m.name)
	if in.file && (pathField.MatchString(m.name) || placeField.MatchString(m.name)) {
		in.file = false
	}
	inner := jsonWriter{r: w.r, in: json.NewDecoder(bytes.NewReader(m.value))}
	inner.in.UseNumber()
	err := inner.value(in)
	w.out.Write(inner.out.Bytes())
	w.n += inner.n
	return err
}

func (w *jsonWriter) text(s string, in inherited) {
	if in.secret && !isKnown(s, false) || in.file && s != "" {
		w.mark()
		return
	}
	clean, n := w.r.Text(s)
	w.n += n
	quoted, _ := json.Marshal(clean) // encoding a string cannot fail
	w.out.Write(quoted)
}

func (w *jsonWriter) mark() {
	w.n++
	w.out.WriteString(`"` + Mark + `"`)
}
