package index

import (
	"io"
	"math"
	"strconv"

	"shardtool/format"
	"shardtool/format/tfrecord"
)

// dali reads lines of an offset and a size. DALI itself takes any numbers,
// wherever lines end; its tools write what is taken here.
func (p *parser) dali() error {
	end := int64(0)
	for {
		p.record = int64(len(p.x.offsets))
		err := p.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		first, rest := word(p.line)
		second, rest := word(rest)
		third, _ := word(rest)
		if len(first) == 0 {
			continue
		}
		offset, err := p.number(first, "offset")
		if err != nil {
			return err
		}
		size, err := p.number(second, "size")
		switch {
		case err != nil:
			return err
		case len(third) > 0:
			return p.fault(format.ErrCorrupt, "more than an offset and a size")
		case size < tfrecord.Overhead:
			return p.fault(format.ErrCorrupt, "a record of %d bytes; the framing alone takes %d", size, tfrecord.Overhead)
		case offset < end:
			return p.fault(format.ErrCorrupt, "offset %d lies before %d, where the record before it ends", offset, end)
		case offset > math.MaxInt64-size:
			return p.fault(format.ErrCorrupt, "the record would end beyond all files")
		}
		end = offset + size
		if err := p.hold(16); err != nil {
			return err
		}
		p.x.offsets = append(p.x.offsets, offset)
		p.x.sizes = append(p.x.sizes, size)
		p.x.end = end
	}
}

func (x *Index) appendDALI(dst []byte, i int) []byte {
	e := x.At(i)
	dst = strconv.AppendInt(dst, e.Offset, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, e.Size, 10)
	return append(dst, '\n')
}
