package loader

import (
	"shardtool/loader/internal/column"
	"shardtool/tensor"
)

// assemble fills the holes of a page, puts together the columns of any length,
// and cuts padded ones to their bucket. All slots are filled or given up.
func (p *page) assemble() {
	p.fillHoles()
	for i := range p.l.columns {
		switch p.l.columns[i].form {
		case column.FormDense:
			p.arrays = append(p.arrays, p.values[i])
		case column.FormPadded:
			p.cut(i)
			p.arrays = append(p.arrays, p.values[i], p.counts[i])
		case column.FormRagged, column.FormBinary:
			p.gather(i)
			p.arrays = append(p.arrays, p.values[i], p.counts[i])
		}
	}
	p.keepGathered()
}

// fillHoles copies to each place without a sample the nearest earlier good one,
// else the nearest later, which then is the first good one of all. Without any
// the places are zero.
func (p *page) fillHoles() {
	good := -1
	for i := range p.slots {
		if p.slots[i].filled() {
			good = i
			break
		}
	}
	for i := range p.slots {
		switch {
		case p.slots[i].filled():
			good = i
		case good >= 0:
			p.copySlot(i, good)
		default:
			p.zeroSlot(i)
		}
	}
}

func (p *page) copySlot(to, from int) {
	for i := range p.l.columns {
		switch p.l.columns[i].form {
		case column.FormDense:
			copy(p.values[i].At(to).Bytes(), p.values[i].At(from).Bytes())
		case column.FormPadded:
			copy(p.values[i].At(to).Bytes(), p.values[i].At(from).Bytes())
			p.lengths[i][to] = p.lengths[i][from]
		case column.FormRagged, column.FormBinary:
			p.cells[i][to] = p.cells[i][from]
		}
	}
}

func (p *page) zeroSlot(to int) {
	for i := range p.l.columns {
		switch p.l.columns[i].form {
		case column.FormDense:
			clear(p.values[i].At(to).Bytes())
		case column.FormPadded:
			clear(p.values[i].At(to).Bytes())
			p.lengths[i][to] = 0
		case column.FormRagged, column.FormBinary:
			p.cells[i][to] = cell{}
		}
	}
}

// gather lays the values of a column of any length one behind the other.
func (p *page) gather(i int) {
	c := &p.l.columns[i]
	splits, total := p.lengths[i], 0
	splits[0] = 0
	for k := range p.cells[i] {
		total += p.cells[i][k].n
		splits[k+1] = int64(total / c.size)
	}
	buf := p.l.pages.memory.Get(total)
	at := 0
	for k := range p.cells[i] {
		if v := &p.cells[i][k]; v.n > 0 {
			at += copy(buf.Bytes()[at:], v.buf.Bytes()[v.off:v.off+v.n])
		}
	}
	shape := append(tensor.Shape{total / c.size}, c.shape...)
	p.values[i] = tensor.View(c.dtype, shape, buf.Bytes())
	p.l.chunks.gate.force(int64(buf.Size()))
	p.gathered = append(p.gathered, buf)
}

// keepGathered lets go of the pieces that values were gathered from.
func (p *page) keepGathered() {
	if len(p.pieces) > 0 {
		p.dropPieces()
	}
	p.pieces = append(p.pieces, p.gathered...)
	clear(p.gathered)
	p.gathered = p.gathered[:0]
}

// cut shortens a padded column to its bucket.
func (p *page) cut(i int) {
	longest := int64(0)
	for _, n := range p.lengths[i] {
		longest = max(longest, n)
	}
	shape := p.values[i].Shape()
	width := column.Bucket(p.l.o.Columns[i].Kind, longest)
	if width >= shape[1] {
		return
	}
	mem := p.values[i].Bytes()
	row := len(mem) / shape[0]
	short := row / shape[1] * width
	for k := range shape[0] {
		copy(mem[k*short:(k+1)*short], mem[k*row:])
	}
	cut := append(tensor.Shape{shape[0], width}, shape[2:]...)
	p.values[i] = tensor.View(p.values[i].DType(), cut, mem[:shape[0]*short])
}
