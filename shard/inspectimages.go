package shard

import (
	"context"
	"errors"
	"io"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader"
	"shardtool/reader/store"
)

// headerReader reads the headers of images whose samples come without
// payloads: of records what is there, of a tar by reads at offsets.
type headerReader struct {
	images imageReader
	object store.Object // nil where nothing can be read at offsets
	at     io.ReaderAt
	buf    []byte
}

// The first read of an image takes in most headers; those that come after large
// metadata take more, up to mostHeader.
const (
	firstHeader = 4 << 10
	mostHeader  = 16 << 20
)

func newHeaderReader(ctx context.Context, o *Options, s *reader.Shard) (*headerReader, error) {
	h := &headerReader{images: imageReader{open: augment.Standard, limits: o.Read.Limits}}
	if s.Format() != reader.Tar || s.Compression() != compress.None || s.Size() < 0 {
		return h, nil
	}
	object, err := o.Store.Open(ctx, s.Name())
	if err != nil {
		return nil, err
	}
	h.object, h.at = object, store.ReaderAt(ctx, object)
	return h, nil
}

func (h *headerReader) close() {
	if h.object != nil {
		h.object.Close()
	}
}

// holdsImages reports whether a field holds images and their headers can be
// read. An error is of reading the shard.
func (h *headerReader) holdsImages(f *format.Field) (bool, error) {
	named := namedImage(f.Name)
	if f.Data != nil {
		found := named && (f.Kind == format.Bytes || f.Kind == format.BytesList || f.Kind == format.FeatureList)
		eachImage(f, false, func([]byte) bool {
			found = true
			return false
		})
		return found, nil
	}
	if h.at == nil || f.Offset == format.Unknown {
		return false, nil
	}
	if named {
		return true, nil
	}
	start, err := h.start(f, augment.Sniffed)
	return err == nil && augment.StartsAsImage(start), err
}

// count adds the headers of a field's images. An error is of reading the shard,
// not of an image.
func (h *headerReader) count(c *ImageCounts, f *format.Field) error {
	if f.Data != nil {
		eachImage(f, true, func(data []byte) bool {
			c.add(h.images.header(data))
			return true
		})
		return nil
	}
	if f.Offset == format.Unknown {
		return nil
	}
	for n := int64(firstHeader); ; n *= 8 {
		data, err := h.start(f, n)
		if err != nil {
			return err
		}
		header, err := h.images.header(data)
		switch cut := errors.Is(err, format.ErrTruncated) && int64(len(data)) < f.Size(); {
		case cut && n < mostHeader:
			continue // what was read is cut, not the image
		case cut:
			c.another()
			c.NotLookedAt++
		default:
			c.add(header, err)
		}
		return nil
	}
}

// start reads the first n bytes of a field, or all of it, and lends them.
func (h *headerReader) start(f *format.Field, n int64) ([]byte, error) {
	n = min(n, f.Size())
	if int64(cap(h.buf)) < n {
		h.buf = make([]byte, n)
	}
	data := h.buf[:n]
	if n == 0 {
		return data, nil
	}
	at := format.Location{Offset: f.Offset, Record: format.Unknown, Field: f.Name}
	switch _, err := h.at.ReadAt(data, f.Offset); err {
	case nil:
		return data, nil
	case io.EOF:
		return nil, format.Errorf(format.ErrTruncated, at, "the shard ends within the field")
	default:
		return nil, format.ReadError(err, at)
	}
}
