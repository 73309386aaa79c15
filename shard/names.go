package shard

import (
	"strings"

	"shardtool/format"
	"shardtool/reader"
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

// isEscape reports whether s begins with a %XX that appendEscape may have
// written here, in upper case: others, such as %20, are what they are.
func isEscape(s string) bool {
	if len(s) < 3 || s[0] != '%' {
		return false
	}
	hi, lo := strings.IndexByte(hexDigits, s[1]), strings.IndexByte(hexDigits, s[2])
	if hi < 0 || lo < 0 {
		return false
	}
	c := byte(hi<<4 | lo)
	return c == 0 || strings.IndexByte("%./_", c) >= 0
}

// unescape replaces every %XX for which isEscape holds.
func unescape(s string) string {
	if s == "%" {
		return ""
	}
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
	name, changed := escapeKey(key, false)
	if !changed && decodeKey(name) == key {
		return name
	}
	name, _ = escapeKey(key, true)
	return name
}

// decodeKey undoes encodeKey. A key that encodeKey would not have written is
// returned as it is.
func decodeKey(name string) string {
	key := unescape(name)
	if key != name && encodeKey(key) == name {
		return key
	}
	return name
}

// escapeKey escapes what has to be, and, if percent is set, what would pass
// for an escape. It reports whether anything had to be.
func escapeKey(key string, percent bool) (name string, changed bool) {
	b := make([]byte, 0, len(key)+8)
	last := -1 // the slash before the base name
	for i := range len(key) {
		if key[i] == '/' && i > 0 && key[i-1] != '/' && i < len(key)-1 {
			last = i
		}
	}
	for i := range len(key) {
		c := key[i]
		start := i == 0 || key[i-1] == '/' // of a folder's or the base name
		switch {
		case c == 0,
			c == '.' && i > last,                      // would end the key
			c == '/' && (start || i == len(key)-1),    // empty folder or base name
			start && c == '.' && special(key[i:]),     // ".", "..", AppleDouble
			start && strings.HasPrefix(key[i:], "__"): // members that are not samples
			b, changed = appendEscape(b, c), true
		case percent && isEscape(key[i:]):
			b = appendEscape(b, c)
		default:
			b = append(b, c)
		}
	}
	return whole(b, &changed), changed
}

// special reports whether a path that begins with a dot begins with ".", ".."
// or an AppleDouble file's "._".
func special(path string) bool {
	element, _, _ := strings.Cut(path, "/")
	return element == "." || element == ".." || strings.HasPrefix(element, "._")
}

// whole keeps "%" free to stand for a name without bytes.
func whole(b []byte, changed *bool) string {
	switch string(b) {
	case "":
		*changed = true
		return "%"
	case "%":
		*changed = true
		return "%25"
	}
	return string(b)
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

// encodeField returns the name of the tar field for a feature.
func encodeField(f format.Field) string {
	_, kind := splitSuffix(f.Name)
	_, err := decodeValues(nil, kind, f.Data)
	// One byte string that would pass for a list of the kind its name ends in.
	ambiguous := f.Kind == format.Bytes && kind != format.Bytes && err == nil
	return fieldName(f.Name, f.Kind, ambiguous)
}

// fieldName does the work of encodeField; dot says to escape the dot of a
// suffix.
func fieldName(name string, kind format.Kind, dot bool) string {
	stem, changed := escapeField(name, dot, false)
	if !changed && name != noFields && name != noKey {
		if n, k := decodeField(stem + suffixes[kind]); n == name && k == kind || dot {
			return stem + suffixes[kind]
		}
	}
	stem, _ = escapeField(name, dot, true)
	return stem + suffixes[kind]
}

// escapeField is to fields what escapeKey is to keys.
func escapeField(name string, dot, percent bool) (stem string, changed bool) {
	b := make([]byte, 0, len(name)+16)
	plain, _ := splitSuffix(name)
	for i := range len(name) {
		c := name[i]
		switch {
		case c == 0 || c == '/',
			i == 0 && name == reader.KeyFeature, // what WebDataset calls the key
			dot && i == len(plain),
			c == '.' && i == len(name)-1: // would be no field to some
			b, changed = appendEscape(b, c), true
		case percent && (isEscape(name[i:]) || i == 0 && (name == noFields || name == noKey)):
			b = appendEscape(b, c)
		default:
			b = append(b, c)
		}
	}
	return whole(b, &changed), changed
}

// decodeField returns the name and kind of the feature for a tar field. A
// field that encodeField would not have written is one byte string under its
// own name.
func decodeField(field string) (string, format.Kind) {
	stem, kind := splitSuffix(field)
	name := unescape(stem)
	switch {
	case name == stem:
		return name, kind
	case fieldName(name, kind, false) == field:
		return name, kind
	case kind == format.Bytes && fieldName(name, kind, true) == field:
		return name, kind
	}
	return field, format.Bytes
}
