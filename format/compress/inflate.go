package compress

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"shardtool/format"
)

const (
	methodDeflate = 8 // CM of RFC 1950 and RFC 1952

	gzipHeaderCRC = 1 << 1
	gzipExtra     = 1 << 2
	gzipName      = 1 << 3
	gzipComment   = 1 << 4
	gzipReserved  = 0xe0

	zlibDict = 1 << 5
)

// inflater reads the members of a gzip stream, or the one zlib stream, from a
// buffered source.
type inflater struct {
	src      *source
	br       *bufio.Reader
	flate    io.ReadCloser
	zlib     bool
	inMember bool
	members  int64
	sum      uint32      // CRC-32 of the gzip member so far
	adler    hash.Hash32 // Adler-32 of the zlib stream so far
	size     uint32      // bytes of the member so far, modulo 2^32
	trailing bool
	scratch  [512]byte
}

const sourceBuffer = 64 << 10

var inflaters = sync.Pool{New: func() any {
	br := bufio.NewReaderSize(nil, sourceBuffer)
	return &inflater{br: br, flate: flate.NewReader(br), adler: adler32.New()}
}}

func (in *inflater) reset(src *source) {
	in.src = src
	in.br.Reset(src)
	in.flate.(flate.Resetter).Reset(in.br, nil)
	in.inMember, in.members, in.trailing = false, 0, false
}

func (in *inflater) release() {
	in.src = nil
	in.br.Reset(nil)
	inflaters.Put(in)
}

// read delivers bytes of the stream. A fault is returned as it is, or as a
// *format.Error without a location.
func (in *inflater) read(p []byte) (int, error) {
	for {
		if !in.inMember {
			if err := in.begin(); err != nil {
				return 0, err
			}
		}
		n, err := in.flate.Read(p)
		if in.zlib {
			in.adler.Write(p[:n])
		} else {
			in.sum = crc32.Update(in.sum, crc32.IEEETable, p[:n])
		}
		in.size += uint32(n)
		if err == io.EOF {
			err = in.finish()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// begin reads the header of the next member. It returns io.EOF where none
// follows.
func (in *inflater) begin() error {
	if in.members > 0 {
		if more, err := in.another(); !more || err != nil {
			if err == nil {
				err = io.EOF
			}
			return err
		}
	}
	in.sum, in.size = 0, 0
	header := in.gzipHeader
	if in.zlib {
		in.adler.Reset()
		header = in.zlibHeader
	}
	if err := header(); err != nil {
		return err
	}
	in.members++
	in.inMember = true
	return in.flate.(flate.Resetter).Reset(in.br, nil)
}

// another reports whether another gzip member follows, and otherwise reads
// over the padding and sees whether anything is behind it. What is cut in its
// first three bytes counts as a member, so that no cut looks like an end.
func (in *inflater) another() (bool, error) {
	p, err := in.br.Peek(3)
	if err != nil && err != io.EOF {
		return false, err
	}
	if !in.zlib && len(p) > 0 && string(p) == "\x1f\x8b\x08"[:len(p)] {
		return true, nil
	}
	in.trailing, err = padded(in.br)
	return false, err
}

// padded reads NUL bytes up to the end of a stream and reports whether
// something else was found before.
func padded(br *bufio.Reader) (garbage bool, err error) {
	for {
		c, err := br.ReadByte()
		if err == io.EOF {
			return false, nil
		}
		if err != nil || c != 0 {
			return err == nil, err
		}
	}
}

func (in *inflater) gzipHeader() error {
	h := in.scratch[:10]
	if _, err := io.ReadFull(in.br, h); err != nil {
		return unexpected(err)
	}
	if h[0] != 0x1f || h[1] != 0x8b {
		return format.Errorf(format.ErrWrongFormat, format.Nowhere, "no gzip header")
	}
	flags := h[3]
	if h[2] != methodDeflate || flags&gzipReserved != 0 {
		return format.Errorf(format.ErrUnsupported, format.Nowhere, "gzip method %d with flags %#02x", h[2], flags)
	}
	sum := crc32.Update(0, crc32.IEEETable, h)
	if flags&gzipExtra != 0 {
		if err := in.take(in.scratch[:2], &sum); err != nil {
			return err
		}
		for n := int(binary.LittleEndian.Uint16(in.scratch[:])); n > 0; {
			part := in.scratch[:min(n, len(in.scratch))]
			if err := in.take(part, &sum); err != nil {
				return err
			}
			n -= len(part)
		}
	}
	for _, flag := range [...]byte{gzipName, gzipComment} {
		for flags&flag != 0 {
			if err := in.take(in.scratch[:1], &sum); err != nil {
				return err
			}
			if in.scratch[0] == 0 {
				break
			}
		}
	}
	if flags&gzipHeaderCRC != 0 {
		want := uint16(sum)
		if err := in.take(in.scratch[:2], &sum); err != nil {
			return err
		}
		if got := binary.LittleEndian.Uint16(in.scratch[:]); got != want {
			return format.Errorf(format.ErrCorrupt, format.Nowhere, "gzip header has checksum %04x, its bytes give %04x", got, want)
		}
	}
	return nil
}

func (in *inflater) take(p []byte, sum *uint32) error {
	_, err := io.ReadFull(in.br, p)
	*sum = crc32.Update(*sum, crc32.IEEETable, p)
	return unexpected(err)
}

func (in *inflater) zlibHeader() error {
	h := in.scratch[:2]
	if _, err := io.ReadFull(in.br, h); err != nil {
		return unexpected(err)
	}
	if !zlibHeader(h[0], h[1]) {
		return format.Errorf(format.ErrWrongFormat, format.Nowhere, "no zlib header")
	}
	if h[1]&zlibDict != 0 {
		return format.Errorf(format.ErrUnsupported, format.Nowhere, "zlib stream with a preset dictionary")
	}
	return nil
}

// finish checks the trailer of a member.
func (in *inflater) finish() error {
	in.inMember = false
	t := in.scratch[:8]
	if in.zlib {
		t = t[:4]
	}
	if _, err := io.ReadFull(in.br, t); err != nil {
		return unexpected(err)
	}
	want, got := binary.LittleEndian.Uint32(t), in.sum
	if in.zlib {
		want, got = binary.BigEndian.Uint32(t), in.adler.Sum32()
	}
	if want != got {
		return format.Errorf(format.ErrCorrupt, format.Nowhere, "%s trailer has checksum %08x, the data gives %08x", in.name(), want, got)
	}
	if in.zlib {
		return nil
	}
	if size := binary.LittleEndian.Uint32(t[4:]); size != in.size {
		return format.Errorf(format.ErrCorrupt, format.Nowhere, "gzip trailer has length %d, the data gives %d (both modulo 2^32)", size, in.size)
	}
	return nil
}

func (in *inflater) name() string {
	if in.zlib {
		return Zlib.String()
	}
	return Gzip.String()
}

// fault gives err of the deflate decoder its class.
func (in *inflater) fault(err error) error {
	var e *format.Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return format.Errorf(format.ErrTruncated, format.Nowhere, "%s stream ends early, after %d compressed bytes", in.name(), in.src.n)
	default:
		return format.Errorf(format.ErrCorrupt, format.Nowhere, "%s stream: %w", in.name(), err)
	}
}

func (in *inflater) blames(err, failed error) bool { return errors.Is(err, failed) }

func (in *inflater) garbage() bool { return in.trailing }

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
