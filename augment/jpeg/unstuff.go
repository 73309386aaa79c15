package jpeg

import "bytes"

// segment is the entropy-coded data between two markers of a scan, without
// stuffing.
type segment struct {
	from, to int  // in the bytes without stuffing
	marker   byte // that ends it; 0: the end of the data
	source   int  // where it begins in the file
}

// Zeros follow each segment, for reads beyond its end. Where a damaged file is
// to be shown, they are as many as the worst block takes: 64 codes with their
// values, of 31 bits each.
const (
	padStrict   = 16
	padTolerant = 64*4 + 16
	padLast     = 1024 // after all
)

// unstuff copies the entropy-coded data that begins at data[at] to dst: the
// zero byte after FF is left out, and each marker that may stand within a scan
// ends a segment. It returns where the marker stands that ends the scan, or of
// the last of most segments; or len(data).
//
// RST markers may stand within a scan, and for libjpeg whatever is below SOF0.
func unstuff(dst []byte, segs []segment, data []byte, at, pad, most int) ([]byte, []segment, int) {
	if need := pad + len(data) - at + padLast; cap(dst) < need {
		dst = make([]byte, 0, need+need/4)
	}
	dst = append(dst[:0], zeros[:pad]...) // what segments without data have
	seg := segment{from: pad, source: at}
	var end int
	for {
		skip := bytes.IndexByte(data[at:], 0xff)
		if skip < 0 {
			dst = append(dst, data[at:]...)
			end = len(data)
			break
		}
		dst = append(dst, data[at:at+skip]...)
		at += skip
		next := at + 1
		for next < len(data) && data[next] == 0xff { // fill bytes
			next++
		}
		if next >= len(data) {
			end = len(data)
			break
		}
		m := data[next]
		if m == 0 {
			dst = append(dst, 0xff)
			at = next + 1
			continue
		}
		if m >= mSOF0 && !(mRST0 <= m && m <= mRST7) || len(segs)+1 >= most {
			end = next - 1
			seg.marker = m
			break
		}
		seg.to, seg.marker = len(dst), m
		if seg.from == seg.to {
			seg.from, seg.to = 0, 0
		} else {
			dst = append(dst, zeros[:pad]...)
		}
		segs = append(segs, seg)
		at = next + 1
		seg = segment{from: len(dst), source: at}
	}
	seg.to = len(dst)
	segs = append(segs, seg)
	dst = append(dst, zeros[:]...)
	return dst, segs, end
}

var zeros [padLast]byte

// sourceOf returns where in the file byte n of a segment stands.
func (s *segment) sourceOf(data []byte, n int) int {
	at := s.source
	for ; n > 0 && at < len(data); n-- {
		if data[at] == 0xff {
			for at+1 < len(data) && data[at+1] == 0xff {
				at++
			}
			at++ // the zero
		}
		at++
	}
	return min(at, len(data))
}
