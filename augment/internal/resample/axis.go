package resample

// Axis says how the samples of a plane lie along one axis of the picture, and
// which of them are in memory.
type Axis struct {
	// Pixels is the length of the picture.
	Pixels int
	// Num / Den is the number of pixels to a sample: sample i covers pixels
	// i*Num/Den to (i+1)*Num/Den. 1/1, 2/1, 4/1, 3/2.
	Num, Den int
	// Smooth interpolates between the centers of samples; at 2/1 that is
	// libjpeg's triangle. Else a sample of a whole ratio is repeated.
	// Fractional ratios are always interpolated.
	Smooth bool
	// Total is the number of samples of the whole plane: beyond its ends there
	// is nothing to interpolate with.
	Total int
	// First and Held are the window of samples that is in memory.
	First, Held int
}

// Plane is one plane of a picture. Pix[0] is sample (X.First, Y.First); rows
// are Stride bytes apart.
type Plane struct {
	Pix    []byte
	Stride int
	X, Y   Axis
}

// Picture is one plane of gray, or three of RGB or of full-range YCbCr, as
// JFIF has it.
type Picture struct {
	Planes [3]Plane
	Count  int // 1 or 3
	YCbCr  bool
}
