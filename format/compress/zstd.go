package compress

import (
	"bufio"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"shardtool/format"
)

// frames walks the frames and blocks of a zstd stream on their way to the
// decoder. The decoder does not tell an end from a cut, nor what follows the
// last frame, and its bound on windows is fixed when it is made; the walk does
// all three, at the cost of looking at three bytes a block.
type frames struct {
	src      *source
	br       *bufio.Reader
	window   int64 // the bound on windows
	widest   int64 // the largest window seen
	left     int64 // bytes until the next thing to look at
	next     place // what comes after left
	checksum bool  // the frame ends in four bytes of one
	trailing bool
	err      error
}

type place uint8

const (
	atFrame place = iota
	atBlock
	atChecksum
)

func (f *frames) Read(p []byte) (int, error) {
	for f.left == 0 && f.err == nil {
		f.err = f.look()
	}
	if f.left == 0 {
		return 0, f.err
	}
	n, err := f.br.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	if err != nil {
		f.err = unexpected(err)
		return n, f.err
	}
	return n, nil
}

// look reads ahead to see how much belongs to what comes next.
func (f *frames) look() error {
	switch f.next {
	case atBlock:
		return f.block()
	case atChecksum:
		f.left, f.next = 4, atFrame
		return nil
	default:
		return f.frame()
	}
}

func (f *frames) frame() error {
	p, err := f.br.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return err
	}
	first := f.src.n == int64(f.br.Buffered())
	if len(p) == 0 && !first {
		return io.EOF
	}
	if len(p) < 4 && (string(p) == "\x28\xb5\x2f\xfd"[:len(p)] || len(p) > 0 && p[0]&^0xf == 0x50) {
		return io.ErrUnexpectedEOF
	}
	if !isZstd(p) && !isSkippable(p) {
		if first {
			return format.Errorf(format.ErrWrongFormat, format.Nowhere, "no zstd header")
		}
		if f.trailing, err = padded(f.br); err != nil {
			return err
		}
		return io.EOF
	}
	var h zstd.Header
	if err := h.Decode(p); err != nil {
		return err
	}
	f.left = int64(h.HeaderSize)
	if h.Skippable {
		f.left += int64(h.SkippableSize)
		return nil
	}
	f.next, f.checksum = atBlock, h.HasCheckSum
	return f.admit(&h)
}

// admit holds the header of a frame against what is read here.
func (f *frames) admit(h *zstd.Header) error {
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if window > uint64(f.window) {
		f.left = 0
		return format.Errorf(format.ErrLimit, format.Nowhere, "zstd window of %d bytes is over the limit of %d", window, f.window)
	}
	if h.DictionaryID != 0 {
		f.left = 0
		return format.Errorf(format.ErrUnsupported, format.Nowhere, "zstd frame needs dictionary %d", h.DictionaryID)
	}
	f.widest = max(f.widest, int64(window))
	return nil
}

func (f *frames) block() error {
	p, err := f.br.Peek(3)
	if err != nil {
		return unexpected(err)
	}
	h := uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
	last, kind, size := h&1 != 0, h>>1&3, int64(h>>3)
	if kind == 1 { // one byte, repeated
		size = 1
	}
	f.left = 3 + size
	if last {
		f.next = atFrame
		if f.checksum {
			f.next = atChecksum
		}
	}
	return nil
}

// zstdReader is the decoder over the walk.
type zstdReader struct {
	frames  frames
	decoder *zstd.Decoder
}

// keptWindow is the largest window whose memory a decoder may keep for the
// next stream.
const keptWindow = 16 << 20

var zstdReaders = sync.Pool{New: func() any {
	// One decoder at a time runs in the caller's goroutine; the walk bounds
	// windows, and Reader what comes out.
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<41), zstd.WithDecoderMaxMemory(1<<62))
	if err != nil {
		panic(err) // the options are constants
	}
	return &zstdReader{frames: frames{br: bufio.NewReaderSize(nil, sourceBuffer)}, decoder: d}
}}

func (z *zstdReader) reset(src *source, window int64) {
	z.frames.br.Reset(src)
	z.frames = frames{src: src, br: z.frames.br, window: window}
	// The decoder fails only once it is closed.
	_ = z.decoder.Reset(&z.frames)
}

func (z *zstdReader) release() {
	_ = z.decoder.Reset(nil)
	z.frames.src = nil
	z.frames.br.Reset(nil)
	if z.frames.widest > keptWindow {
		z.decoder.Close()
		return
	}
	zstdReaders.Put(z)
}

// read delivers what is decoded. The decoder reports the fault of a block's
// checksum while it still holds the block: reading on gives that too.
func (z *zstdReader) read(p []byte) (int, error) {
	n, err := z.decoder.Read(p)
	if err != nil && n == 0 {
		n, err = z.decoder.Read(p)
	}
	if err == io.EOF && z.frames.err != nil {
		err = z.frames.err
	}
	return n, err
}

func (z *zstdReader) fault(err error) error {
	var e *format.Error
	walk := z.frames.err
	switch {
	case errors.As(walk, &e):
		return walk
	case errors.Is(walk, io.ErrUnexpectedEOF):
		return format.Errorf(format.ErrTruncated, format.Nowhere, "zstd stream ends early, after %d compressed bytes", z.frames.src.n)
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return format.Errorf(format.ErrLimit, format.Nowhere, "zstd stream: %w", err)
	default:
		return format.Errorf(format.ErrCorrupt, format.Nowhere, "zstd stream: %w", err)
	}
}

func (z *zstdReader) blames(_, failed error) bool { return errors.Is(z.frames.err, failed) }

func (z *zstdReader) garbage() bool { return z.frames.trailing }
