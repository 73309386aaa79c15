package still_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"math"
	"slices"
	"testing"

	"shardtool/augment/internal/still"
	"shardtool/format"
)

// part is a chunk of a PNG that is put together here.
type part struct {
	kind, body string
	bad        bool // a wrong checksum
}

func (p part) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(p.body)))
	b = append(append(b, p.kind...), p.body...)
	sum := crc32.ChecksumIEEE(b[4:])
	if p.bad {
		sum++
	}
	return binary.BigEndian.AppendUint32(b, sum)
}

func pngOf(parts ...part) []byte {
	out := []byte("\x89PNG\r\n\x1a\n")
	for _, p := range parts {
		out = append(out, p.bytes()...)
	}
	return out
}

// head is an IHDR.
func head(width, height uint32, depth, kind byte) part {
	b := binary.BigEndian.AppendUint32(nil, width)
	b = binary.BigEndian.AppendUint32(b, height)
	return part{kind: "IHDR", body: string(append(b, depth, kind, 0, 0, 0))}
}

func deflated(raw string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(raw))
	_ = w.Close()
	return b.String()
}

func idat(raw string) part { return part{kind: "IDAT", body: deflated(raw)} }

var iend = part{kind: "IEND"}

// The picture is two gray pixels, 10 and 20, or two of a palette.
func TestPNGStructure(t *testing.T) {
	gray, pixels := head(2, 1, 8, 0), idat("\x00\x0a\x14")
	stream := deflated("\x00\x0a\x14")
	pal, plte, indexes := head(2, 1, 8, 3), part{kind: "PLTE", body: "\x01\x02\x03\x04\x05\x06"}, idat("\x00\x01\x00")
	grays := []byte{10, 10, 10, 20, 20, 20}
	colors := []byte{4, 5, 6, 1, 2, 3}
	none, crc, extra := still.Warnings{}, still.Warnings{AncillaryCRC: 1}, still.Warnings{ExtraData: 1}
	for _, tt := range []struct {
		name     string
		data     []byte
		want     []byte
		warnings still.Warnings
		err      error
	}{
		{"plain", pngOf(gray, pixels, iend), grays, none, nil},
		{"palette", pngOf(pal, plte, indexes, iend), colors, none, nil},
		{"bytes after the end", append(pngOf(gray, pixels, iend), "junk"...), grays, none, nil},
		{"many chunks", pngOf(gray, part{kind: "IDAT"}, part{kind: "IDAT", body: stream[:1]}, part{kind: "IDAT", body: stream[1:3]}, part{kind: "IDAT"}, part{kind: "IDAT", body: stream[3:]}, iend), grays, none, nil},
		{"suggested palette", pngOf(head(1, 1, 8, 2), part{kind: "PLTE", body: "\x01\x02\x03"}, idat("\x00\x07\x08\x09"), iend), []byte{7, 8, 9}, none, nil},
		{"APNG", pngOf(gray, part{kind: "acTL", body: "\x00\x00\x00\x02\x00\x00\x00\x00"}, part{kind: "fcTL", body: "26 bytes"}, pixels, part{kind: "fcTL", body: "26 bytes"}, part{kind: "fdAT", body: "1234" + deflated("\x00\x63\x63")}, iend), grays, none, nil},
		{"transparency of a wrong length", pngOf(gray, part{kind: "tRNS", body: "\x00"}, pixels, iend), grays, none, nil},

		{"ancillary checksum", pngOf(gray, part{"tEXt", "a\x00b", true}, pixels, iend), grays, crc, nil},
		{"two of them", pngOf(gray, part{"tEXt", "a\x00b", true}, pixels, part{"zTXt", "c", true}, iend), grays, still.Warnings{AncillaryCRC: 2}, nil},
		{"checksum of transparency", pngOf(pal, plte, part{"tRNS", "\x00", true}, indexes, iend), colors, crc, nil},
		{"extra row", pngOf(gray, idat("\x00\x0a\x14\x00\x0a\x14"), iend), grays, extra, nil},
		{"extra chunk", pngOf(gray, pixels, part{kind: "IDAT", body: "x"}, iend), grays, extra, nil},
		{"extra bytes in the chunk", pngOf(gray, part{kind: "IDAT", body: stream + "x"}, iend), grays, extra, nil},
		{"extra chunk elsewhere", pngOf(gray, pixels, part{kind: "tEXt"}, pixels, iend), grays, extra, nil},

		{"header twice", pngOf(gray, gray, pixels, iend), nil, none, format.ErrCorrupt},
		{"palette twice", pngOf(pal, plte, plte, indexes, iend), nil, none, format.ErrCorrupt},
		{"palette after the pixels", pngOf(pal, indexes, plte, iend), nil, none, format.ErrCorrupt},
		{"palette of 4 bytes", pngOf(pal, part{kind: "PLTE", body: "\x01\x02\x03\x04"}, indexes, iend), nil, none, format.ErrCorrupt},
		{"no palette", pngOf(pal, indexes, iend), nil, none, format.ErrCorrupt},
		{"index beyond", pngOf(pal, plte, idat("\x00\x01\x02"), iend), nil, none, format.ErrCorrupt},
		{"no pixels", pngOf(gray, iend), nil, none, format.ErrCorrupt},
		{"no header", pngOf(pixels, iend), nil, none, format.ErrCorrupt},
		{"no end", pngOf(gray, pixels), nil, none, format.ErrTruncated},
		{"checksum of the header", pngOf(part{gray.kind, gray.body, true}, pixels, iend), nil, none, format.ErrCorrupt},
		{"checksum of the pixels", pngOf(gray, part{pixels.kind, pixels.body, true}, iend), nil, none, format.ErrCorrupt},
		{"checksum of the end", pngOf(gray, pixels, part{"IEND", "", true}), nil, none, format.ErrCorrupt},
		{"checksum of the stream", pngOf(gray, part{kind: "IDAT", body: stream[:len(stream)-1] + "x"}, iend), nil, none, format.ErrCorrupt},
		{"too few pixels", pngOf(gray, idat("\x00\x0a"), iend), nil, none, format.ErrCorrupt},
		{"a row too few", pngOf(head(2, 2, 8, 0), pixels, iend), nil, none, format.ErrCorrupt},
		{"stream cut", pngOf(gray, part{kind: "IDAT", body: stream[:len(stream)-6]}, iend), nil, none, format.ErrTruncated},
		{"stream cut in its checksum", pngOf(gray, part{kind: "IDAT", body: stream[:len(stream)-1]}, iend), nil, none, format.ErrTruncated},
		{"empty stream", pngOf(gray, part{kind: "IDAT"}, iend), nil, none, format.ErrTruncated},
		{"no zlib", pngOf(gray, part{kind: "IDAT", body: "hello"}, iend), nil, none, format.ErrCorrupt},
		{"filter 5", pngOf(gray, idat("\x05\x0a\x14"), iend), nil, none, format.ErrCorrupt},
		{"unknown critical chunk", pngOf(gray, part{kind: "ABCD"}, pixels, iend), nil, none, format.ErrUnsupported},
		{"iOS", pngOf(part{kind: "CgBI", body: "1234"}, gray, pixels, iend), nil, none, format.ErrUnsupported},
		{"name of a chunk", pngOf(gray, part{kind: "a\x00cd"}, pixels, iend), nil, none, format.ErrCorrupt},
		{"12 bits", pngOf(head(2, 1, 12, 0), pixels, iend), nil, none, format.ErrCorrupt},
		{"palette of 16 bits", pngOf(head(2, 1, 16, 3), plte, indexes, iend), nil, none, format.ErrCorrupt},
		{"color type 5", pngOf(head(2, 1, 8, 5), pixels, iend), nil, none, format.ErrCorrupt},
		{"width 0", pngOf(head(0, 1, 8, 0), pixels, iend), nil, none, format.ErrCorrupt},
		{"interlace 2", pngOf(part{kind: "IHDR", body: gray.body[:12] + "\x02"}, pixels, iend), nil, none, format.ErrUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d still.Decoder
			width := 2
			if len(tt.want) == 3 {
				width = 1
			}
			pic, err := d.Decode(nil, tt.data, image.Rect(0, 0, width, 1))
			if !errors.Is(err, tt.err) || tt.err != nil && format.Sentinel(err) != tt.err {
				t.Fatalf("%v, want %v", err, tt.err)
			}
			if err == nil && (!slices.Equal(interleaved(&pic), tt.want) || d.Warnings() != tt.warnings) {
				t.Errorf("%v with %v, want %v with %v", interleaved(&pic), d.Warnings(), tt.want, tt.warnings)
			}
		})
	}
}

