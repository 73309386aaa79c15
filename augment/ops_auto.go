package augment

import (
	"fmt"
	"image"
	"math"
)

// RandAugment does NumOps operations one after the other, each drawn from the
// fourteen of Choice, all at Magnitude of Bins steps of strength (Cubuk et
// al., arXiv 1909.13719). Draws of each: which, and the sign.
type RandAugment struct {
	NumOps        int           // zero: 2; Never: 0, nothing is done
	Magnitude     int           // zero: 9; Never: 0, which leaves the choices that have no strength
	Bins          int           // torchvision's num_magnitude_bins; zero: 31
	Interpolation Interpolation // of shears, moves and turns; Default: Nearest
	Fill          [3]uint8
}

func (a RandAugment) withDefaults() RandAugment {
	a.NumOps, a.Magnitude, a.Bins = orInt(a.NumOps, 2), orInt(a.Magnitude, 9), orInt(a.Bins, 31)
	a.Interpolation = a.Interpolation.or(Nearest)
	return a
}

func (a RandAugment) check() error {
	a = a.withDefaults()
	switch {
	case a.NumOps < 0 || a.NumOps > maxSteps:
		return usage("RandAugment: %d operations are not within 0 to %d", a.NumOps, maxSteps)
	case a.Bins < 2 || a.Bins > maxBins || a.Magnitude < 0 || a.Magnitude >= a.Bins:
		return usage("RandAugment: magnitude %d of %d bins", a.Magnitude, a.Bins)
	}
	return checkFilter("RandAugment", a.Interpolation, Bicubic)
}

// step is one of the NumOps.
func (a RandAugment) step() step {
	a = a.withDefaults()
	return step{
		name: "RandAugment",
		note: fmt.Sprintf("%d operations, magnitude %d of %d", a.NumOps, a.Magnitude, a.Bins),
		draw: func(s Stream, in image.Point) Drawn {
			choice := Choice(s.IntN(int(choices)))
			return randSpace.drawn(choice, a.Magnitude, a.Bins, s.Float64() <= 0.5, in)
		},
		rest:  never,
		apply: applyChoice(a.Interpolation, a.Fill),
	}
}

// TrivialAugmentWide does one operation, drawn from the fourteen of Choice, at
// a strength drawn from Bins steps (Müller and Hutter, arXiv 2103.10158).
// Draws: which, the step, the sign.
type TrivialAugmentWide struct {
	Bins          int           // torchvision's num_magnitude_bins; zero: 31
	Interpolation Interpolation // of shears, moves and turns; Default: Nearest
	Fill          [3]uint8
}

func (a TrivialAugmentWide) check() error {
	if n := orInt(a.Bins, 31); n < 2 || n > maxBins {
		return usage("TrivialAugmentWide: %d bins", n)
	}
	return checkFilter("TrivialAugmentWide", a.Interpolation, Bicubic)
}

func (a TrivialAugmentWide) step() step {
	bins := orInt(a.Bins, 31)
	return step{
		name: "TrivialAugmentWide",
		note: fmt.Sprintf("%d bins", bins),
		draw: func(s Stream, in image.Point) Drawn {
			choice, bin := Choice(s.IntN(int(choices))), s.IntN(bins)
			return wideSpace.drawn(choice, bin, bins, s.Float64() <= 0.5, in)
		},
		rest:  never,
		apply: applyChoice(a.Interpolation.or(Nearest), a.Fill),
	}
}

// Choice is an operation that RandAugment and TrivialAugmentWide choose from,
// known by its String: Identity, ShearX, ShearY, TranslateX, TranslateY, Rotate,
// Brightness, Color, Contrast, Sharpness, Posterize, Solarize, AutoContrast or
// Equalize.
type Choice uint8

const (
	autoIdentity Choice = iota
	autoShearX
	autoShearY
	autoTranslateX
	autoTranslateY
	autoRotate
	autoBrightness
	autoColor
	autoContrast
	autoSharpness
	autoPosterize
	autoSolarize
	autoAutoContrast
	autoEqualize
	choices
)

