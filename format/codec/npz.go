package codec

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"

	"shardtool/format"
	"shardtool/tensor"
)

// decodeNPZ reads a zip archive of .npy files, as NumPy's savez and
// savez_compressed write it.
func decodeNPZ(data []byte, o *Options) (Value, error) {
	limits := o.Limits.OrDefault()
	left := limits.Record
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Value{}, zipError(err, data)
	}
	if len(z.File) > limits.Fields {
		return Value{}, format.Errorf(format.ErrLimit, format.Nowhere, "a .npz of %d arrays, more than %d", len(z.File), limits.Fields)
	}
	arrays := make(map[string]tensor.Dense)
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		if _, twice := arrays[name]; twice {
			return Value{}, format.Errorf(format.ErrDuplicate, format.Nowhere, "two arrays of a .npz are named %.64q", name)
		}
		d, err := npzArray(f, &left, data)
		if err != nil {
			return Value{}, inArray(err, f.Name, limits.Record)
		}
		arrays[name] = d
	}
	return OfNamed(arrays), nil
}

// npzArray reads one array and takes its size from what is left. The size that
// the archive claims counts for nothing: memory grows with what arrives.
func npzArray(f *zip.File, left *int64, data []byte) (tensor.Dense, error) {
	r, err := f.Open()
	if err != nil {
		return tensor.Dense{}, zipError(err, data)
	}
	defer r.Close()
	var npy bytes.Buffer
	n, err := io.Copy(&npy, io.LimitReader(r, *left+1))
	if err != nil {
		return tensor.Dense{}, zipError(err, data)
	}
	if *left -= n; *left < 0 {
		return tensor.Dense{}, errTooMuch
	}
	d, err := tensor.ReadNPY(npy.Bytes())
	return d, npyError(err)
}

var errTooMuch = errors.New("too much")

// inArray gives a fault the name of its array.
func inArray(err error, name string, most int64) error {
	if err == errTooMuch {
		return format.Errorf(format.ErrLimit, format.Nowhere, "a .npz inflates to more than the limit of %d bytes, in %.64q", most, name)
	}
	e := format.AsError(err)
	return format.Errorf(e.Err, format.Nowhere, "%s, in %.64q of a .npz", e.Detail, name)
}

// zipError gives a fault of a zip archive its class.
func zipError(err error, data []byte) error {
	class := format.ErrCorrupt
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		class = format.ErrUnsupported
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		class = format.ErrTruncated
	case errors.Is(err, zip.ErrFormat) && !bytes.Contains(data, []byte("PK\x05\x06")): // the end of the directory
		class = format.ErrTruncated
		if n := min(len(data), 4); string(data[:n]) != "PK\x03\x04"[:n] {
			class = format.ErrWrongFormat
		}
	}
	return format.Errorf(class, format.Nowhere, "a .npz: %s", err.Error())
}
