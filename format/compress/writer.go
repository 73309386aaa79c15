package compress

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"shardtool/format"
)

// NewWriter returns a writer that compresses to w as k says; Close ends the
// stream and does not close w. level is 0 for the default, 1 to 9 for gzip and
// zlib, 1 to 22 for zstd; another is ErrUsage. The same bytes written give the
// same bytes: there is no name, no time, and one goroutine.
func NewWriter(w io.Writer, k Kind, level int) (io.WriteCloser, error) {
	most := 9
	if k == Zstd {
		most = 22
	}
	if level < 0 || level > most {
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "no level %d of %s: there are 1 to %d, and 0 for the default", level, k, most)
	}
	switch k {
	case None:
		return plain{w}, nil
	case Gzip:
		return gzip.NewWriterLevel(w, orDefault(level))
	case Zlib:
		return zlib.NewWriterLevel(w, orDefault(level))
	case Zstd:
		o := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true)}
		if level != 0 {
			o = append(o, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
		}
		return zstd.NewWriter(w, o...)
	default:
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "no compression of number %d", k)
	}
}

// orDefault returns the level as the gzip and zlib writers number them.
func orDefault(level int) int {
	if level == 0 {
		return gzip.DefaultCompression
	}
	return level
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }
