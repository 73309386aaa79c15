package plot

import (
	"math"
	"strconv"
	"strings"
)

// Scale is how an axis places its values.
type Scale uint8

// The scales. A logarithmic one leaves out what is not positive.
const (
	Linear Scale = iota
	Log2         // ticks at powers of two
	Log10        // ticks at 1, 2 and 5 times powers of ten
)

// Axis is one of a chart's.
type Axis struct {
	Label string // the quantity and its unit, such as "steps per second"
	Scale Scale

	// Min and Max bound what is shown, as far as ticks allow. Both 0: what the
	// values need; a linear axis of positive values begins at 0 then.
	Min, Max float64

	// Names stand for the values 0, 1, 2 and so on, instead of numbers.
	Names []string
}

// tick is a marked value of an axis.
type tick struct {
	at   float64
	name string
}

// extent is an axis whose ends and ticks are settled.
type extent struct {
	scale    Scale
	min, max float64 // as places of scale: logarithms, where it is one
	ticks    []tick
}

// settle finds the ends of an axis and its ticks, for values within low and
// high.
func (a *Axis) settle(low, high float64) extent {
	if n := len(a.Names); n > 0 {
		e := extent{min: -0.5, max: float64(n) - 0.5}
		for i, name := range a.Names {
			e.ticks = append(e.ticks, tick{float64(i), name})
		}
		return e
	}
	if a.Min != 0 || a.Max != 0 {
		low, high = a.Min, a.Max
	} else if a.Scale == Linear && low > 0 {
		low = 0
	}
	if !(low <= high) || low == 0 && high == 0 { // there are no values, or nothing but 0
		low, high = 0, 1
	}
	var values []float64
	switch {
	case a.Scale == Linear:
		values = linearTicks(low, high)
	case !(low > 0):
		values = []float64{1, 2}
	case a.Scale == Log2:
		values = powersOfTwo(low, high)
	default:
		values = decades(low, high)
	}
	e := extent{scale: a.Scale}
	e.min, _ = a.Scale.place(values[0])
	e.max, _ = a.Scale.place(values[len(values)-1])
	for _, v := range values {
		e.ticks = append(e.ticks, tick{v, label(v)})
	}
	return e
}

// place returns where a value is on a line of the scale, and whether it is on
// it at all: what is too large to add up is not.
func (s Scale) place(v float64) (float64, bool) {
	const most = 1e100
	ok := v >= -most && v <= most && (s == Linear || v >= 1/most)
	if ok && s != Linear {
		v = math.Log2(v)
	}
	return v, ok
}

// at returns where a value is as a share of the axis, from 0 to 1.
func (e *extent) at(v float64) (float64, bool) {
	p, ok := e.scale.place(v)
	return (p - e.min) / (e.max - e.min), ok
}

// linearTicks returns at most 7 ticks of 1, 2 or 5 times a power of ten, of
// which the first and the last enclose low and high.
func linearTicks(low, high float64) []float64 {
	if high-low <= math.Abs(high)*1e-9 { // one value: room on both sides
		room := max(math.Abs(high)/2, 1e-9)
		low, high = low-room, high+room
	}
	const most = 6
	step := math.Pow(10, math.Floor(math.Log10((high-low)/most)))
	for _, times := range []float64{1, 2, 5, 10, 20} {
		const slack = 1e-9 // of a step: 0.3 is to be three times 0.1
		s := step * times
		first, last := math.Floor(low/s+slack), math.Ceil(high/s-slack)
		if last-first > most {
			continue
		}
		var ticks []float64
		for i := first; i <= last; i++ {
			ticks = append(ticks, rounded(i*s))
		}
		return ticks
	}
	return []float64{low, high}
}

// rounded takes off what sums of tenths have behind their digits.
func rounded(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// powersOfTwo returns those that enclose low and high, or every second, third
// and so on of them.
func powersOfTwo(low, high float64) []float64 {
	first, last := math.Floor(math.Log2(low)), math.Ceil(math.Log2(high))
	if first == last {
		first--
	}
	const most = 10
	step := math.Ceil((last - first) / most)
	var ticks []float64
	for i := first; i < last+step; i += step {
		ticks = append(ticks, math.Exp2(i))
	}
	return ticks
}

// decades returns 1, 2 and 5 times powers of ten that enclose low and high, or
// powers of ten alone where these are many.
func decades(low, high float64) []float64 {
	first, last := math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
	if last-first > 3 {
		const most = 8
		step := math.Ceil((last - first) / most)
		var ticks []float64
		for i := first; i < last+step; i += step {
			ticks = append(ticks, rounded(math.Pow(10, i)))
		}
		return ticks
	}
	var all []float64
	for i := first; i <= last; i++ {
		for _, times := range []float64{1, 2, 5} {
			all = append(all, rounded(times*math.Pow(10, i)))
		}
	}
	from, to := 0, len(all)-1
	for from+1 < len(all) && all[from+1] <= low*(1+1e-9) {
		from++
	}
	for to > from+1 && all[to-1] >= high*(1-1e-9) {
		to--
	}
	return all[from : to+1]
}

// label writes the number of a tick: 0.5, 12,000, 2e6.
func label(v float64) string {
	if a := math.Abs(v); a != 0 && (a >= 1e6 || a < 1e-4) {
		s := strconv.FormatFloat(v, 'e', -1, 64)
		mantissa, exponent, _ := strings.Cut(s, "e")
		n, _ := strconv.Atoi(exponent)
		return mantissa + "e" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	if digits := strings.TrimPrefix(whole, "-"); len(digits) > 4 {
		whole = whole[:len(whole)-3] + "," + whole[len(whole)-3:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}
