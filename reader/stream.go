package reader

import (
	"context"
	"errors"
	"io"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
	"shardtool/reader/store"
)

// Stream is an opened shard before its samples are told apart: its bytes in
// order, decompressed, and what they are. It is for one goroutine.
type Stream struct {
	Name        string
	Entry       store.Entry   // Size is format.Unknown for a pipe
	Format      Format        // never AutoFormat
	Compression compress.Kind // of the whole shard

	object store.Object
	raw    io.ReadCloser
	count  *counter
	unzip  *compress.Reader // nil where the shard is not compressed
	r      io.Reader
}

// prefixSize is how much is looked at to tell what a stream is: one tar block,
// which also is more than any magic number needs.
const prefixSize = 512

// OpenStream opens a shard of a store and finds out what it is, as OpenShard
// says.
func OpenStream(ctx context.Context, st store.Store, name string, o *Options) (*Stream, error) {
	object, err := st.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return streamOf(ctx, object, name, o)
}

// streamOf takes over an object and finds out what it is.
func streamOf(ctx context.Context, object store.Object, name string, o *Options) (*Stream, error) {
	opts := o.orDefault()
	s := &Stream{Name: name, Entry: object.Stat(), object: object}
	var err error
	if s.raw, err = store.Stream(ctx, object, 0); err == nil {
		err = s.sniff(&opts)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Stream) sniff(o *Options) error {
	s.count = &counter{r: s.raw}
	head := newHead(s.count)
	s.r = head
	if head.err != nil && head.err != io.EOF {
		return format.ReadError(head.err, format.Location{Shard: s.Name, Record: format.Unknown})
	}
	// A sound TFRecord or tar is what it is, even where its first bytes happen
	// to be a magic number of a compression.
	if !tfrecord.Sniff(head.prefix) && !tarshard.Sniff(head.prefix) {
		s.Compression = compress.Sniff(head.prefix)
	}
	if s.Compression != compress.None {
		var err error
		s.unzip, err = compress.NewReader(head, s.Compression, &compress.Options{Shard: s.Name, Limits: o.Limits})
		if err != nil {
			return err
		}
		head = newHead(s.unzip)
		s.r = head
	}
	err := s.decideFormat(o.Format, head.prefix)
	if err != nil && head.err != nil && head.err != io.EOF {
		return format.ReadError(head.err, format.Location{Shard: s.Name, Record: 0}) // why so little is known
	}
	return err
}

func (s *Stream) decideFormat(asked Format, prefix []byte) error {
	content := AutoFormat
	switch {
	case tfrecord.Sniff(prefix):
		content = TFRecord
	case tarshard.Sniff(prefix):
		content = Tar
	}
	s.Format = asked
	if s.Format == AutoFormat {
		s.Format = FormatOf(s.Name)
	}
	at := format.Location{Shard: s.Name, Record: 0}
	switch {
	case s.Format == AutoFormat && content == AutoFormat:
		looks := format.LooksLike(prefix)
		switch {
		case len(prefix) == 0:
			return format.Errorf(format.ErrWrongFormat, at, "it is empty, and its name does not say what it should be: choose the format")
		case looks != "":
			return format.Errorf(format.ErrWrongFormat, at, "neither TFRecord nor tar: it looks like %s", looks)
		}
		return format.Errorf(format.ErrWrongFormat, at, "neither TFRecord nor tar")
	case s.Format == AutoFormat:
		s.Format = content
	case content != AutoFormat && content != s.Format:
		return format.Errorf(format.ErrWrongFormat, at, "not %s: it looks like %s", words[s.Format], words[content])
	}
	return nil
}

var words = map[Format]string{TFRecord: "a TFRecord file", Tar: "a tar archive"}

// Read reads decompressed bytes.
func (s *Stream) Read(p []byte) (int, error) { return s.r.Read(p) }

// ReaderAt returns the bytes at any offset, and their number, where the shard
// is neither compressed nor a pipe. It is for headers: see store.Blocks.
func (s *Stream) ReaderAt(ctx context.Context) (ra io.ReaderAt, size int64, ok bool) {
	if s.Compression != compress.None || s.Entry.Size < 0 {
		return nil, 0, false
	}
	return store.Blocks(ctx, s.object), s.Entry.Size, true
}

// BytesRead returns how many stored bytes have been read.
func (s *Stream) BytesRead() int64 {
	if s.count == nil {
		return 0
	}
	return s.count.n
}

// Close releases the stream and its object.
func (s *Stream) Close() error {
	var errs []error
	if s.unzip != nil {
		errs = append(errs, s.unzip.Close())
	}
	if s.raw != nil {
		errs = append(errs, s.raw.Close())
	}
	if s.object != nil {
		errs = append(errs, s.object.Close())
	}
	return errors.Join(errs...)
}

// drain reads what is left behind the last sample and returns io.EOF, or the
// fault that a checksum at the end of a compressed stream shows.
func (s *Stream) drain() error {
	if s.unzip == nil {
		return io.EOF
	}
	if _, err := io.Copy(io.Discard, s.r); err != nil {
		return err // it says where by itself
	}
	return io.EOF
}

// Trailing reports whether bytes that belong to nothing were found behind the
// compressed data.
func (s *Stream) Trailing() bool { return s.unzip != nil && s.unzip.Trailing() }

// counter counts the bytes that pass.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// head has read the first bytes of a stream, gives them again, and then gets
// out of the way: later reads go straight to the stream.
type head struct {
	r      io.Reader
	prefix []byte // what was read ahead
	given  int    // how much of it was given again
	err    error  // what ended reading ahead early, given after the prefix
}

func newHead(r io.Reader) *head {
	h := &head{r: r, prefix: make([]byte, prefixSize)}
	var n int
	for n < len(h.prefix) && h.err == nil {
		var m int
		m, h.err = r.Read(h.prefix[n:])
		n += m
	}
	h.prefix = h.prefix[:n]
	return h
}

func (h *head) Read(p []byte) (int, error) {
	if h.given < len(h.prefix) {
		n := copy(p, h.prefix[h.given:])
		h.given += n
		if n == len(p) || h.err != nil {
			return n, nil
		}
		// Fill the rest from the stream, so that large reads stay aligned.
		m, err := h.r.Read(p[n:])
		h.err = err
		return n + m, nil
	}
	if h.err != nil {
		return 0, h.err
	}
	return h.r.Read(p)
}
