package jpeg_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"math/bits"
	"testing"

	"shardtool/augment/jpeg"
)

// encoder writes coefficients as a baseline JPEG, with the code tables of annex
// K, so that tests can have files of their own.
type encoder struct {
	out   bytes.Buffer
	acc   uint64
	n     uint
	codes [2][2][256]struct{ code, length uint }
}

func (e *encoder) segment(marker byte, content ...byte) {
	e.out.Write([]byte{0xff, marker, byte((len(content) + 2) >> 8), byte(len(content) + 2)})
	e.out.Write(content)
}

func (e *encoder) table(class, number int) {
	def := jpeg.StandardTables[class][number]
	e.segment(0xc4, append([]byte{byte(class<<4 | number)}, def...)...)
	code, k := uint(0), 16
	for length := uint(1); length <= 16; length++ {
		for range def[length-1] {
			c := &e.codes[class][number][def[k]]
			c.code, c.length = code, length
			code++
			k++
		}
		code <<= 1
	}
}

func (e *encoder) put(v uint64, n uint) {
	e.acc, e.n = e.acc<<n|v, e.n+n
	for e.n >= 8 {
		b := byte(e.acc >> (e.n - 8))
		e.out.WriteByte(b)
		if b == 0xff {
			e.out.WriteByte(0)
		}
		e.n -= 8
	}
}

func (e *encoder) flush() {
	if e.n > 0 {
		e.put(1<<(8-e.n)-1, 8-e.n)
	}
}

func (e *encoder) value(class, number, run int, v int) {
	size := uint(bits.Len(uint(max(v, -v))))
	c := e.codes[class][number][uint(run)<<4|size]
	e.put(uint64(c.code), c.length)
	if v < 0 {
		v += 1<<size - 1
	}
	e.put(uint64(v), size)
}

// order is where the coefficients of a file stand in a block (T.81, figure A.6).
var order = func() (o [64]int) {
	x, y := 0, 0
	for k := range o {
		o[k] = 8*y + x
		switch up := (x+y)%2 == 0; {
		case up && x == 7, !up && y < 7 && x == 0:
			y++
		case up && y == 0, !up && y == 7:
			x++
		case up:
			x, y = x+1, y-1
		default:
			x, y = x-1, y+1
		}
	}
	return o
}()

func (e *encoder) block(table int, b []int16, dc int) {
	e.value(0, table, 0, int(b[0])-dc)
	run := 0
	for k := 1; k < 64; k++ {
		v := int(b[order[k]])
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			e.value(1, table, 15, 0)
		}
		e.value(1, table, run, v)
		run = 0
	}
	if run > 0 {
		e.value(1, table, 0, 0)
	}
}

// large repeats a picture times x times over, with a restart marker after each
// row of MCUs.
func large(tb testing.TB, data []byte, times int) []byte {
	src, err := jpeg.NewDecoder(nil).Coefficients(data)
	if err != nil {
		tb.Fatal(err)
	}
	f := src.Frame()
	var rows []jpeg.Strip
	for y := range f.Rows {
		s, err := src.Row(y, 0, f.Cols)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range f.Count {
			s.Coefs[i] = append([]int16(nil), s.Coefs[i]...)
		}
		rows = append(rows, s)
	}
	var e encoder
	e.out.Write([]byte{0xff, 0xd8})
	frame := binary.BigEndian.AppendUint16([]byte{8}, uint16(times*f.Rows*8*f.VMax))
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(times*f.Cols*8*f.HMax)), byte(f.Count))
	scan := []byte{byte(f.Count)}
	for i := range f.Count {
		q := []byte{byte(i)}
		for _, at := range order {
			q = append(q, byte(src.Quant(i)[at]))
		}
		e.segment(0xdb, q...)
		frame = append(frame, byte(i+1), byte(f.Comps[i].H<<4|f.Comps[i].V), byte(i))
		scan = append(scan, byte(i+1), byte(min(i, 1)*0x11))
	}
	e.segment(0xc0, frame...)
	for class := range 2 {
		e.table(class, 0)
		e.table(class, 1)
	}
	e.segment(0xdd, binary.BigEndian.AppendUint16(nil, uint16(times*f.Cols))...)
	e.segment(0xda, append(scan, 0, 63, 0)...)
	for y := range times * f.Rows {
		if y > 0 {
			e.flush()
			e.out.Write([]byte{0xff, 0xd0 + byte((y-1)&7)})
		}
		var dc [4]int
		for x := range times * f.Cols {
			s := rows[y%f.Rows]
			for i := range f.Count {
				c := &f.Comps[i]
				for b := range c.H * c.V {
					at := b/c.H*s.Stride[i] + 64*(x%f.Cols*c.H+b%c.H)
					block := s.Coefs[i][at : at+64]
					e.block(min(i, 1), block, dc[i])
					dc[i] = int(block[0])
				}
			}
		}
	}
	e.flush()
	e.out.Write([]byte{0xff, 0xd9})
	return e.out.Bytes()
}

// A large picture in restart intervals, by several goroutines, is the small one
// again and again.
func TestLargePictureInIntervals(t *testing.T) {
	data := readFile(t, jpegDir+"/420.jpg")
	h, err := jpeg.ParseHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	var small, big jpeg.Image
	if err := jpeg.NewDecoder(nil).Planes(&small, data, image.Rect(0, 0, h.Width, h.Height), 1); err != nil {
		t.Fatal(err)
	}
	made := large(t, data, 3)
	bh, err := jpeg.ParseHeader(made)
	if err != nil {
		t.Fatal(err)
	}
	if err := jpeg.NewDecoder(&jpeg.Options{Workers: 4}).Planes(&big, made, image.Rect(0, 0, bh.Width, bh.Height), 1); err != nil {
		t.Fatal(err)
	}
	for i := range small.Count {
		a, b := &small.Planes[i], &big.Planes[i]
		for n := range 9 {
			x, y := n%3*b.Width/3, n/3*b.Height/3
			for row := range a.Height {
				got := b.Pix[(y+row)*b.Stride+x:][:a.Width]
				if !bytes.Equal(got, a.Pix[row*a.Stride:][:a.Width]) {
					t.Fatalf("plane %d of copy %d: row %d differs", i, n, row)
				}
			}
		}
	}
}
