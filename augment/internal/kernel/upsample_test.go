package kernel

import (
	"bytes"
	"testing"
)

// TestUpsamplingByHand: expected values are calculated by hand from the
// weights 3/4 and 1/4 and the rounding that libjpeg gives each pixel.
func TestUpsamplingByHand(t *testing.T) {
	near, far := []byte{0, 100, 201}, []byte{8, 100, 50}
	for _, tt := range []struct {
		name string
		f    func(dst []byte)
		want []byte
	}{
		// 0; (0+100+2)/4; (300+0+1)/4; (300+201+2)/4; (603+100+1)/4; 201
		{"FancyH2", func(d []byte) { FancyH2(d, near, 0) }, []byte{0, 25, 75, 125, 176, 201}},
		{"FancyH2 from 3", func(d []byte) { FancyH2(d, near, 3) }, []byte{125, 176, 201}},
		// (0+8+1)/4; (300+100+1)/4; (603+50+1)/4
		{"FancyV2 upper", func(d []byte) { FancyV2(d, near, far, false) }, []byte{2, 100, 163}},
		// (0+8+2)/4; (300+100+2)/4; (603+50+2)/4
		{"FancyV2 lower", func(d []byte) { FancyV2(d, near, far, true) }, []byte{2, 100, 163}},
		// Sums 8, 400, 653: (32+8)/16; (24+400+7)/16; (1200+8+8)/16; (1200+653+7)/16; (1959+400+8)/16; (2612+7)/16
		{"FancyH2V2", func(d []byte) { FancyH2V2(d, near, far, 0) }, []byte{2, 26, 76, 116, 147, 163}},
		{"FancyH2V2 from 2", func(d []byte) { FancyH2V2(d, near, far, 2) }, []byte{76, 116, 147}},
		{"FancyH2 of one", func(d []byte) { FancyH2(d, near[1:2], 0) }, []byte{100, 100}},
		{"Replicate 1", func(d []byte) { Replicate(d, near, 1) }, []byte{0, 100}},
		{"Replicate 2", func(d []byte) { Replicate(d, near, 2) }, []byte{0, 0, 100, 100, 201}},
		{"Replicate 3", func(d []byte) { Replicate(d, near, 3) }, []byte{0, 0, 0, 100, 100, 100, 201}},
		{"Replicate 4", func(d []byte) { Replicate(d, near, 4) }, []byte{0, 0, 0, 0, 100}},
	} {
		got := make([]byte, len(tt.want))
		tt.f(got)
		if !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestFancyV2Rounding(t *testing.T) {
	// 3*10+12 is 10.5 quarters of 4: up in the lower row, down in the upper one.
	var got [1]byte
	FancyV2(got[:], []byte{10}, []byte{12}, false)
	if got[0] != 10 {
		t.Errorf("upper row: %d, want 10", got[0])
	}
	FancyV2(got[:], []byte{10}, []byte{12}, true)
	if got[0] != 11 {
		t.Errorf("lower row: %d, want 11", got[0])
	}
}
