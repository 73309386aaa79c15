package jpeg_test

import (
	"fmt"
	"image"
	"log"
	"os"

	"shardtool/augment/jpeg"
)

// The right half of a picture.
func ExampleDecoder_RGB() {
	data, err := os.ReadFile("../../fixtures/jpeg/420.jpg")
	if err != nil {
		log.Fatal(err)
	}
	h, err := jpeg.ParseHeader(data)
	if err != nil {
		log.Fatal(err)
	}
	width, height := h.Upright()
	r := image.Rect(width/2, 0, width, height)
	pix := make([]byte, 3*r.Dx()*r.Dy())
	d := jpeg.NewDecoder(nil) // keep it for the next picture
	if err := d.RGB(pix, 3*r.Dx(), data, r, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Sampling(), r.Dx(), r.Dy(), len(pix))
	// Output: 4:2:0 60 89 16020
}
