package still

import "image"

// putVideo takes the part from lossy pixels, which are YCbCr in the range of
// video, 16 to 235, and not that of JFIF. Upsampling and conversion are those
// of libwebp, bit for bit.
func putVideo(pic *Picture, img *image.YCbCr, width, height int) {
	for y := pic.Rect.Min.Y; y < pic.Rect.Max.Y; y++ {
		to := pic.rows(y)
		luma := img.Y[img.YOffset(pic.Rect.Min.X, y):]
		// A sample of chroma lies between two rows and columns of pixels: the
		// nearer neighbour counts three times the farther one.
		rows, columns := (height+1)/2, (width+1)/2
		near, far := y/2, min(max(0, y/2-1+2*(y&1)), rows-1)
		b, r := img.Cb[near*img.CStride:], img.Cr[near*img.CStride:]
		farB, farR := img.Cb[far*img.CStride:], img.Cr[far*img.CStride:]
		for i := range pic.Stride {
			x := pic.Rect.Min.X + i
			at := x / 2
			then := min(max(0, at-1+2*(x&1)), columns-1)
			u := mix(b[at], b[then], farB[at], farB[then])
			v := mix(r[at], r[then], farR[at], farR[then])
			to[0][i], to[1][i], to[2][i] = videoRGB(int(luma[i]), u, v)
		}
	}
}

// mix weighs four samples by 9, 3, 3 and 1 sixteenths, rounded in two steps as
// libwebp does (upsampling.c).
func mix(near, beside, far, corner byte) int {
	n, b, f, c := int(near), int(beside), int(far), int(corner)
	return (n + (n+3*b+3*f+c+8)>>3) >> 1
}

// videoRGB converts in libwebp's fixed point of 14 bits (yuv.h):
//
//	R = 1.164 (Y-16) + 1.596 (V-128)
//	G = 1.164 (Y-16) - 0.391 (U-128) - 0.813 (V-128)
//	B = 1.164 (Y-16) + 2.018 (U-128)
func videoRGB(y, u, v int) (r, g, b uint8) {
	y = y * 19077 >> 8
	return video8(y + v*26149>>8 - 14234),
		video8(y - u*6419>>8 - v*13320>>8 + 8708),
		video8(y + u*33050>>8 - 17685)
}

func video8(v int) uint8 { return uint8(min(max(v>>6, 0), 255)) }