// Values of alpha and of transparent colors by hand: over (0, 100, 255), a part
// a/255 of the value and the rest of the background.
func TestPNGBackground(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want []byte
	}{
		{"gray and alpha", pngOf(head(3, 1, 8, 4), idat("\x00\x64\x00\x64\xff\x64\x80"), iend), []byte{
			0, 100, 255, 100, 100, 100, 50, 100, 177, // 100*128/255 = 50.2, 50.2 + 255*127/255 = 177.2
		}},
		{"gray key of 2 bits", pngOf(head(4, 1, 2, 0), part{kind: "tRNS", body: "\x00\x02"}, idat("\x00\x1b"), iend), []byte{
			0, 0, 0, 85, 85, 85, 0, 100, 255, 255, 255, 255,
		}},
		{"gray key of 16 bits", pngOf(head(2, 1, 16, 0), part{kind: "tRNS", body: "\x12\x34"}, idat("\x00\x12\x34\x12\x35"), iend), []byte{
			0, 100, 255, 0x12, 0x12, 0x12, // the same upper byte is not enough
		}},
		{"color key", pngOf(head(2, 1, 8, 2), part{kind: "tRNS", body: "\x00\x01\x00\x02\x00\x03"}, idat("\x00\x01\x02\x03\x01\x02\x04"), iend), []byte{
			0, 100, 255, 1, 2, 4,
		}},
		{"no alpha", pngOf(head(1, 1, 8, 0), idat("\x00\x07"), iend), []byte{7, 7, 7}},
	} {
		d := still.Decoder{Background: &[3]uint8{0, 100, 255}}
		h, err := still.ParseHeader(tt.data)
		if err != nil {
			t.Fatal(err)
		}
		pic, err := d.Decode(nil, tt.data, image.Rect(0, 0, h.Width, 1))
		if err != nil || !slices.Equal(interleaved(&pic), tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.name, interleaved(&pic), err, tt.want)
		}
	}
}

