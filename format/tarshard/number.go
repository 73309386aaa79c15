package tarshard

import (
	"bytes"
	"math"
	"strconv"
)

type numberFault uint8

const (
	numberOK numberFault = iota
	numberJunk
	numberHuge // does not fit into 63 bits
)

// parseNumber reads a number field of a header: octal digits between spaces or
// NULs, nothing at all for 0, or, where the first bit is set, base 256 in two's
// complement, as GNU tar writes what does not fit.
func parseNumber(b []byte) (int64, numberFault) {
	if b[0]&0x80 != 0 {
		return parseBase256(b)
	}
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == 0) {
		i++
	}
	var v int64
	for i < len(b) && b[i]^'0' < 8 {
		v = v<<3 | int64(b[i]^'0') // 12 digits at most: 36 bits
		i++
	}
	for i < len(b) && b[i] == ' ' {
		i++
	}
	if i < len(b) && b[i] != 0 {
		return 0, numberJunk
	}
	return v, numberOK
}

func parseBase256(b []byte) (int64, numberFault) {
	negative := b[0]&0x40 != 0
	var flip byte
	if negative {
		flip = 0xff
	}
	var v uint64
	for i, c := range b {
		c ^= flip
		if i == 0 {
			c &= 0x7f
		}
		if v>>55 != 0 {
			return 0, numberHuge
		}
		v = v<<8 | uint64(c)
	}
	if negative {
		return int64(^v), numberOK
	}
	return int64(v), numberOK
}

// parseDecimal reads a pax number without sign.
func parseDecimal(b []byte) (int64, numberFault) {
	if len(b) == 0 {
		return 0, numberJunk
	}
	var v int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, numberJunk
		}
		if v > (math.MaxInt64-9)/10 {
			return 0, numberHuge
		}
		v = v*10 + int64(c-'0')
	}
	return v, numberOK
}

// parseTime reads a pax time: seconds since 1970, perhaps negative, perhaps
// with a fraction, of which 9 digits are kept, as seconds and the nanoseconds
// that go on from them.
func parseTime(b []byte) (sec int64, nsec int32, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	whole, fraction, _ := bytes.Cut(b, []byte{'.'})
	sec, fault := parseDecimal(whole)
	if fault != numberOK {
		return 0, 0, false
	}
	scale := int32(100_000_000)
	for _, c := range fraction {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		nsec += int32(c-'0') * scale
		scale /= 10
	}
	if !negative {
		return sec, nsec, true
	}
	if nsec == 0 {
		return -sec, 0, true
	}
	return -sec - 1, 1_000_000_000 - nsec, true
}

// putOctal fills b with digits and a NUL behind them. v has to fit.
func putOctal(b []byte, v int64) {
	b[len(b)-1] = 0
	for i := len(b) - 2; i >= 0; i-- {
		b[i] = '0' + byte(v&7)
		v >>= 3
	}
}

// appendRecord appends a pax record, "%d %s=%s\n", whose number counts the
// whole record, itself included.
func appendRecord[T string | []byte](dst []byte, key string, value T) []byte {
	dst = strconv.AppendInt(dst, int64(recordSize(key, len(value))), 10)
	dst = append(dst, ' ')
	dst = append(dst, key...)
	dst = append(dst, '=')
	dst = append(dst, value...)
	return append(dst, '\n')
}

func recordSize(key string, value int) int {
	body := len(" =\n") + len(key) + value
	n := body + 1
	for n != body+digits(n) {
		n = body + digits(n)
	}
	return n
}

func digits(n int) int {
	d := 1
	for n >= 10 {
		n /= 10
		d++
	}
	return d
}
