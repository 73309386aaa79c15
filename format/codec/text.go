package codec

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"shardtool/format"
	"shardtool/tensor"
)

func decodeText(data []byte, _ *Options) (Value, error) {
	if i := invalidUTF8(data); i >= 0 {
		return Value{}, format.Errorf(format.ErrSchema, format.Nowhere, "byte %d, %#02x, is no UTF-8; take the field as bytes", i, data[i])
	}
	return OfText(data), nil
}

// invalidUTF8 returns where data stops being UTF-8, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	i := 0
	for {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

func decodeInt64(data []byte, _ *Options) (Value, error) {
	p := parseInt(trim(data))
	if v, ok := p.int64(); ok {
		return OfInt64(v), nil
	}
	what := "no whole number in decimal"
	if p.ok {
		what = "beyond an int64"
	}
	return Value{}, format.Errorf(format.ErrSchema, format.Nowhere, "%s is %s", shown(trim(data)), what)
}

// shown is a text as an error shows it.
func shown(text []byte) string {
	const most = 64
	if len(text) <= most {
		return strconv.Quote(string(text))
	}
	return strconv.Quote(string(text[:most])) + "…"
}

// trim takes away the white space that Python's int and float do.
func trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n\v\f") }

// whole is a whole number on its way out of a text.
type whole struct {
	size uint64 // without its sign
	neg  bool
	over bool // beyond 64 bits
	ok   bool // it is one
}

// parseInt reads a number as Python's int does: a sign, digits, an underscore
// between two of them. Numbers of JSON are among those.
func parseInt(text []byte) (n whole) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		n.neg = text[0] == '-'
		text = text[1:]
	}
	digit := false // was the byte before
	for _, c := range text {
		if c == '_' && digit {
			digit = false
			continue
		}
		if c < '0' || c > '9' {
			return whole{}
		}
		digit = true
		d := uint64(c - '0')
		n.over = n.over || n.size > (math.MaxUint64-d)/10
		n.size = n.size*10 + d
	}
	n.ok = digit
	return n
}

func (n whole) int64() (int64, bool) {
	switch {
	case !n.ok || n.over:
		return 0, false
	case n.neg:
		return -int64(n.size), n.size <= 1<<63
	default:
		return int64(n.size), n.size <= math.MaxInt64
	}
}

// parseFloat reads a number as Python's float does, less the underscores, and
// rounds it to that many bits. A number beyond the range is false.
func parseFloat(text []byte, bits int) (float64, bool) {
	if len(text) == 0 || bytes.ContainsAny(text, "xXpP_") { // Go's hexadecimal
		return 0, false
	}
	v, err := strconv.ParseFloat(unsafe.String(&text[0], len(text)), bits)
	return v, err == nil
}

// putNumber writes a number that a text holds as element i of dst, and reports
// whether it fits.
func putNumber(dst []byte, dtype tensor.DType, i int, text []byte) bool {
	dst = dst[i*dtype.Size():][:dtype.Size()]
	switch string(text) {
	case "true":
		return storeInts(dst, dtype, one[:]) < 0
	case "false":
		return storeInts(dst, dtype, zero[:]) < 0
	}
	n := parseInt(text)
	if v, ok := n.int64(); ok {
		number := [1]int64{v}
		return storeInts(dst, dtype, number[:]) < 0
	}
	switch {
	case n.ok && dtype == tensor.Uint64 && !n.over && !n.neg:
		native.PutUint64(dst, n.size)
		return true
	case n.ok || !isFloat(dtype):
		return false
	}
	bits := 64
	if dtype == tensor.Float32 {
		bits = 32 // rounded once
	}
	v, ok := parseFloat(text, bits)
	number := [1]float64{v}
	return ok && storeFloats(dst, dtype, number[:]) < 0
}

var one, zero = [1]int64{1}, [1]int64{0}
