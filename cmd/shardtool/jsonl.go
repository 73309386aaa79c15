package main

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// encoder writes rows as JSON Lines without loss, where encoding/json would
// lose or refuse:
//
//	NaN, infinities           strings: "NaN", "Infinity", "-Infinity"
//	integers beyond 2^53      strings: "9007199254740993"
//	[]byte and string         a string; where a byte is not UTF-8, base64 under
//	                          the member's name with _b64 added: "key_b64"
//	lists of them             the same for the whole list, if any element needs it
//	keys of a map             base64 with _b64 added, if the key needs it
//
// Structs follow their json tags (a name, omitempty, "-"; embedded structs
// without a name are flattened); maps are written in the order of their keys;
// nil slices are [] and nil pointers null.
type encoder struct{ buf []byte }

// line returns v and a newline, lent until the next call. The only errors are
// of types that rows must not have.
func (e *encoder) line(v any) ([]byte, error) {
	e.buf = e.buf[:0]
	if err := e.value(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	e.buf = append(e.buf, '\n')
	return e.buf, nil
}

func (e *encoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Invalid:
		e.buf = append(e.buf, "null"...)
	case reflect.Pointer, reflect.Interface:
		return e.value(v.Elem())
	case reflect.Bool:
		e.buf = strconv.AppendBool(e.buf, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := v.Int()
		e.quoteIf(n > maxExact || n < -maxExact, func() { e.buf = strconv.AppendInt(e.buf, n, 10) })
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := v.Uint()
		e.quoteIf(n > maxExact, func() { e.buf = strconv.AppendUint(e.buf, n, 10) })
	case reflect.Float32:
		e.float(v.Float(), 32)
	case reflect.Float64:
		e.float(v.Float(), 64)
	case reflect.String:
		e.text(v.String())
	case reflect.Slice, reflect.Array:
		if isBytes(v.Type()) {
			e.text(string(v.Bytes()))
			return nil
		}
		return e.list(v)
	case reflect.Map:
		return e.mapping(v)
	case reflect.Struct:
		return e.object(v)
	default:
		return fmt.Errorf("a row cannot hold a %s", v.Type())
	}
	return nil
}

// maxExact is the largest integer up to which a float64 holds every one.
const maxExact = 1 << 53

func (e *encoder) quoteIf(quote bool, write func()) {
	if quote {
		e.buf = append(e.buf, '"')
	}
	write()
	if quote {
		e.buf = append(e.buf, '"')
	}
}

func (e *encoder) float(f float64, bits int) {
	switch {
	case math.IsNaN(f):
		e.buf = append(e.buf, `"NaN"`...)
	case math.IsInf(f, 1):
		e.buf = append(e.buf, `"Infinity"`...)
	case math.IsInf(f, -1):
		e.buf = append(e.buf, `"-Infinity"`...)
	default:
		format := byte('f')
		if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
			format = 'e'
		}
		e.buf = strconv.AppendFloat(e.buf, f, format, -1, bits)
	}
}

// text writes a string; what is not UTF-8 is base64, and the caller has said
// so in the name.
func (e *encoder) text(s string) {
	if !utf8.ValidString(s) {
		e.buf = append(e.buf, '"')
		e.buf = base64.StdEncoding.AppendEncode(e.buf, []byte(s))
		e.buf = append(e.buf, '"')
		return
	}
	e.quote(s)
}

func (e *encoder) quote(s string) {
	e.buf = append(e.buf, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			e.buf = append(e.buf, '\\', c)
		case c == '\n':
			e.buf = append(e.buf, `\n`...)
		case c == '\t':
			e.buf = append(e.buf, `\t`...)
		case c == '\r':
			e.buf = append(e.buf, `\r`...)
		case c < 0x20 || c == 0x7f:
			e.buf = fmt.Appendf(e.buf, `\u%04x`, c)
		default:
			e.buf = append(e.buf, c)
		}
	}
	e.buf = append(e.buf, '"')
}

// list writes a slice. In a list of strings of which one is not UTF-8, all are
// base64, so that a reader need not guess which.
func (e *encoder) list(v reflect.Value) error {
	raw := needsBase64(v)
	e.buf = append(e.buf, '[')
	for i := range v.Len() {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if raw {
			e.buf = append(e.buf, '"')
			e.buf = base64.StdEncoding.AppendEncode(e.buf, textOf(v.Index(i)))
			e.buf = append(e.buf, '"')
		} else if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) mapping(v reflect.Value) error {
	if v.Type().Key().Kind() != reflect.String {
		return fmt.Errorf("a row cannot hold a %s", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	e.buf = append(e.buf, '{')
	for i, k := range keys {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		name := k.String()
		if !utf8.ValidString(name) {
			name = base64.StdEncoding.EncodeToString([]byte(name)) + suffixB64
		}
		if err := e.member(name, v.MapIndex(k)); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	return nil
}

const suffixB64 = "_b64"

func (e *encoder) object(v reflect.Value) error {
	e.buf = append(e.buf, '{')
	first := true
	for _, m := range membersOf(v.Type()) {
		f := v.FieldByIndex(m.index)
		if m.omitEmpty && isEmpty(f) {
			continue
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		if err := e.member(m.name, f); err != nil {
			return err
		}
	}
	e.buf = append(e.buf, '}')
	return nil
}

func (e *encoder) member(name string, v reflect.Value) error {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if needsBase64(v) {
		name += suffixB64
	}
	e.quote(name)
	e.buf = append(e.buf, ':')
	return e.value(v)
}

// needsBase64 reports whether v is text, or a list of texts, that is not UTF-8.
func needsBase64(v reflect.Value) bool {
	switch {
	case !v.IsValid():
		return false
	case v.Kind() == reflect.String:
		return !utf8.ValidString(v.String())
	case v.Kind() != reflect.Slice:
		return false
	case isBytes(v.Type()):
		return !utf8.Valid(v.Bytes())
	case !isText(v.Type().Elem()):
		return false
	}
	for i := range v.Len() {
		if !utf8.Valid(textOf(v.Index(i))) {
			return true
		}
	}
	return false
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func isText(t reflect.Type) bool { return t.Kind() == reflect.String || isBytes(t) }

func textOf(v reflect.Value) []byte {
	if v.Kind() == reflect.String {
		return []byte(v.String())
	}
	return v.Bytes()
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// rowMember is a field of a struct as a member of a JSON object.
type rowMember struct {
	name      string
	index     []int
	omitEmpty bool
}

var memberCache sync.Map // reflect.Type to []rowMember

func membersOf(t reflect.Type) []rowMember {
	if m, ok := memberCache.Load(t); ok {
		return m.([]rowMember)
	}
	var members []rowMember
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for _, m := range membersOf(f.Type) {
				m.index = append([]int{i}, m.index...)
				members = append(members, m)
			}
			continue
		case name == "":
			name = f.Name
		}
		members = append(members, rowMember{name, f.Index, strings.Contains(rest, "omitempty")})
	}
	memberCache.Store(t, members)
	return members
}