var choiceNames = [choices]string{
	"Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness",
	"Color", "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize",
}

// String returns torchvision's name, such as "ShearX".
func (c Choice) String() string {
	if c < choices {
		return choiceNames[c]
	}
	return "unknown"
}

// space holds the largest magnitudes of the choices. That of a move is in
// pixels, or where share is set, a share of the picture's side.
type space struct {
	shear, move, turn, color float64
	share                    bool
	posterize                int // bits that are taken at most
}

var (
	randSpace = space{shear: 0.3, move: 150.0 / 331, share: true, turn: 30, color: 0.9, posterize: 4}
	wideSpace = space{shear: 0.99, move: 32, turn: 135, color: 0.99, posterize: 6}
)

// drawn gives the operation its magnitude, which is the one of the given bin,
// negative where the operation has a sign and negative is set.
func (sp *space) drawn(c Choice, bin, bins int, negative bool, in image.Point) Drawn {
	var m float64
	signed := true
	switch c {
	case autoShearX, autoShearY:
		m = linspace(0, sp.shear, bin, bins)
	case autoTranslateX, autoTranslateY:
		side := in.X
		if c == autoTranslateY {
			side = in.Y
		}
		most := sp.move
		if sp.share {
			most *= float64(side)
		}
		m = linspace(0, most, bin, bins)
	case autoRotate:
		m = linspace(0, sp.turn, bin, bins)
	case autoBrightness, autoColor, autoContrast, autoSharpness:
		m = linspace(0, sp.color, bin, bins)
	case autoPosterize:
		by := float32(float64(bins-1) / float64(sp.posterize))
		m, signed = math.RoundToEven(float64(8-float32(bin)/by)), false
	case autoSolarize:
		m, signed = linspace(1, 0, bin, bins), false
	default:
		signed = false
	}
	if signed && negative {
		m = -m
	}
	return Drawn{Active: c != autoIdentity, Choice: c, Factor: [4]float64{m}}
}

// linspace is entry i of torch.linspace(from, to, n): in float32, and counted
// from the nearer end.
func linspace(from, to float64, i, n int) float64 {
	a, b := float32(from), float32(to)
	by := (b - a) / float32(n-1)
	if i < n/2 {
		return float64(a + float32(by*float32(i)))
	}
	return float64(b - float32(by*float32(n-1-i)))
}

func applyChoice(filter Interpolation, fill [3]uint8) func(*canvas, Drawn) error {
	return func(c *canvas, d Drawn) error {
		m := d.Factor[0]
		switch d.Choice {
		case autoShearX, autoShearY:
			return c.shear(m, d.Choice == autoShearY, filter, fill)
		case autoTranslateX:
			return c.affine(affine{1, 0, -math.Trunc(m), 0, 1, 0}, filter, fill)
		case autoTranslateY:
			return c.affine(affine{1, 0, 0, 0, 1, -math.Trunc(m)}, filter, fill)
		case autoRotate:
			return c.rotate(m, filter, fill)
		case autoBrightness:
			c.now.brightness(1 + m)
		case autoColor:
			c.now.saturation(1 + m)
		case autoContrast:
			c.now.contrast(1 + m)
		case autoSharpness:
			return c.sharpness(1 + m)
		case autoPosterize:
			c.now.posterize(int(m))
		case autoSolarize:
			c.now.solarize(255 * m)
		case autoAutoContrast:
			c.now.autocontrast()
		case autoEqualize:
			c.now.equalize()
		}
		return nil
	}
}

// shear moves each row, or each column, by m times its distance from the
// first. Torchvision goes the way over the angle whose tangent is m.
func (c *canvas) shear(m float64, vertical bool, filter Interpolation, fill [3]uint8) error {
	if vertical {
		return c.affine(affine{1, 0, 0, m, 1, 0}, filter, fill)
	}
	return c.affine(affine{1, m, 0, 0, 1, 0}, filter, fill)
}
