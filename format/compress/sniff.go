package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// PeekSize is how many bytes of a stream Sniff wants to see, if there are as
// many.
const PeekSize = 512

// Sniff returns the compression that a stream which begins with prefix is in,
// or None. Gzip and zstd are told by their magic numbers. The two bytes of a
// zlib header are a check of five bits and fit some texts, so that the deflate
// data behind them has to be sound as far as it is there.
func Sniff(prefix []byte) Kind {
	switch {
	case isGzip(prefix):
		return Gzip
	case isZstd(prefix) || isSkippable(prefix):
		return Zstd
	case isZlib(prefix) && inflates(prefix[2:]):
		return Zlib
	default:
		return None
	}
}

func isGzip(p []byte) bool {
	return len(p) >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == methodDeflate && (len(p) < 4 || p[3]&gzipReserved == 0)
}

func isZstd(p []byte) bool {
	return len(p) >= 4 && binary.LittleEndian.Uint32(p) == 0xfd2fb528
}

func isSkippable(p []byte) bool {
	return len(p) >= 4 && binary.LittleEndian.Uint32(p)&^0xf == 0x184d2a50
}

// isZlib checks CMF and FLG as RFC 1950, section 2.2, defines them. A preset
// dictionary does not occur in files.
func isZlib(p []byte) bool {
	return len(p) >= 2 && zlibHeader(p[0], p[1]) && p[1]&zlibDict == 0
}

func zlibHeader(cmf, flg byte) bool {
	return cmf&0xf == methodDeflate && cmf>>4 <= 7 && (uint(cmf)<<8|uint(flg))%31 == 0
}

// inflates reports whether p is the beginning of a deflate stream, or one as a
// whole.
func inflates(p []byte) bool {
	if len(p) == 0 {
		return false
	}
	in := inflaters.Get().(*inflater)
	defer in.release()
	in.reset(&source{r: bytes.NewReader(p)})
	for n := 0; n < 1<<16; {
		m, err := in.flate.Read(in.scratch[:])
		n += m
		if err != nil {
			return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
	return true
}
