package codec

import (
	"bytes"
	"encoding/json"

	"shardtool/format"
)

// jsonText goes through a text of JSON as Python's json.loads reads it: RFC 8259
// and the numbers NaN, Infinity and -Infinity.
type jsonText struct {
	data  []byte
	i     int
	depth int
}

// maxDepth is how deep values may lie in each other.
const maxDepth = 10_000

func decodeJSON(data []byte, _ *Options) (Value, error) {
	if i := invalidUTF8(data); i >= 0 {
		return Value{}, format.Errorf(format.ErrCorrupt, format.Nowhere, "JSON: byte %d, %#02x, is no UTF-8", i, data[i])
	}
	t := newJSON(data)
	v, err := t.value()
	if err == nil {
		err = t.end()
	}
	if err != nil {
		return Value{}, err
	}
	return OfJSON(v), nil
}

// newJSON begins behind a byte order mark, if there is one.
func newJSON(data []byte) jsonText {
	return jsonText{data: data, i: len(data) - len(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))}
}

// next returns the first byte that is no white space, 0 at the end.
func (t *jsonText) next() byte {
	for ; t.i < len(t.data); t.i++ {
		switch c := t.data[t.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (t *jsonText) end() error {
	if t.next(); t.i < len(t.data) {
		return t.fault("more follows the value")
	}
	return nil
}

// fault is the error of what stands at the place at hand.
func (t *jsonText) fault(what string) error {
	if t.i >= len(t.data) {
		return format.Errorf(format.ErrTruncated, format.Nowhere, "JSON: it ends at byte %d, within a value", t.i)
	}
	return format.Errorf(format.ErrCorrupt, format.Nowhere, "JSON: %s at byte %d, %.16q", what, t.i, t.data[t.i:min(t.i+16, len(t.data))])
}

func (t *jsonText) value() (any, error) {
	switch c := t.next(); c {
	case '{':
		return nested(t, t.object)
	case '[':
		return nested(t, t.array)
	case '"':
		s, err := t.str()
		return s, err
	case 'n', 't', 'f':
		return t.word()
	default:
		n, err := t.number()
		return json.Number(n), err
	}
}

func nested[T any](t *jsonText, read func() (T, error)) (any, error) {
	if t.depth++; t.depth > maxDepth {
		return nil, format.Errorf(format.ErrLimit, format.Nowhere, "JSON: values lie deeper than %d in each other, at byte %d", maxDepth, t.i)
	}
	t.i++
	v, err := read()
	t.depth--
	return v, err
}

// object reads what is behind an opening brace. Of a name that comes twice the
// last value counts.
func (t *jsonText) object() (map[string]any, error) {
	m := make(map[string]any)
	for first := true; ; first = false {
		c := t.next()
		if first && c == '}' {
			t.i++
			return m, nil
		}
		if c != '"' {
			return nil, t.fault("no name")
		}
		name, err := t.str()
		if err != nil {
			return nil, err
		}
		if t.next() != ':' {
			return nil, t.fault("no colon")
		}
		t.i++
		v, err := t.value()
		if err != nil {
			return nil, err
		}
		m[name] = v
		if more, err := t.comma('}'); err != nil || !more {
			return m, err
		}
	}
}

func (t *jsonText) array() ([]any, error) {
	list := []any{}
	if t.next() == ']' {
		t.i++
		return list, nil
	}
	for {
		v, err := t.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if more, err := t.comma(']'); err != nil || !more {
			return list, err
		}
	}
}

// comma passes a comma, or the end of an object or array.
func (t *jsonText) comma(end byte) (more bool, err error) {
	switch t.next() {
	case ',':
		t.i++
		return true, nil
	case end:
		t.i++
		return false, nil
	}
	return false, t.fault("no comma")
}

func (t *jsonText) word() (any, error) {
	for _, w := range [...]struct {
		text  string
		value any
	}{{"null", nil}, {"true", true}, {"false", false}} {
		if t.take(w.text) {
			return w.value, nil
		}
	}
	return nil, t.fault("no value")
}

// take passes a text that stands here.
func (t *jsonText) take(text string) bool {
	if !bytes.HasPrefix(t.data[t.i:], []byte(text)) {
		if bytes.HasPrefix([]byte(text), t.data[t.i:]) {
			t.i = len(t.data) // it ends within
		}
		return false
	}
	t.i += len(text)
	return true
}

// str reads a string that begins here.
func (t *jsonText) str() (string, error) {
	from, escaped := t.i, false
	for t.i++; t.i < len(t.data); t.i++ {
		switch c := t.data[t.i]; {
		case c == '"':
			t.i++
			if !escaped {
				return string(t.data[from+1 : t.i-1]), nil
			}
			var s string
			if json.Unmarshal(t.data[from:t.i], &s) != nil {
				t.i = from
				return "", t.fault("a string with an escape that there is not")
			}
			return s, nil
		case c == '\\':
			escaped = true
			t.i++
		case c < ' ':
			return "", t.fault("a control character in a string")
		}
	}
	t.i = len(t.data)
	return "", t.fault("")
}

// number reads a number that stands here, and returns its text, a view.
func (t *jsonText) number() ([]byte, error) {
	from := t.i
	t.has('-')
	switch c := t.peek(); {
	case c == 'N' && t.i == from, c == 'I':
		word := "Infinity"
		if c == 'N' {
			word = "NaN"
		}
		if !t.take(word) {
			return nil, t.fault("no number")
		}
		return t.data[from:t.i], nil
	case c == '0':
		t.i++
	case !t.digits():
		return nil, t.fault("no value")
	}
	if t.has('.') && !t.digits() {
		return nil, t.fault("no digit of a fraction")
	}
	if t.has('e') || t.has('E') {
		if !t.has('+') {
			t.has('-')
		}
		if !t.digits() {
			return nil, t.fault("no digit of an exponent")
		}
	}
	return t.data[from:t.i], nil
}

func (t *jsonText) peek() byte {
	if t.i < len(t.data) {
		return t.data[t.i]
	}
	return 0
}

func (t *jsonText) has(c byte) bool {
	if t.i >= len(t.data) || t.data[t.i] != c {
		return false
	}
	t.i++
	return true
}

func (t *jsonText) digits() bool {
	from := t.i
	for c := t.peek(); '0' <= c && c <= '9'; c = t.peek() {
		t.i++
	}
	return t.i > from
}
