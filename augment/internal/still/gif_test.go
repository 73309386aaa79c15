package still_test

import (
	"encoding/binary"
	"errors"
	"image"
	"slices"
	"testing"

	"shardtool/augment/internal/still"
	"shardtool/format"
)

// gifOf puts a GIF with a palette of four grays, 10, 20, 30 and 40, together.
func gifOf(width, height uint16, r image.Rectangle, flags byte, pixels string) []byte {
	b := []byte("GIF89a")
	b = binary.LittleEndian.AppendUint16(b, width)
	b = binary.LittleEndian.AppendUint16(b, height)
	b = append(b, 0x81, 0, 0, 10, 10, 10, 20, 20, 20, 30, 30, 30, 40, 40, 40)
	return append(imageOf(b, r, flags), pixels+";"...)
}

func imageOf(b []byte, r image.Rectangle, flags byte) []byte {
	b = append(b, 0x2c)
	for _, v := range []int{r.Min.X, r.Min.Y, r.Dx(), r.Dy()} {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return append(b, flags)
}

// pixelBlocks codes indexes below 4 in codes of three bits, with a clear code
// (4) before each so that they never grow, and the end code 5.
func pixelBlocks(indexes ...byte) string {
	var codes []byte
	for _, v := range indexes {
		codes = append(codes, 4, v)
	}
	return blocksOf(2, append(codes, 5)...)
}

// blocksOf packs codes of three bits into one block.
func blocksOf(size byte, codes ...byte) string {
	var bits, n uint
	var packed []byte
	for _, c := range codes {
		bits |= uint(c) << n
		for n += 3; n >= 8; n -= 8 {
			packed = append(packed, byte(bits))
			bits >>= 8
		}
	}
	if n > 0 {
		packed = append(packed, byte(bits))
	}
	return string(size) + string([]byte{byte(len(packed))}) + string(packed) + "\x00"
}

func TestGIFStructure(t *testing.T) {
	one, line := image.Rect(0, 0, 1, 1), image.Rect(0, 0, 3, 1)
	pixels := pixelBlocks(0, 3, 1)
	good := gifOf(3, 1, line, 0, pixels)
	at := len("GIF89a") + 7 + 12 // of the image
	with := func(ext string) []byte { return slices.Insert(slices.Clone(good), at, []byte(ext)...) }
	want := []byte{10, 40, 20}
	none, extra := still.Warnings{}, still.Warnings{ExtraData: 1}
	for _, tt := range []struct {
		name     string
		data     []byte
		want     []byte // of one channel
		warnings still.Warnings
		err      error
	}{
		{"plain", good, want, none, nil},
		{"no trailer", good[:len(good)-1], want, none, nil},
		{"a second image that is cut", append(good[:len(good)-1:len(good)-1], ",\x00"...), want, none, nil},
		{"comment", with("!\xfe\x05hello\x05world\x00"), want, none, nil},
		{"unknown extension", with("!\x42\x01x\x00"), want, none, nil},
		{"stray zero", with("\x00"), want, none, nil},
		{"transparent", with("!\xf9\x04\x01\x00\x00\x03\x00"), want, none, nil},
		{"no end code", gifOf(3, 1, line, 0, blocksOf(2, 4, 4, 0, 4, 3, 4, 4, 1)), want, none, nil},
		{"one more pixel", gifOf(3, 1, line, 0, pixelBlocks(0, 3, 1, 1)), want, extra, nil},
		{"two bytes after the end code", gifOf(3, 1, line, 0, pixels[:len(pixels)-1]+"\x02ab\x00"), want, extra, nil},
		{"one byte after the end code", gifOf(3, 1, line, 0, pixels[:len(pixels)-1]+"\x01a\x00"), want, none, nil},
		// A transparent index beyond the palette is black.
		{"transparent beyond", func() []byte {
			b := []byte("GIF89a\x02\x00\x01\x00\x80\x00\x00\x0a\x0a\x0a\x14\x14\x14!\xf9\x04\x01\x00\x00\x03\x00")
			return append(imageOf(b, image.Rect(0, 0, 2, 1), 0), pixelBlocks(1, 3)...)
		}(), []byte{20, 0}, none, nil},

		{"index beyond", func() []byte {
			b := []byte("GIF89a\x02\x00\x01\x00\x80\x00\x00\x0a\x0a\x0a\x14\x14\x14")
			return append(imageOf(b, image.Rect(0, 0, 2, 1), 0), pixelBlocks(1, 3)...)
		}(), nil, none, format.ErrCorrupt},
		{"too few pixels", gifOf(3, 1, line, 0, pixelBlocks(0, 3)), nil, none, format.ErrCorrupt},
		{"bad code", gifOf(3, 1, line, 0, blocksOf(2, 4, 0, 7, 7, 7)), nil, none, format.ErrCorrupt},
		{"no palette", append(imageOf([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00"), one, 0), pixelBlocks(0)...), nil, none, format.ErrCorrupt},
		{"no image", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), nil, none, format.ErrCorrupt},
		{"size 0", gifOf(0, 0, image.Rect(0, 0, 0, 0), 0, pixels), nil, none, format.ErrCorrupt},
		{"code size 1", gifOf(3, 1, line, 0, "\x01"+pixels[1:]), nil, none, format.ErrCorrupt},
		{"code size 9", gifOf(3, 1, line, 0, "\x09"+pixels[1:]), nil, none, format.ErrCorrupt},
		{"unknown block", with("x"), nil, none, format.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d still.Decoder
			pic, err := d.Decode(nil, tt.data, image.Rect(0, 0, max(1, len(tt.want)), 1))
			if !errors.Is(err, tt.err) || tt.err != nil && format.Sentinel(err) != tt.err {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if err == nil && (!slices.Equal(pic.Plane(0)[:len(tt.want)], tt.want) || d.Warnings() != tt.warnings) {
				t.Errorf("%v with %v, want %v with %v", pic.Plane(0)[:len(tt.want)], d.Warnings(), tt.want, tt.warnings)
			}
		})
	}
}

// The order of rows of an interlaced image, by hand from appendix E.
func TestGIFInterlaced(t *testing.T) {
	for _, order := range [][]byte{{0}, {0, 1}, {0, 2, 1}, {0, 4, 2, 1, 3}, {0, 8, 4, 2, 6, 1, 3, 5, 7}} {
		rows := make([]byte, len(order)) // the index of each row as stored
		for i, y := range order {
			rows[i] = y % 4
		}
		r := image.Rect(0, 0, 1, len(order))
		pic, err := new(still.Decoder).Decode(nil, gifOf(1, uint16(len(order)), r, 0x40, pixelBlocks(rows...)), r)
		if err != nil {
			t.Fatal(err)
		}
		for y := range order {
			if got, want := pic.Plane(0)[y], byte(10+10*(y%4)); got != want {
				t.Errorf("%d rows: row %d is %d, want %d", len(order), y, got, want)
			}
		}
	}
}
