package codec

import (
	"bytes"
	"encoding/binary"

	"shardtool/format"
	"shardtool/tensor"
)

const (
	tenMagic = "~TenBin~"
	tenAlign = 64
	maxAxes  = 64 // NumPy's
)

// tenTypes are the names of elements. webdataset misspells uint32 in its table
// and cannot write it; what is meant is clear.
var tenTypes = map[string]tensor.DType{
	"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64,
	"i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64,
}

func decodeTen(data []byte, _ *Options) (Value, error) {
	all := []tensor.Dense{}
	for rest := data; len(rest) > 0; {
		var s tensor.Stored
		var err error
		if s, rest, err = nextTen(rest, nil, len(data)-len(rest)); err != nil {
			return Value{}, err
		}
		all = append(all, s.Dense())
	}
	return OfDenses(all), nil
}

// nextTen returns the array that p begins with, and what is behind it. The shape
// is written into the memory of shape. at is where p is, for errors.
func nextTen(p []byte, shape tensor.Shape, at int) (s tensor.Stored, rest []byte, err error) {
	header, rest, err := tenChunk(p, at)
	if err != nil {
		return s, nil, err
	}
	if s, err = tenHeader(header, shape, at); err != nil {
		return s, nil, err
	}
	at += len(p) - len(rest)
	if len(rest) == 0 {
		return s, nil, format.Errorf(format.ErrTruncated, format.Nowhere, "a tenbin ends behind a header, at byte %d", at)
	}
	if s.Data, rest, err = tenChunk(rest, at); err != nil {
		return s, nil, err
	}
	n, err := tensor.Bytes(s.DType, s.Shape)
	if err != nil || n != int64(len(s.Data)) {
		return s, nil, format.Errorf(format.ErrCorrupt, format.Nowhere,
			"a tenbin has %d bytes for %v of shape %s, at byte %d", len(s.Data), s.DType, s.Shape.String(), at)
	}
	return s, rest, nil
}

// tenChunk returns the bytes of a chunk and what is behind its padding, of which
// the last chunk may lack some.
func tenChunk(p []byte, at int) (chunk, rest []byte, err error) {
	const head = len(tenMagic) + 8
	if n := min(len(p), len(tenMagic)); string(p[:n]) != tenMagic[:n] {
		class := format.ErrCorrupt
		if at == 0 {
			class = format.ErrWrongFormat
		}
		return nil, nil, format.Errorf(class, format.Nowhere, "no chunk of a tenbin begins at byte %d", at)
	}
	if len(p) < head {
		return nil, nil, format.Errorf(format.ErrTruncated, format.Nowhere, "a tenbin ends in the head of a chunk, at byte %d", at)
	}
	n := binary.LittleEndian.Uint64(p[len(tenMagic):])
	p = p[head:]
	switch {
	case int64(n) < 0:
		return nil, nil, format.Errorf(format.ErrCorrupt, format.Nowhere, "a tenbin has a chunk of %d bytes, at byte %d", int64(n), at)
	case n > uint64(len(p)):
		return nil, nil, format.Errorf(format.ErrTruncated, format.Nowhere, "a tenbin ends %d bytes early, in the chunk at byte %d", n-uint64(len(p)), at)
	}
	padded := (int(n) + tenAlign - 1) / tenAlign * tenAlign
	return p[:n:n], p[min(padded, len(p)):], nil
}

func tenHeader(h []byte, shape tensor.Shape, at int) (tensor.Stored, error) {
	const fixed = 3 * 8
	if len(h) < fixed || len(h)%8 != 0 {
		return tensor.Stored{}, format.Errorf(format.ErrCorrupt, format.Nowhere, "a tenbin has a header of %d bytes, at byte %d", len(h), at)
	}
	dtype, ok := tenTypes[string(bytes.TrimRight(h[:8], "\x00"))]
	if !ok {
		return tensor.Stored{}, format.Errorf(format.ErrUnsupported, format.Nowhere, "a tenbin of elements of type %q, at byte %d", h[:8], at)
	}
	axes, dims := binary.LittleEndian.Uint64(h[16:]), h[fixed:]
	if axes > maxAxes || axes > uint64(len(dims)/8) {
		return tensor.Stored{}, format.Errorf(format.ErrCorrupt, format.Nowhere, "a tenbin has an array of %d axes in a header of %d bytes, at byte %d", axes, len(h), at)
	}
	s := tensor.Stored{DType: dtype, Shape: shape[:0]}
	for i := range int(axes) {
		n := int64(binary.LittleEndian.Uint64(dims[8*i:]))
		if int64(int(n)) != n {
			n = -1
		}
		s.Shape = append(s.Shape, int(n))
	}
	return s, nil
}
