package compress

import (
	"io"

	"shardtool/format"
)

// Options says how a stream is read. Nil and the zero value work.
type Options struct {
	Shard  string         // name of the shard, for errors
	Limits *format.Limits // Decompressed and Window are used
}

// Reader decompresses a stream. It is for one goroutine.
type Reader struct {
	kind     Kind
	shard    string
	limit    int64 // of the output
	src      source
	inflate  *inflater
	zstd     *zstdReader
	offset   int64
	trailing bool
	err      error
}

// decoder is what stands behind a Reader of a compressed stream.
type decoder interface {
	read(p []byte) (int, error)
	fault(err error) error         // gives an error of read its class
	blames(err, failed error) bool // whether err of read is failed, of the source, in some wrapping
	garbage() bool
}

// NewReader returns a Reader of r, which is compressed as k says; None passes
// the bytes through. It reads nothing yet, so that faults of the header come
// with the first Read. The error is ErrUsage for a kind that there is not.
// Close returns what the Reader holds for the next one to use.
func NewReader(r io.Reader, k Kind, o *Options) (*Reader, error) {
	z := new(Reader)
	return z, z.Reset(r, k, o)
}

// Reset makes z as NewReader returns it.
func (z *Reader) Reset(r io.Reader, k Kind, o *Options) error {
	z.release()
	if o == nil {
		o = new(Options)
	}
	l := o.Limits.OrDefault()
	*z = Reader{kind: k, shard: o.Shard, limit: l.Decompressed, src: source{r: r}}
	switch k {
	case None:
	case Gzip, Zlib:
		z.inflate = inflaters.Get().(*inflater)
		z.inflate.zlib = k == Zlib
		z.inflate.reset(&z.src)
	case Zstd:
		z.zstd = zstdReaders.Get().(*zstdReader)
		z.zstd.reset(&z.src, l.Window)
	default:
		z.err = format.Errorf(format.ErrUsage, format.In(o.Shard), "no compression of number %d", k)
	}
	return z.err
}

func (z *Reader) decoder() decoder {
	if z.zstd != nil {
		return z.zstd
	}
	return z.inflate
}

// Read delivers decompressed bytes. Faults are as the package comment says,
// errors of the underlying reader as format.ReadError gives them, and both
// come after every byte that could be decompressed. Once an error was
// returned, it is returned again.
func (z *Reader) Read(p []byte) (int, error) {
	if z.err != nil {
		return 0, z.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if z.kind == None {
		return z.pass(p)
	}
	if left := z.limit - z.offset; left < int64(len(p)) {
		p = p[:max(left, 0)+1] // one byte more, to see whether there is more
	}
	d := z.decoder()
	n, err := d.read(p)
	if z.offset+int64(n) > z.limit {
		n = int(z.limit - z.offset)
		z.offset = z.limit
		z.err = format.Errorf(format.ErrLimit, z.at(), "%s stream inflates to more than the limit of %d bytes", z.kind, z.limit)
		return n, z.err
	}
	z.offset += int64(n)
	if err != nil {
		z.err = z.classify(d, err)
	}
	return n, z.err
}

func (z *Reader) pass(p []byte) (int, error) {
	n, err := z.src.Read(p)
	z.offset += int64(n)
	if err != nil && err != io.EOF {
		err = format.ReadError(err, z.at())
	}
	z.err = err
	return n, err
}

// classify turns an error of the decoder into what Read returns.
func (z *Reader) classify(d decoder, err error) error {
	if failed := z.src.failed(); failed != nil && d.blames(err, failed) {
		return format.ReadError(failed, z.at())
	}
	if err == io.EOF {
		z.trailing = d.garbage()
		return io.EOF
	}
	return format.ReadError(d.fault(err), z.at())
}

func (z *Reader) at() format.Location {
	return format.Location{Shard: z.shard, Offset: z.offset, Record: format.Unknown}
}

// Offset returns how many decompressed bytes were delivered.
func (z *Reader) Offset() int64 { return z.offset }

// Trailing reports whether something that is neither padding nor compressed
// data follows the end of the compressed stream. It is known once Read has
// returned io.EOF.
func (z *Reader) Trailing() bool { return z.trailing }

// Close lets go of the underlying reader, without closing it, and of what was
// needed to decompress. It returns nil.
func (z *Reader) Close() error {
	z.release()
	z.src = source{}
	if z.err == nil {
		z.err = format.Errorf(format.ErrUsage, z.at(), "read after Close")
	}
	return nil
}

func (z *Reader) release() {
	if z.inflate != nil {
		z.inflate.release()
	}
	if z.zstd != nil {
		z.zstd.release()
	}
	z.inflate, z.zstd = nil, nil
}
