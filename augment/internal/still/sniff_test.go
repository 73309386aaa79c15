package still

import "testing"

// What stands in shards beside images begins in many ways: numbers of either
// byte order, words, other containers.
func TestStartsAsImage(t *testing.T) {
	for data, want := range map[string]bool{
		"\xff\xd8\xff\xe0":         true,
		"\x89PNG\r\n\x1a\n":        true,
		"GIF89a":                   true,
		"RIFF\x24\x00\x00\x00WEBP": true,
		"II*\x00\x08":              true,
		"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1miafavif":               true,
		"\x00\x00\x00\x18ftyphevc\x00\x00\x00\x00mif1hevc":                   true,
		"\x00\x00\x00\x0cJXL \r\n\x87\n":                                     true,
		"BM\x3a\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00": true, // a BMP of one pixel
		"BMW is a maker of cars and of motorcycles":                          false,
		"\x00\x00\x00\x14ftypisom\x00\x00\x00\x00isom":                       false, // a video
		"RIFF\x24\x00\x00\x00WAVEfmt ":                                       false,
		"\x00\x00\x01\x00\x01\x00":                                           false, // an icon, or 256
		"\xff\x0a":                                                           false,
		"P6 1 1 255\n":                                                       false,
		"\xff\xd8":                                                           false,
		"7":                                                                  false,
		"":                                                                   false,
	} {
		if got := StartsAsImage([]byte(data)); got != want {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
	}
}
