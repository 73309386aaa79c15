package shard

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"shardtool/format"
	"shardtool/format/tfexample"
)

// imageSuffixes are the suffixes under which images stand in tar shards. What
// an image is its content says; the name only says that it should be one.
var imageSuffixes = []string{"jpg", "jpeg", "png", "webp", "gif"}

// lastSuffix splits what follows the last dot off the name of a field: "seg.png"
// is "seg" and "png", "jpg" is "" and "jpg".
func lastSuffix(name string) (stem, suffix string) {
	dot := strings.LastIndexByte(name, '.')
	return name[:max(dot, 0)], name[dot+1:]
}

// namedImage reports whether the name of a field, of a tar or of an Example,
// promises an image.
func namedImage(name string) bool { return name == imageFeature || hasImageSuffix(name) }

func hasImageSuffix(name string) bool {
	_, suffix := lastSuffix(name)
	return slices.ContainsFunc(imageSuffixes, func(s string) bool { return format.EqualName(s, suffix) })
}

// imageMagics are what files of images begin with, those included that are not
// decoded. Each is long enough not to stand at the start of other fields by
// chance; startsAsImage knows the rest.
var imageMagics = [][]byte{
	[]byte("\xff\xd8\xff"),                   // JPEG
	[]byte("\x89PNG\r\n\x1a\n"),              // PNG
	[]byte("GIF87a"),                         // GIF
	[]byte("GIF89a"),                         //
	[]byte("II*\x00"),                        // TIFF, little-endian
	[]byte("MM\x00*"),                        // TIFF, big-endian
	[]byte("\x00\x00\x00\x0cJXL \r\n\x87\n"), // JPEG XL in boxes
}

// imageBrands are the major brands of ISO base media files that hold a still
// image: AVIF and HEIF.
var imageBrands = []string{"avif", "avis", "heic", "heix", "heim", "heis", "mif1", "msf1"}

// sniffed is how much of a field startsAsImage looks at.
const sniffed = 16

// startsAsImage reports whether data begins as a file of an image does. size is
// that of the whole, of which data is the start.
func startsAsImage(data []byte, size int64) bool {
	for _, m := range imageMagics {
		if bytes.HasPrefix(data, m) {
			return true
		}
	}
	if len(data) < 12 {
		return false
	}
	switch {
	case string(data[:4]) == "RIFF":
		return string(data[8:12]) == "WEBP"
	case string(data[4:8]) == "ftyp":
		return slices.Contains(imageBrands, string(data[8:12]))
	case string(data[:2]) == "BM": // BMP says its size and keeps four bytes at 0
		return int64(binary.LittleEndian.Uint32(data[2:])) == size && binary.LittleEndian.Uint32(data[6:]) == 0
	}
	return false
}

// eachImage passes the images of a field to yield, until it returns false: the
// value of a field of bytes, each value of a list of byte strings and of the
// steps of a feature list. all takes every value for one; else either the name
// promises one, or the content begins as one.
func eachImage(f *format.Field, all bool, yield func(data []byte) bool) bool {
	all = all || namedImage(f.Name)
	one := func(data []byte) bool {
		return !all && !startsAsImage(data, int64(len(data))) || yield(data)
	}
	feature := tfexample.FeatureOf(f.Kind, f.Data)
	switch f.Kind {
	case format.Bytes:
		absent := f.Data == nil && f.Offset == format.Unknown // format.MissingFill stands in for it
		return absent || one(f.Data)
	case format.BytesList:
		for v := range feature.Bytes() {
			if !one(v) {
				return false
			}
		}
	case format.FeatureList:
		for _, step := range feature.Steps() {
			for v := range step.Bytes() {
				if !one(v) {
					return false
				}
			}
		}
	}
	return true
}
