package augment

import (
	"fmt"
	"image"
	"strings"
)

// ColorJitter changes brightness, contrast, saturation and hue, in random
// order. A factor of the first three is drawn from max(0, 1-v) to 1+v, the
// shift of the hue from -v to v, as a share of the circle; or from the bounds
// of the field that ends in Between. What is zero is left alone.
// Draws: the order (three numbers), then one for each that is not left alone.
type ColorJitter struct {
	Brightness, Contrast, Saturation, Hue                             float64
	BrightnessBetween, ContrastBetween, SaturationBetween, HueBetween [2]float64
}

// The places of the changes in ColorJitter.bounds, Drawn.Factor and
// Drawn.Order.
const (
	jitterBrightness = iota
	jitterContrast
	jitterSaturation
	jitterHue
	jitters
)

var jitterNames = [jitters]string{"brightness", "contrast", "saturation", "hue"}

// bounds returns the bounds of each change, and which are made.
func (j ColorJitter) bounds() (r [jitters][2]float64, made [jitters]bool) {
	single := [jitters]float64{j.Brightness, j.Contrast, j.Saturation, j.Hue}
	between := [jitters][2]float64{j.BrightnessBetween, j.ContrastBetween, j.SaturationBetween, j.HueBetween}
	for i := range r {
		low, center := 0.0, 1.0
		if i == jitterHue {
			low, center = -0.5, 0
		}
		r[i] = orRange(between[i], [2]float64{max(low, center-single[i]), center + single[i]})
		made[i] = r[i] != [2]float64{center, center}
	}
	return r, made
}

func (j ColorJitter) check() error {
	single := [jitters]float64{j.Brightness, j.Contrast, j.Saturation, j.Hue}
	between := [jitters][2]float64{j.BrightnessBetween, j.ContrastBetween, j.SaturationBetween, j.HueBetween}
	const most = 1 << 20 // beyond any use, and exact in float32
	for i, v := range single {
		low, high := 0.0, float64(most)
		if i == jitterHue {
			low, high = -0.5, 0.5
		}
		if !(0 <= v && v <= high) {
			return usage("ColorJitter: %s %v is not within 0 to %v", jitterNames[i], v, high)
		}
		if v != 0 && between[i] != [2]float64{} {
			return usage("ColorJitter: %s is given twice", jitterNames[i])
		}
		if err := checkRange("ColorJitter", jitterNames[i], between[i], low, high); err != nil {
			return err
		}
	}
	return nil
}

func (j ColorJitter) step() step {
	bounds, made := j.bounds()
	var notes []string
	for i, r := range bounds {
		if made[i] {
			notes = append(notes, fmt.Sprintf("%s %.4g to %.4g", jitterNames[i], r[0], r[1]))
		}
	}
	var fold func(geometry, Drawn) (geometry, bool)
	if made == [jitters]bool{} {
		fold = idle
		notes = []string{"nothing"}
	}
	return step{
		name: "ColorJitter",
		note: strings.Join(notes, ", "),
		fold: fold,
		draw: func(s Stream, _ image.Point) Drawn {
			d := Drawn{Active: made != [jitters]bool{}, Order: [4]uint8{0, 1, 2, 3}}
			for i := jitters - 1; i > 0; i-- {
				k := s.IntN(i + 1)
				d.Order[i], d.Order[k] = d.Order[k], d.Order[i]
			}
			for i, r := range bounds {
				if made[i] {
					d.Factor[i] = s.Between(r[0], r[1])
				}
			}
			return d
		},
		rest: never,
		apply: func(c *canvas, d Drawn) error {
			for _, i := range d.Order {
				if !made[i] {
					continue
				}
				switch f := d.Factor[i]; i {
				case jitterBrightness:
					c.now.brightness(f)
				case jitterContrast:
					c.now.contrast(f)
				case jitterSaturation:
					c.now.saturation(f)
				case jitterHue:
					c.now.hue(f)
				}
			}
			return nil
		},
	}
}

// Grayscale keeps the luma (ITU-R 601-2) alone. Channels is that of the
// result, 1 or 3 equal ones; zero: 1. It is 1 for the whole of the transform's
// result; operations that follow see three equal channels. As a part of the
// first pass it is the luma that a picture of YCbCr stores, which differs from
// that of its RGB where colors lie beyond RGB.
type Grayscale struct{ Channels int }

func (g Grayscale) check() error {
	if g.Channels != 0 && g.Channels != 1 && g.Channels != 3 {
		return usage("Grayscale: %d channels", g.Channels)
	}
	return nil
}

func (g Grayscale) step() step {
	return step{
		name: "Grayscale",
		note: fmt.Sprintf("%d channels", orInt(g.Channels, 1)),
		fold: foldGray,
		apply: func(c *canvas, _ Drawn) error {
			c.now.gray()
			return nil
		},
	}
}

// RandomGrayscale replaces, with probability P, the channels by the luma; zero:
// 0.1, Never: 0. The luma is Grayscale's. Draws: whether.
type RandomGrayscale struct{ P float64 }

func (g RandomGrayscale) check() error { return checkProbability("RandomGrayscale", g.P) }

func (g RandomGrayscale) step() step {
	p := orFloat(g.P, 0.1)
	return step{
		name: "RandomGrayscale",
		note: fmt.Sprintf("p %v", p),
		draw: func(s Stream, _ image.Point) Drawn { return Drawn{Active: s.Float64() < p} },
		rest: never,
		fold: foldGray,
		apply: func(c *canvas, _ Drawn) error {
			c.now.gray()
			return nil
		},
	}
}
