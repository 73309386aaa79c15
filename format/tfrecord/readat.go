package tfrecord

import (
	"errors"
	"io"
	"slices"

	"shardtool/format"
)

// firstRead is how much ReadAt fetches before it knows the length of a record,
// so that a small one takes a single read.
const firstRead = 4 << 10

// mostRead bounds what is allocated for bytes that have not arrived.
const mostRead = 1 << 20

// ReadAt returns the payload of the record whose length is at offset off. It
// appends to dst, as append does, and uses the capacity behind it; nothing is
// allocated where that holds the record and its framing. On error dst is
// returned as it was. Both checksums are checked, so that an offset at which
// no record begins is ErrCorrupt, or ErrTruncated where the stream ends.
// Options.OnError, OnLoss and BufferSize are not used.
func ReadAt(r io.ReaderAt, off int64, dst []byte, o *Options) ([]byte, error) {
	if o == nil {
		o = new(Options)
	}
	at := format.Location{Shard: o.Shard, Offset: off, Record: format.Unknown}
	if off < 0 {
		return dst, format.Errorf(format.ErrUsage, at, "negative offset %d", off)
	}
	buf := slices.Grow(dst, firstRead)[:len(dst)]
	buf, err := readMore(r, off, buf, len(dst), firstRead)
	got := buf[len(dst):]
	if len(got) < headerSize {
		return dst, short(err, at, "the stream ends inside the header of a record, at %d", off+int64(len(got)))
	}
	n, ok := header(got)
	if !ok {
		return dst, format.Errorf(format.ErrCorrupt, at, "no record begins here: the length %d does not have its checksum", n)
	}
	if l := o.Limits.OrDefault(); n > uint64(l.Record) {
		return dst, format.Errorf(format.ErrLimit, at, "record of %d bytes is over the limit of %d", n, l.Record)
	}
	size := int(n) + Overhead
	for len(got) < size && err == nil {
		buf, err = readMore(r, off, buf, len(dst), min(size, len(got)+max(len(got), mostRead)))
		got = buf[len(dst):]
	}
	if len(got) < size {
		return dst, short(err, at, "the stream ends %d bytes before the record does, at %d", size-len(got), off+int64(len(got)))
	}
	payload := got[headerSize : headerSize+int(n)]
	if payloadSum(payload) != le32(got[headerSize+int(n):]) {
		return dst, format.Errorf(format.ErrCorrupt, at, "payload of %d bytes does not have its checksum", n)
	}
	return buf[:len(dst)+copy(got, payload)], nil
}

// Payload returns the payload of the record that frame is, framing included, as
// a view of it. Options.Base and First say where the record stands. Both
// checksums are checked: frame is ErrStale where it is not one record, as an
// index promised, and ErrCorrupt where the payload does not have its checksum.
func Payload(frame []byte, o *Options) ([]byte, error) {
	n, ok := uint64(0), false
	if len(frame) >= Overhead {
		n, ok = header(frame)
	}
	if ok && n == uint64(len(frame)-Overhead) {
		payload := frame[headerSize : headerSize+n : headerSize+n]
		if most := o.most(); n <= most && payloadSum(payload) == le32(frame[headerSize+n:]) {
			return payload, nil
		}
	}
	return nil, o.notPayload(frame, n, ok)
}

func (o *Options) most() uint64 {
	if o == nil || o.Limits == nil {
		return defaultMost
	}
	return uint64(o.Limits.OrDefault().Record)
}

var defaultMost = uint64((*format.Limits)(nil).OrDefault().Record)

func (o *Options) notPayload(frame []byte, n uint64, ok bool) error {
	if o == nil {
		o = new(Options)
	}
	at := format.Location{Shard: o.Shard, Offset: o.Base, Record: o.First}
	switch {
	case !ok:
		return format.Errorf(format.ErrStale, at, "no record begins here any more")
	case n != uint64(len(frame)-Overhead):
		return format.Errorf(format.ErrStale, at, "a record of %d bytes stands here, not of %d", n, len(frame)-Overhead)
	case n > o.most():
		return format.Errorf(format.ErrLimit, at, "record of %d bytes is over the limit of %d", n, o.most())
	}
	return format.Errorf(format.ErrCorrupt, at, "payload of %d bytes does not have its checksum", n)
}

// readMore reads on behind buf until size bytes after the first skip are
// there. off is where in the stream the first of them stands.
func readMore(r io.ReaderAt, off int64, buf []byte, skip, size int) ([]byte, error) {
	have := len(buf) - skip
	buf = slices.Grow(buf, size-have)
	m, err := r.ReadAt(buf[skip+have:skip+size], off+int64(have))
	if m == size-have {
		err = nil
	}
	return buf[:skip+have+m], err
}

// short returns the error of a stream that gave fewer bytes than it should.
func short(err error, at format.Location, detail string, args ...any) error {
	if err == nil || errors.Is(err, io.EOF) {
		return format.Errorf(format.ErrTruncated, at, detail, args...)
	}
	return format.ReadError(err, at)
}
