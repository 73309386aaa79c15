package echo

import "fmt"

// Warnings says what of an echo is allowed but probably not wanted. r is R as it
// was measured for this unit and level (see Costs.R); 0 where it is not known.
// Options that Check refuses have none, and neither has a factor of 1 that
// stays. What concerns the order, such as a buffer that is too small for its
// lanes, is said by order.Warnings.
func Warnings(o Options, r float64) []string {
	o, f, err := o.Check()
	if err != nil || o.Factor == 1 && o.Auto == nil {
		return nil
	}
	var w []string
	add := func(msg string, args ...any) { w = append(w, fmt.Sprintf(msg, args...)) }
	e := f.Float64()
	switch {
	case !(r > 0):
	case r <= 1 && o.Auto == nil:
		add("R is %.2g: what stands before the echo is not slower than what stands behind it, so copies only take the place of fresh samples; use no echo", r)
	case e > r && o.Auto == nil:
		add("an echo factor of %v is above R, which is %.3g: the last copies of each sample cost time that fresh samples would have; up to %v they are free", e, r, advised(r))
	}
	if e > MaxAdvised && o.Auto == nil {
		add("an echo factor of %v: copies beyond %d stand in for little that is fresh, and may cost quality; retune the learning rate if you keep it", e, MaxAdvised)
	}
	if o.Buffer == 0 && e < 2 && o.Unit == Sample {
		// From 2 on, order.Warnings says so, with the size that the lanes want.
		add("echo of samples without a buffer: copies stand side by side in a batch; give the echo a buffer of several batches")
	}
	if o.Buffer == 0 && o.Unit == Batch {
		add("echo of batches without a buffer: the same batch comes several steps in a row; give the echo a buffer of several batches")
	}
	return w
}
