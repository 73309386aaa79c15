package jpeg

import (
	"image"

	"shardtool/augment/internal/kernel"
	"shardtool/format"
)

// Image is a part of a picture as planes of samples, one for each component,
// as stored: an orientation is not applied to them. An Image is reused from
// picture to picture; its memory grows to the largest.
type Image struct {
	Color         ColorSpace
	Count         int // planes
	Width, Height int // of the whole picture, reduced by Shrink
	Shrink        int // 1, 2, 4 or 8
	Orientation   Orientation
	Inverted      bool            // whether an Adobe marker says that inks are stored inverted
	Rect          image.Rectangle // the part that was asked for, in pixels of Width x Height
	Planes        [4]Plane

	// Mem is the memory of the planes. What the caller puts here is used if it
	// is large enough, and replaced if it is not.
	Mem []byte
}

// Plane is the samples of one component. Along each axis a sample covers Num/Den
// pixels of the picture: 1/1, 2/1, 4/1, 3/2 ...
type Plane struct {
	Pix           []byte          // sample Rect.Min first
	Stride        int             // bytes from row to row
	Rect          image.Rectangle // samples held
	Width, Height int             // of the whole plane, in samples
	X, Y          Ratio
}

// Ratio is how many pixels a sample covers along an axis.
type Ratio struct {
	Num, Den int
	// Smooth says that pixels between samples are mixed 3 to 1 from the two
	// nearest (libjpeg's fancy upsampling), of which the ends have one. Other
	// whole ratios repeat samples.
	Smooth bool
}

// margin is how many pixels around a part its colors depend on: the
// neighbours that upsampling mixes in.
const margin = 4

// scaled is the geometry of a frame whose blocks become smaller.
type scaled struct {
	f     *Frame
	least int    // samples of the most finely sampled component's blocks, in each direction
	size  [4]int // of each component's blocks: 8, 4, 2 or 1
}

// scale is how libjpeg reduces a picture (jdmaster.c): by a smaller inverse
// DCT, less so for components that are subsampled, as far as that makes
// upsampling unnecessary.
func (f *Frame) scale(shrink int) scaled {
	s := scaled{f: f, least: 8 / shrink}
	for i := range f.Count {
		c := &f.Comps[i]
		size := s.least
		for size < 8 && f.HMax*s.least%(c.H*size*2) == 0 && f.VMax*s.least%(c.V*size*2) == 0 {
			size *= 2
		}
		s.size[i] = size
	}
	return s
}

// Reconstruct makes planes of coefficients, wherever they come from: the part r
// of the picture, reduced by shrink, and perhaps more around it. Of src it asks
// for the MCUs that this needs. See [Decoder.Planes].
func (img *Image) Reconstruct(src Source, r image.Rectangle, shrink int) error {
	var s scaled
	m, err := s.begin(img, src, r, shrink)
	if err != nil {
		return err
	}
	return s.reconstruct(img, src, m, m.Min.Y, m.Max.Y)
}

// begin makes img ready for the part r, and returns the MCUs that it needs.
func (s *scaled) begin(img *Image, src Source, r image.Rectangle, shrink int) (m image.Rectangle, err error) {
	if shrink != 1 && shrink != 2 && shrink != 4 && shrink != 8 {
		return m, fault(format.ErrUsage, "a picture cannot be reduced by %d", shrink)
	}
	f := src.Frame()
	*s = f.scale(shrink)
	if size := image.Rect(0, 0, ceilDiv(f.Width, shrink), ceilDiv(f.Height, shrink)); r.Empty() || !r.In(size) {
		return m, fault(format.ErrUsage, "the part %v is not within the picture %v", r, size)
	}
	full := image.Rect(r.Min.X*shrink, r.Min.Y*shrink, r.Max.X*shrink, r.Max.Y*shrink)
	around := margin
	if f.HMax == 1 && f.VMax == 1 {
		around = 0
	}
	m = f.mcus(full, around*shrink)
	s.describe(img, r, m)
	s.room(img, m)
	return m, nil
}

// describe sets all of img but the memory, for a part r of the reduced picture
// that is made of MCUs m.
func (s *scaled) describe(img *Image, r, m image.Rectangle) {
	f := s.f
	img.Color, img.Count, img.Orientation, img.Inverted = f.Color, f.Count, f.Orientation, f.Adobe
	img.Shrink = 8 / s.least
	img.Width, img.Height = ceilDiv(f.Width, img.Shrink), ceilDiv(f.Height, img.Shrink)
	img.Rect = r
	img.Planes = [4]Plane{}
	for i := range f.Count {
		c := &f.Comps[i]
		p := &img.Planes[i]
		size := s.size[i]
		p.Width = ceilDiv(f.Width*c.H*size, 8*f.HMax)
		p.Height = ceilDiv(f.Height*c.V*size, 8*f.VMax)
		whole := image.Rect(0, 0, p.Width, p.Height)
		p.Rect = image.Rect(m.Min.X*c.H*size, m.Min.Y*c.V*size, m.Max.X*c.H*size, m.Max.Y*c.V*size).Intersect(whole)
		p.X, p.Y = ratio(f.HMax*s.least, c.H*size), ratio(f.VMax*s.least, c.V*size)
		twoX, twoY := p.X == Ratio{2, 1, false}, p.Y == Ratio{2, 1, false}
		sameX, sameY := p.X == Ratio{1, 1, false}, p.Y == Ratio{1, 1, false}
		if s.least > 1 {
			p.X.Smooth = twoX && (sameY || twoY) && p.Width > 2
			p.Y.Smooth = twoY && (sameX || twoX && p.Width > 2)
		}
	}
}

func ratio(num, den int) Ratio {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return Ratio{num / a, den / a, false}
}

// room gives the planes their memory: whole blocks of the MCUs m.
func (s *scaled) room(img *Image, m image.Rectangle) {
	var at [5]int
	for i := range s.f.Count {
		c := &s.f.Comps[i]
		p := &img.Planes[i]
		p.Stride = (m.Dx()*c.H*s.size[i] + 15) &^ 15
		at[i+1] = at[i] + p.Stride*m.Dy()*c.V*s.size[i]
	}
	n := at[s.f.Count]
	if cap(img.Mem) < n {
		img.Mem = make([]byte, n+n/4)
	}
	mem := img.Mem[:n]
	for i := range s.f.Count {
		img.Planes[i].Pix = mem[at[i]:at[i+1]:at[i+1]]
	}
}

// reconstruct dequantises and transforms the rows of MCUs of m into the planes
// (T.81, A.3.3), as libjpeg's accurate integer method does.
func (s *scaled) reconstruct(img *Image, src Source, m image.Rectangle, from, to int) error {
	f := s.f
	for y := from; y < to; y++ {
		strip, err := src.Row(y, m.Min.X, m.Max.X)
		if err != nil {
			return err
		}
		for i := range f.Count {
			c := &f.Comps[i]
			p := &img.Planes[i]
			size := s.size[i]
			n := m.Dx() * c.H
			quant := src.Quant(i)
			for v := range c.V {
				dst := p.Pix[((y-m.Min.Y)*c.V+v)*size*p.Stride:]
				coefs := strip.Coefs[i][v*strip.Stride[i]:]
				switch size {
				case 8:
					kernel.IDCT(dst, p.Stride, coefs, quant, n)
				case 4:
					kernel.IDCT4(dst, p.Stride, coefs, quant, n)
				case 2:
					kernel.IDCT2(dst, p.Stride, coefs, quant, n)
				default:
					kernel.IDCT1(dst, p.Stride, coefs, quant, n)
				}
			}
		}
	}
	return nil
}