// Claims cost nothing: neither of size nor of what a few bytes inflate to.
func TestClaims(t *testing.T) {
	flat := slices.Repeat([]byte{0}, 1<<20)
	for _, tt := range []struct {
		name string
		data []byte
		d    still.Decoder
		want error
	}{
		{"over the default", pngOf(head(1<<14+1, 1<<14, 8, 0), idat(""), iend), still.Decoder{}, format.ErrLimit},
		{"over a limit", pngOf(head(100, 100, 8, 0), idat(string(flat[:100*101])), iend), still.Decoder{Pixels: 9999}, format.ErrLimit},
		{"at the limit", pngOf(head(100, 100, 8, 0), idat(string(flat[:100*101])), iend), still.Decoder{Pixels: 10000}, nil},
		{"2^62 pixels", pngOf(head(math.MaxInt32, math.MaxInt32, 16, 6), idat("\x00"), iend), still.Decoder{Pixels: math.MaxInt64}, format.ErrTruncated},
		{"more than its bytes inflate to", pngOf(head(1<<13, 1<<13, 8, 6), idat(string(flat)), iend), still.Decoder{}, format.ErrTruncated},
		{"GIF screen", gifOf(30000, 30000, image.Rect(0, 0, 1, 1), 0, pixelBlocks(0)), still.Decoder{Pixels: math.MaxInt64}, format.ErrLimit},
		{"GIF image", gifOf(4000, 4000, image.Rect(0, 0, 4000, 4000), 0, pixelBlocks(0)), still.Decoder{}, format.ErrTruncated},
		{"WebP", []byte("RIFF\x16\x00\x00\x00WEBPVP8L\n\x00\x00\x00/\xff\xff\xff\x0f\x00\x00\x00\x00\x00"), still.Decoder{}, format.ErrLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.d
			var err error
			got := allocated(func() { _, err = d.Decode(nil, tt.data, image.Rect(0, 0, 1, 1)) })
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if got > 1<<18 {
				t.Errorf("%d bytes were allocated", got)
			}
		})
	}
}
