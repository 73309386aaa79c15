package codec

import (
	"bytes"
	"io"

	"shardtool/format"
	"shardtool/format/compress"
)

// cutGzip returns a name without its .gz. A name that is nothing else becomes
// empty, which is that of bytes.
func cutGzip(name string) (rest string, ok bool) {
	switch n := len(name) - len(".gz"); {
	case n >= 0 && format.EqualName(name[n:], ".gz"):
		return name[:n], true
	case format.EqualName(name, "gz"):
		return "", true
	}
	return name, false
}

// inflate returns what a gzip stream holds, at most Limits.Record bytes.
func inflate(data []byte, limits *format.Limits) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return nil, format.Errorf(format.ErrWrongFormat, format.Nowhere, "the name says gzip, the field begins with %q", data[:min(len(data), 8)])
	}
	l := limits.OrDefault()
	l.Decompressed = l.Record
	z, err := compress.NewReader(bytes.NewReader(data), compress.Gzip, &compress.Options{Limits: &l})
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var out bytes.Buffer
	if _, err := io.Copy(&out, z); err != nil {
		if e := format.AsError(err); e != nil { // its offset is in the field, not in the shard
			err = format.Errorf(e.Err, format.Nowhere, "%s, at byte %d of the inflated field", e.Detail, e.Offset)
		}
		return nil, err
	}
	if z.Trailing() {
		return nil, format.Errorf(format.ErrCorrupt, format.Nowhere, "bytes follow the gzip stream")
	}
	return out.Bytes(), nil
}
