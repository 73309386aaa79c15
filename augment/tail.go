package augment

import (
	"image"

	"shardtool/format"
	"shardtool/tensor"
)

// form gathers what the operations of a list say about its result.
type form struct {
	normalize *Normalize
	to        *ToTensor
	erasing   *RandomErasing
	channels  int
}

// add takes note of an operation, and tells whether it works on the tensor.
func (f *form) add(op Op) (onTensor bool, err error) {
	again := func(set bool, name string) error {
		if set {
			return usage("%s twice", name)
		}
		return nil
	}
	if _, ok := op.(RandomErasing); f.erasing != nil && !ok {
		return false, format.Errorf(format.ErrUnsupported, format.Nowhere, "an operation follows RandomErasing: put it before")
	}
	switch op := op.(type) {
	case Normalize:
		err = again(f.normalize != nil, "Normalize")
		f.normalize = &op
	case ToTensor:
		err = again(f.to != nil, "ToTensor")
		f.to = &op
	case RandomErasing:
		err = again(f.erasing != nil, "RandomErasing")
		f.erasing = &op
	default:
		if f.normalize != nil || f.to != nil {
			return false, format.Errorf(format.ErrUnsupported, format.Nowhere, "an operation on pictures follows Normalize or ToTensor: put it before")
		}
		if g, ok := op.(Grayscale); ok && g.Channels != 3 {
			f.channels = 1
		}
		return false, nil
	}
	if err == nil && f.to != nil && f.to.DType == tensor.Uint8 && (f.normalize != nil || f.erasing != nil && f.erasing.Random) {
		err = usage("Normalize and random values give no whole numbers: not with uint8")
	}
	return true, err
}

// tail is what happens to pictures of 8 bits at the end: they are looked up in
// a table for each channel and laid out.
type tail struct {
	dtype       tensor.DType
	axes        Axes
	channels    int
	normalized  bool
	scale, bias [3]float32 // the result for v is v*scale + bias
	floats      [3][256]float32
	halves      [3][256]uint16

	erase  bool // the last step erases
	random bool // by deviates, else by:
	value  [3]float32
	bits   [3]uint16
}

func (f *form) tail() tail {
	t := tail{channels: f.channels, normalized: f.normalize != nil}
	if f.to != nil {
		t.dtype, t.axes = f.to.DType, f.to.Axes
	}
	for c := range t.floats {
		t.scale[c] = 1.0 / 255
		if f.normalize != nil {
			t.scale[c] = float32(1 / (255 * f.normalize.Std[c]))
			t.bias[c] = float32(-f.normalize.Mean[c] / f.normalize.Std[c])
		}
		for v := range t.floats[c] {
			t.floats[c][v] = float32(float32(v)*t.scale[c]) + t.bias[c]
		}
		t.half(t.halves[c][:], t.floats[c][:])
	}
	if f.erasing != nil {
		t.erase, t.random = true, f.erasing.Random
		for c, v := range f.erasing.Value {
			t.value[c] = float32(v)
		}
		t.half(t.bits[:], t.value[:])
	}
	return t
}

// half converts to the tail's type of 16 bits, if it has one.
func (t *tail) half(dst []uint16, src []float32) {
	switch t.dtype {
	case tensor.Float16:
		tensor.ToFloat16(dst, src)
	case tensor.BFloat16:
		tensor.ToBFloat16(dst, src)
	}
}

// first is the step, of n, at which those on pictures have been done.
func (t *tail) first(n int) int {
	if t.erase {
		return n - 1
	}
	return n
}

// write lays out a picture as the result.
func (t *tail) write(dst tensor.Dense, src *raster) {
	switch t.dtype {
	case tensor.Float32:
		layOut(dst.Float32(), src, &t.floats, t.channels, t.axes)
	case tensor.Uint8:
		layOut(dst.Uint8(), src, &values, t.channels, t.axes)
	default:
		layOut(dst.Half(), src, &t.halves, t.channels, t.axes)
	}
}

// values maps each value to itself.
var values = func() (t [3][256]uint8) {
	for c := range t {
		for v := range t[c] {
			t[c][v] = uint8(v)
		}
	}
	return t
}()

func layOut[T any](dst []T, src *raster, table *[3][256]T, channels int, axes Axes) {
	n := src.width * src.height
	pix := src.pix[:3*n]
	switch {
	case channels == 1:
		for i := range dst[:n] {
			dst[i] = table[0][pix[3*i]]
		}
	case axes == NHWC:
		for i := 0; i+3 <= len(pix); i += 3 {
			d, p := dst[i:i+3:i+3], pix[i:i+3:i+3]
			d[0], d[1], d[2] = table[0][p[0]], table[1][p[1]], table[2][p[2]]
		}
	default:
		red, green, blue := dst[:n], dst[n:2*n], dst[2*n:3*n]
		for i := range red {
			p := pix[3*i:][:3:3]
			red[i], green[i], blue[i] = table[0][p[0]], table[1][p[1]], table[2][p[2]]
		}
	}
}

// erased overwrites a rectangle of dst.
func (t *tail) erased(dst tensor.Dense, size image.Point, d Drawn) {
	if !d.Active {
		return
	}
	noise := Stream{d.noise}
	for c := range t.channels {
		for y := d.Rect.Min.Y; y < d.Rect.Max.Y; y++ {
			from, step := (c*size.Y+y)*size.X+d.Rect.Min.X, 1
			if t.axes == NHWC {
				from, step = (y*size.X+d.Rect.Min.X)*t.channels+c, t.channels
			}
			for i := range d.Rect.Dx() {
				t.put(dst, from+i*step, c, &noise)
			}
		}
	}
}

// put overwrites element i, of channel c.
func (t *tail) put(dst tensor.Dense, i, c int, noise *Stream) {
	value, bits := t.value[c], t.bits[c]
	if t.random {
		v := [1]float32{float32(noise.Normal())}
		var b [1]uint16
		t.half(b[:], v[:])
		value, bits = v[0], b[0]
	}
	switch t.dtype {
	case tensor.Float32:
		dst.Float32()[i] = value
	case tensor.Uint8:
		dst.Uint8()[i] = uint8(min(max(value, 0), 255))
	default:
		dst.Half()[i] = bits
	}
}
