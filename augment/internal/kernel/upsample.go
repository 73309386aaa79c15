package kernel

// Upsampling as libjpeg does it (jdsample.c, "fancy"): linear interpolation
// between the centers of chroma samples, each of which lies amid the pixels it
// stands for. With s and t two neighbours,
//
//	samples      s       t
//	pixels     0   1   2   3
//
// pixel 1 is (3s+t)/4 and pixel 2 is (s+3t)/4, rounded up and down in turn.
// Beyond an end of a row, and above the first and below the last row, the
// nearest sample is repeated.
//
// A row may be a part of a picture's row: give one sample more on each side
// where the picture has one, and ask for pixels from off on.
//
// libjpeg uses these forms where chroma is more than 2 samples wide, and
// repeats samples (Replicate) where it is not and at all other ratios; FancyV2
// is used at every width.

// FancyH2 doubles a row horizontally (chroma 4:2:2): dst[i] is pixel off+i of
// the 2*len(src) that src makes.
func FancyH2(dst, src []byte, off int) {
	// With src twice, the sums of double are 4 times the samples: so is what
	// is added before they are cut.
	double(dst, src, src, off, 4, 8)
}

// FancyV2 gives one of the two rows of pixels that a row of samples makes
// where chroma is halved vertically only (4:4:0). far is the row of samples
// above for the upper of the two, below for the lower.
func FancyV2(dst, near, far []byte, lower bool) {
	round := uint(1)
	if lower {
		round = 2
	}
	near, far = near[:len(dst)], far[:len(dst)]
	for i := range dst {
		dst[i] = byte((3*uint(near[i]) + uint(far[i]) + round) >> 2)
	}
}

// FancyH2V2 doubles a row both ways (chroma 4:2:0): dst[i] is pixel off+i of
// the row whose nearest samples are in near, the next nearest in far, above or
// below. Both have the same length.
func FancyH2V2(dst, near, far []byte, off int) { double(dst, near, far, off, 8, 7) }

// double is FancyH2V2 with what is added to even and odd pixels before they are
// cut.
func double(dst, near, far []byte, off int, even, odd uint) {
	if len(dst) == 0 {
		return
	}
	far = far[:len(near)]
	_ = near[(off+len(dst)-1)>>1]
	sum := func(i int) uint {
		i = max(0, min(len(near)-1, i))
		return 3*uint(near[i]) + uint(far[i])
	}
	at := off >> 1
	before, here := sum(at-1), sum(at)
	if off&1 == 1 {
		after := sum(at + 1)
		dst[0] = byte((3*here + after + odd) >> 4)
		if dst = dst[1:]; len(dst) == 0 {
			return
		}
		at, before, here = at+1, here, after
	}
	// Pairs of pixels of a sample that is not the row's last.
	inner := min(len(dst)/2, len(near)-1-at)
	n, f := near[at+1:][:inner], far[at+1:][:inner]
	for i, v := range n {
		if len(dst) < 2 {
			break // never; so dst needs no check of its bounds
		}
		after := 3*uint(v) + uint(f[i])
		dst[0] = byte((3*here + before + even) >> 4)
		dst[1] = byte((3*here + after + odd) >> 4)
		dst, before, here = dst[2:], here, after
	}
	if len(dst) > 0 {
		dst[0] = byte((3*here + before + even) >> 4)
	}
	if len(dst) > 1 {
		dst[1] = byte((4*here + odd) >> 4)
	}
}

// Replicate repeats each sample k times: dst[i] is src[i/k].
func Replicate(dst, src []byte, k int) {
	switch k {
	case 1:
		copy(dst, src[:len(dst)])
		return
	case 2:
		pairs := len(dst) / 2
		src := src[:(len(dst)+1)/2]
		for i, v := range src[:pairs] {
			d := (*[2]byte)(dst[2*i:])
			d[0], d[1] = v, v
		}
		if len(dst)%2 == 1 {
			dst[len(dst)-1] = src[pairs]
		}
		return
	}
	for n := 0; len(dst) > 0; n++ {
		run := dst[:min(k, len(dst))]
		for i := range run {
			run[i] = src[n]
		}
		dst = dst[len(run):]
	}
}
