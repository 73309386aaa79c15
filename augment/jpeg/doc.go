// Package jpeg decodes JPEGs (ITU-T T.81): baseline, extended sequential and
// progressive, 8 bits, Huffman coded. It decodes only what a part needs, and
// gives the coefficients, samples and RGB pixels of libjpeg-turbo bit for bit.
//
//	file ─ markers ─▶ scans ─ entropy decoding ─▶ coefficients ─ inverse DCT ─▶ planes ─ upsampling, color ─▶ RGB
//	     ParseHeader          Decoder.Coefficients           Decoder.Planes                 Decoder.RGB, Gray
//
// [ParseHeader] tells the size, the sampling and the orientation. A [Decoder] is
// reused from picture to picture and allocates nothing then:
//
//	h, err := jpeg.ParseHeader(data)
//	w, ht := h.Upright()
//	r := image.Rect(0, 0, w/2, ht/2)
//	dst := make([]byte, 3*r.Dx()*r.Dy())
//	err = jpeg.NewDecoder(nil).RGB(dst, 3*r.Dx(), data, r, 1)
//
// What comes after the entropy decoder takes coefficients from any [Source]: see
// [Image.Reconstruct].
//
// Errors are *format.Error without a shard: ErrTruncated and ErrCorrupt with the
// byte of the file, ErrUnsupported for other kinds of JPEG, ErrWrongFormat for
// what is none, ErrLimit, and ErrUsage for a request that cannot be met.
package jpeg
