package index

import (
	"encoding/binary"
	"io"
	"math"

	"shardtool/format"
)

// energon reads offsets of 8 bytes. The last is the end of the last sample.
func (p *parser) energon() error {
	var b [8]byte
	for {
		n, err := io.ReadFull(p.r, b[:])
		p.start, p.record = p.read, int64(len(p.x.offsets))
		if e := p.take(n); e != nil {
			return e
		}
		switch {
		case err == io.EOF:
			p.x.end = p.x.offsets[len(p.x.offsets)-1] // Sniff has seen one
			p.x.offsets = p.x.offsets[:len(p.x.offsets)-1]
			return nil
		case err == io.ErrUnexpectedEOF:
			return p.fault(format.ErrTruncated, "ends %d bytes into an offset of 8", n)
		case err != nil:
			return p.readFault(err)
		}
		offset := binary.LittleEndian.Uint64(b[:])
		switch last := len(p.x.offsets) - 1; {
		case offset > math.MaxInt64:
			return p.fault(format.ErrCorrupt, "offset %d lies beyond all files", offset)
		case offset%blockSize != 0:
			return p.fault(format.ErrCorrupt, "offset %d is not at a block of %d", offset, blockSize)
		case last >= 0 && int64(offset) <= p.x.offsets[last]:
			return p.fault(format.ErrCorrupt, "offset %d does not lie after %d, the one before it", offset, p.x.offsets[last])
		}
		if err := p.hold(8); err != nil {
			return err
		}
		p.x.offsets = append(p.x.offsets, int64(offset))
	}
}
