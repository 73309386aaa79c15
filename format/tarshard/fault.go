package tarshard

import (
	"errors"
	"io"

	"shardtool/format"
)

// streamFault returns the sentinel of an error that says that the bytes of a
// stream are bad, as a decompressor finds out, or nil for any other.
func streamFault(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return format.ErrTruncated
	}
	switch s := format.Sentinel(err); s {
	case format.ErrTruncated, format.ErrCorrupt, format.ErrLimit:
		return s
	}
	return nil
}

// at is a place in the shard.
func (w *Walker) at(offset int64) format.Location {
	return format.Location{Shard: w.opts.Shard, Offset: offset, Record: format.Unknown}
}

// corruptAt is a fault of the structure.
func (w *Walker) corruptAt(offset int64, msg string, args ...any) *format.Error {
	return format.Errorf(format.ErrCorrupt, w.at(offset), msg, args...)
}

// ended is what to return where the stream ended in the midst of something
// that begins at offset.
func (w *Walker) ended(offset int64, msg string, args ...any) error {
	err := w.win.err
	if err == io.EOF {
		args = append(args, w.win.off+int64(w.win.w-w.win.r))
		return format.Errorf(format.ErrTruncated, w.at(offset), msg+": the stream ends at %d", args...)
	}
	if sentinel := streamFault(err); sentinel != nil {
		args = append(args, w.win.off+int64(w.win.w-w.win.r), err)
		return format.Errorf(sentinel, w.at(offset), msg+": the stream ends at %d: %w", args...)
	}
	return format.ReadError(err, w.at(offset))
}
