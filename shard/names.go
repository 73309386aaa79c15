package shard

import (
	"strings"

	"shardtool/format"
)

// A TFRecord shard may use any bytes as keys and names of features. In the
// name of a tar member, KEY.FIELD, some of them would mean something else: a
// dot ends the key, a slash begins a folder. encodeKey and encodeField write
// those bytes as %XX, and nothing else; decodeKey and decodeField undo it.
// Names that need none of this, and that is nearly all, stay as they are, so
// that both ways of a round trip give back what was there.

const hexDigits = "0123456789ABCDEF"

func appendEscape(dst []byte, c byte) []byte {
	return append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
}

// isEscape reports whether s begins with %XX, in upper case.
func isEscape(s string) bool {
	return len(s) >= 3 && s[0] == '%' && strings.IndexByte(hexDigits, s[1]) >= 0 && strings.IndexByte(hexDigits, s[2]) >= 0
}

// unescape replaces every %XX.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if isEscape(s[i:]) {
			b = append(b, byte(strings.IndexByte(hexDigits, s[i+1])<<4|strings.IndexByte(hexDigits, s[i+2])))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// encodeKey returns a key that survives in the name of a tar member: read as
// WebDataset reads names, it comes back whole.
func encodeKey(key string) string {
	b := make([]byte, 0, len(key)+8)
	last := strings.LastIndexByte(key, '/') // what follows is the base name
	for i := range len(key) {
		c := key[i]
		start := i == 0 || key[i-1] == '/' // of a folder's or the base name
		rest := key[i:]
		switch {
		case c < ' ' || c == 0x7f, c == '%' && isEscape(rest),
			c == '.' && i > last,                   // would end the key
			c == '/' && (start || i == len(key)-1), // empty folder or base name
			start && c == '.',                      // ".", "..", hidden, AppleDouble
			start && strings.HasPrefix(rest, "__"): // members that are not samples
			b = appendEscape(b, c)
		default:
			b = append(b, c)
		}
	}
	return whole(b)
}

// whole keeps "%" free to stand for a name without bytes.
func whole(b []byte) string {
	switch string(b) {
	case "":
		return "%"
	case "%":
		return "%25"
	}
	return string(b)
}

// decodeKey undoes encodeKey. A key that encodeKey would not have written is
// returned as it is.
func decodeKey(name string) string {
	if name == "%" {
		return ""
	}
	if key := unescape(name); encodeKey(key) == name {
		return key
	}
	return name
}

// suffixes mark fields of a tar sample that hold something else than one byte
// string: what stands in front of the suffix is the feature's name. They end
// in json so that WebDataset's decoders give lists.
var suffixes = map[format.Kind]string{
	format.BytesList:   ".bytes_list.json",
	format.FloatList:   ".float.json",
	format.Int64List:   ".int64.json",
	format.FeatureList: ".feature_list.json",
	format.NoKind:      ".none",
}

// splitSuffix takes the suffix of a kind off a field's name.
func splitSuffix(field string) (name string, kind format.Kind) {
	for kind, suffix := range suffixes {
		if name, ok := strings.CutSuffix(field, suffix); ok {
			return name, kind
		}
	}
	return field, format.Bytes
}

// encodeField returns the name of the tar field for a feature. taken says
// which names, in lower case, the sample has already: tar fields are told
// apart without regard to case, features with it.
func encodeField(f format.Field, taken map[string]bool) string {
	_, kind := splitSuffix(f.Name)
	_, err := decodeValues(nil, kind, f.Data)
	e := escapes{suffix: f.Kind == format.Bytes && kind != format.Bytes && err == nil}
	field := e.field(f.Name, f.Kind)
	if taken[strings.ToLower(field)] {
		e.letters = true
		field = e.field(f.Name, f.Kind)
	}
	taken[strings.ToLower(field)] = true
	return field
}

// escapes says what is escaped in the name of a field besides what always is.
type escapes struct {
	suffix  bool // the dot of a suffix: the data is one byte string, but would pass for a list of that kind
	letters bool // by which "Label" and "label" become different names
}

func (e escapes) field(name string, kind format.Kind) string {
	b := make([]byte, 0, len(name)+16)
	plain, _ := splitSuffix(name)
	for i := range len(name) {
		c := name[i]
		switch {
		case c < ' ' || c == 0x7f || c == '/', c == '%' && isEscape(name[i:]),
			i == 0 && strings.HasPrefix(name, "__"),
			e.suffix && i == len(plain),
			e.letters && 'A' <= c&^0x20 && c&^0x20 <= 'Z':
			b = appendEscape(b, c)
		default:
			b = append(b, c)
		}
	}
	return whole(b) + suffixes[kind]
}

// decodeField returns the name and kind of the feature for a tar field. A
// field that encodeField would not have written is one byte string under its
// own name.
func decodeField(field string) (string, format.Kind) {
	stem, kind := splitSuffix(field)
	name := unescape(stem)
	if stem == "%" {
		name = ""
	}
	for _, e := range []escapes{{}, {suffix: true}, {letters: true}, {true, true}} {
		if e.field(name, kind) == field {
			return name, kind
		}
	}
	return field, format.Bytes
}
