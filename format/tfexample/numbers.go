package tfexample

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"shardtool/format"
	"shardtool/internal/varint"
)

// AppendInt64 appends the values of an Int64List to dst; errors are as for
// AppendBytes.
func (f Feature) AppendInt64(dst []int64) ([]int64, error) {
	if f.kind == format.Int64List && f.n >= 0 { // counted, so the list is sound
		at := len(dst)
		dst = slices.Grow(dst, f.n)[:at+f.n]
		n, _, err := f.DecodeInt64(dst[at:])
		return dst[:at+n], err
	}
	for p := (pieces{f: f, kind: format.Int64List, single: wireVarint}); ; {
		v, err := p.next()
		if err != nil || v == nil {
			return dst, err
		}
		if dst, _, err = varint.Append(dst, v); err != nil {
			return dst, p.corrupt()
		}
	}
}

// DecodeInt64 writes the values of an Int64List to the beginning of dst, as many
// as it has room for, and returns how many they are and whether there are more.
// What dst holds behind them is not defined. Errors are as for AppendBytes; a
// fault behind the values that were written may go unseen.
func (f Feature) DecodeInt64(dst []int64) (n int, more bool, err error) { return decodeInt(f, dst) }

// DecodeInt32 is DecodeInt64 with values that must fit 32 bits; one that does
// not is ErrSchema.
func (f Feature) DecodeInt32(dst []int32) (n int, more bool, err error) { return decodeInt(f, dst) }

func decodeInt[T varint.Int](f Feature, dst []T) (n int, more bool, err error) {
	for p := (pieces{f: f, kind: format.Int64List, single: wireVarint}); ; {
		v, err := p.next()
		if err != nil || v == nil {
			return n, false, err
		}
		k, used, err := varint.Decode(dst[n:], v)
		n += k
		switch {
		case errors.Is(err, varint.ErrRange):
			return n, true, format.Errorf(format.ErrSchema, format.Nowhere, "value %d of the list is beyond 32 bits", n)
		case err != nil:
			return n, false, p.corrupt()
		case used < len(v):
			return n, true, nil
		}
	}
}

// AppendFloat appends the values of a FloatList to dst; errors are as for
// AppendBytes.
func (f Feature) AppendFloat(dst []float32) ([]float32, error) {
	for p := (pieces{f: f, kind: format.FloatList, single: wire32}); ; {
		v, err := p.next()
		if err != nil || v == nil {
			return dst, err
		}
		at := len(dst)
		dst = slices.Grow(dst, len(v)/4)[:at+len(v)/4]
		copyFloats(dst[at:], v)
	}
}

// DecodeFloat is DecodeInt64 of a FloatList.
func (f Feature) DecodeFloat(dst []float32) (n int, more bool, err error) {
	for p := (pieces{f: f, kind: format.FloatList, single: wire32}); ; {
		v, err := p.next()
		if err != nil || v == nil {
			return n, false, err
		}
		k := min(len(v)/4, len(dst)-n)
		copyFloats(dst[n:n+k], v[:4*k])
		n += k
		if 4*k < len(v) {
			return n, true, nil
		}
	}
}

// littleEndian tells whether memory holds numbers as the wire does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// copyFloats sets dst to the floats that p, 4 bytes for each, encodes.
func copyFloats(dst []float32, p []byte) {
	if littleEndian && len(dst) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), p)
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
}

// pieces goes through the parts of an encoded list of numbers: packed ones, and
// single values, which are encoded alike.
type pieces struct {
	f      Feature
	kind   format.Kind // that is wanted
	single uint64      // the wire type of a single value
	i      int         // in f.data
	at     int         // where the last part begins
}

// next returns the next part that is not empty, or nil at the end.
func (p *pieces) next() ([]byte, error) {
	if p.f.kind != p.kind {
		return nil, p.f.isNot(p.kind)
	}
	c := cursor{p.f.data, p.i, len(p.f.data)}
	for c.more() {
		num, typ, ok := c.tag()
		p.at = c.i
		lo, hi := c.i, c.i
		switch {
		case !ok:
		case num == 1 && typ == wireBytes:
			lo, hi, ok = c.bytes()
			ok = ok && (p.kind != format.FloatList || (hi-lo)%4 == 0)
		case num == 1 && typ == p.single:
			ok = c.skipPlain(typ)
			hi = c.i
		default:
			ok = c.skip(num, typ)
		}
		if !ok {
			return nil, p.corrupt()
		}
		if lo < hi {
			p.i = c.i
			return c.b[lo:hi:hi], nil
		}
	}
	p.i = c.i
	return nil, nil
}

// corrupt is the error of a part that is not sound.
func (p *pieces) corrupt() error {
	of := "floats"
	if p.kind == format.Int64List {
		of = "int64"
	}
	return corrupt(p.at, "not a list of "+of)
}
