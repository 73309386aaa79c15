package shard_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
	"shardtool/shard"
)

// pngOf encodes a picture, whose colors are RRGGBB and rows by slashes:
// "ff0000 00ff00/000000 ffffff".
func pngOf(t testing.TB, rows string) []byte {
	t.Helper()
	var img *image.NRGBA
	for y, row := range strings.Split(rows, "/") {
		colors := strings.Fields(row)
		if img == nil {
			img = image.NewNRGBA(image.Rect(0, 0, len(colors), strings.Count(rows, "/")+1))
		}
		for x, text := range colors {
			var c color.NRGBA
			if _, err := fmt.Sscanf(text, "%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
				t.Fatal(err)
			}
			c.A = 255
			img.SetNRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type member struct {
	name string
	data []byte
}

// tarOf writes a tar of members with archive/tar.
func tarOf(t testing.TB, name string, members ...member) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.data)), Mode: 0o644, Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, name, b.Bytes())
}

func fileOf(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func stats(t testing.TB, names []string, o *shard.StatsOptions) (*shard.ImageSummary, []shard.ImageStats) {
	t.Helper()
	var each []shard.ImageStats
	sum, err := shard.Stats(t.Context(), names, o, func(s *shard.ImageStats) error {
		each = append(each, *s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum, each
}

// TestMeanAndDeviation holds both against what is worked out by hand: with two
// values 0 and 1 of which the part p is 1, the mean is p and the deviation
// sqrt(p(1-p)).
func TestMeanAndDeviation(t *testing.T) {
	for _, tt := range []struct {
		name      string
		images    []string
		each      [][3]float64
		mean, std [3]float64
	}{
		{"one color", []string{"0a141e 0a141e/0a141e 0a141e"}, [][3]float64{{10, 20, 30}},
			[3]float64{10. / 255, 20. / 255, 30. / 255}, [3]float64{}},
		{"black and white", []string{"000000 ffffff"}, [][3]float64{{127.5, 127.5, 127.5}},
			[3]float64{0.5, 0.5, 0.5}, [3]float64{0.5, 0.5, 0.5}},
		// Each pixel counts alike, not each image: of 1+3+4 pixels red is 1 in
		// one, green in 3, blue in 4.
		{"unlike sizes", []string{"ff0000", "00ff00 00ff00 00ff00", "0000ff 0000ff/0000ff 0000ff"},
			[][3]float64{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}},
			[3]float64{0.125, 0.375, 0.5}, [3]float64{math.Sqrt(7) / 8, math.Sqrt(15) / 8, 0.5}},
		// 0, 51, 102, 153 are 0, 0.2, 0.4, 0.6: mean 0.3, variance 0.05.
		{"a ramp", []string{"000000 333333/666666 999999"}, [][3]float64{{76.5, 76.5, 76.5}},
			[3]float64{0.3, 0.3, 0.3}, [3]float64{math.Sqrt(0.05), math.Sqrt(0.05), math.Sqrt(0.05)}},
	} {
		var members []member
		for i, rows := range tt.images {
			members = append(members, member{fmt.Sprintf("%d.png", i), pngOf(t, rows)})
		}
		sum, each := stats(t, []string{tarOf(t, "in.tar", members...)}, nil)
		var means [][3]float64
		for _, s := range each {
			means = append(means, s.Mean)
		}
		if !cmp.Equal(means, tt.each) {
			t.Errorf("%s: means of images %v, want %v", tt.name, means, tt.each)
		}
		mean, std := sum.Normal()
		for c := range 3 {
			if math.Abs(mean[c]-tt.mean[c]) > 1e-15 || math.Abs(std[c]-tt.std[c]) > 1e-15 {
				t.Errorf("%s: mean %v and deviation %v, want %v and %v", tt.name, mean, std, tt.mean, tt.std)
				break
			}
		}
	}
	sum, _ := stats(t, []string{tarOf(t, "in.tar", member{"0.cls", []byte("1")})}, nil)
	if mean, std := sum.Normal(); !math.IsNaN(mean[1]) || !math.IsNaN(std[2]) || sum.Without != 1 {
		t.Errorf("without images: mean %v, deviation %v, %d samples without", mean, std, sum.Without)
	}
}

// TestNormalOfPhotographs holds mean and deviation against what Pillow's pixels
// give, summed up as whole numbers.
func TestNormalOfPhotographs(t *testing.T) {
	sum, each := stats(t, []string{fixtures + "photos/photos-000000.tar"}, nil)
	mean, std := sum.Normal()
	near := func(what string, got, want [3]float64, tol float64) {
		for c := range 3 {
			if math.Abs(got[c]-want[c]) > tol {
				t.Errorf("%s %v, want %v", what, got, want)
				return
			}
		}
	}
	near("mean", mean, [3]float64{0.508925132880649, 0.4197781643396658, 0.37131784161135273}, 1e-12)
	near("deviation", std, [3]float64{0.23380525675804953, 0.2268029257203164, 0.26405729030610375}, 1e-12)
	near("mean of the first", each[0].Mean, [3]float64{114.14622933, 118.426416, 92.09192}, 1e-8)
}

// TestWhichFieldsAreImages makes one sample of fields of all sorts.
func TestWhichFieldsAreImages(t *testing.T) {
	px := pngOf(t, "102030")
	in := tarOf(t, "in.tar", member{"0.jpg", px}, member{"0.seg.PNG", px}, member{"0.webp", []byte("no image")}, member{"0.picture", px},
		member{"0.txt", []byte("BMW and GIF8 are words")}, member{"0.bmp", append([]byte("BM\x1d\x00\x00\x00\x00\x00\x00\x00\x1a\x00\x00\x00\x0c\x00\x00\x00"), make([]byte, 11)...)},
		member{"0.tiff", []byte("II*\x00rest")}, member{"0.avif", []byte("\x00\x00\x00\x1cftypavif....")}, member{"0.mp4", []byte("\x00\x00\x00\x1cftypisom....")},
		member{"0.cls", []byte("7")}, member{"0.empty", nil}, member{"0.gif", nil})
	fields := func(name string, o *shard.StatsOptions) string {
		sum, each := stats(t, []string{name}, o)
		var all []string
		for _, s := range each {
			text := s.Field
			if s.Err != nil {
				text += " bad"
			}
			all = append(all, text)
		}
		if sum.Images != int64(len(each)) || len(sum.Failed) > 0 {
			t.Errorf("%d images, want %d; %v", sum.Images, len(each), sum.Failed)
		}
		return strings.Join(all, ", ")
	}
	if got, want := fields(in, nil), "jpg, seg.PNG, webp bad, picture, bmp bad, tiff bad, avif bad, gif bad"; got != want {
		t.Errorf("images are %s; want %s", got, want)
	}
	asked := func(missing format.OnMissing, fields ...string) *shard.StatsOptions {
		return &shard.StatsOptions{Options: shard.Options{Read: reader.Options{Fields: fields, OnMissing: missing}}}
	}
	if got, want := fields(in, asked(format.MissingFill, "cls", "none", "png;jpg")), "cls bad, jpg"; got != want {
		t.Errorf("of fields that were asked for, images are %s; want %s", got, want)
	}

	// Examples: a value, a list of values; each step of a sequence.
	var b tfexample.Builder
	b.AddBytes("image/encoded", px)
	b.AddBytes("frames", px, []byte("text"), px)
	b.AddBytes("text", []byte("a"), []byte("b"))
	b.AddInt64("image/height", 1)
	if got, want := fields(fileOf(t, "in.tfrecord", tfrecord.AppendFrame(nil, b.AppendTo(nil))), nil), "image/encoded, frames, frames"; got != want {
		t.Errorf("images of an Example are %s; want %s", got, want)
	}
	var q tfexample.SequenceBuilder
	q.Context.AddInt64("n", 2)
	q.AddList("video", tfexample.BytesOf(px), tfexample.BytesOf(px), tfexample.Int64Of(1))
	if got, want := fields(fileOf(t, "in.tfrecord", tfrecord.AppendFrame(nil, q.AppendTo(nil))), nil), "video, video"; got != want {
		t.Errorf("images of a SequenceExample are %s; want %s", got, want)
	}
	if got, want := fields(fileOf(t, "raw.tfrecord", tfrecord.AppendFrame(nil, px)), nil), "record"; got != want {
		t.Errorf("images of a raw record are %s; want %s", got, want)
	}
}

// summaryText is all that a summary says.
func summaryText(s *shard.ImageSummary) string {
	mean, std := s.Normal()
	var b strings.Builder
	fmt.Fprintln(&b, s.Shards, s.Samples, s.Without, s.Images, s.Bytes, s.Fields, s.Unreadable, s.Encodings, s.Channels, mean, std, s.Errors, s.Failed, s.Skipped, s.Warnings, s.Lost)
	for _, d := range []*shard.Distribution{&s.Width, &s.Height, &s.Pixels, &s.Aspect, &s.FileBytes} {
		fmt.Fprintln(&b, d.N, d.Min, d.Max, d.Mean(), d.Quantile(0.1), d.Quantile(0.5), d.Bins(7))
	}
	return b.String()
}

// TestStatsDoNotDependOnJobs reads shards of many and of few images.
func TestStatsDoNotDependOnJobs(t *testing.T) {
	var names []string
	var want []string
	for i, n := range []int{150, 1, 0, 40, 3} {
		var members []member
		for k := range n {
			data := pngOf(t, strings.Repeat(fmt.Sprintf("%02x%02x%02x ", 7*k%256, 11*k%256, i), k%5+1))
			if k%9 == 4 {
				data = data[:30]
			}
			members = append(members, member{fmt.Sprintf("%04d.png", k), data})
			want = append(want, fmt.Sprintf("%d %04d", i, k))
		}
		names = append(names, tarOf(t, fmt.Sprintf("in-%d.tar", i), members...))
	}
	text := ""
	for _, jobs := range []int{1, 2, 16} {
		sum, each := stats(t, names, &shard.StatsOptions{Options: shard.Options{Jobs: jobs}})
		var got []string
		for _, s := range each {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(s.Shard), "in-"), ".tar")+" "+string(s.Key))
		}
		if !slices.Equal(got, want) {
			t.Errorf("jobs %d: another order of images", jobs)
		}
		if text == "" {
			text = summaryText(sum)
		}
		if got := summaryText(sum); got != text {
			t.Errorf("jobs %d: %s, with one job %s", jobs, got, text)
		}
	}
}

// TestUnreadableImagesAreCounted puts images of several faults between good
// ones.
func TestUnreadableImagesAreCounted(t *testing.T) {
	good := pngOf(t, "102030 102030")
	in := tarOf(t, "in.tar", member{"0.png", good}, member{"1.png", good[:30]}, member{"2.jpg", []byte("text")}, member{"3.png", pngOf(t, "000000 000000 000000")},
		member{"4.png", nil}, member{"5.png", good})
	o := &shard.StatsOptions{MaxErrors: 2, Options: shard.Options{Read: reader.Options{Limits: &format.Limits{Pixels: 2}}}}
	sum, each := stats(t, []string{in}, o)
	if want := map[string]int64{"truncated": 2, "wrong-format": 1, "limit": 1}; !cmp.Equal(sum.Unreadable, want) || sum.Images != 6 || sum.Width.N != 2 || len(sum.Errors) != 2 {
		t.Errorf("%d images, %d readable, unreadable %v, want %v; %d errors", sum.Images, sum.Width.N, sum.Unreadable, want, len(sum.Errors))
	}
	if e := format.AsError(sum.Errors[0]); e.Shard != in || e.Key != "1" || e.Field != "png" || e.Record != 1 || e.Offset != 1024 {
		t.Errorf("the fault is at %v", e.Location)
	}
	for i, width := range []int{2, 0, 0, 3, 0, 2} { // what the header says, even where the rest is unreadable
		if each[i].Header.Width != width || (each[i].Err != nil) != (each[i].Mean == [3]float64{}) {
			t.Errorf("image %d: %+v", i, each[i])
		}
	}
}

// TestFaultsOfShards reads a sound shard, a cut one, none, and a sound one.
func TestFaultsOfShards(t *testing.T) {
	good := tarOf(t, "good.tar", member{"0.png", pngOf(t, "102030")})
	names := []string{good, fixtures + "cases/container/b2_cut_in_data.tar", filepath.Join(t.TempDir(), "none.tar"), good}
	for _, tt := range []struct {
		on             format.OnError
		shards, failed int
		images, lost   int64
		last           error
	}{
		{format.Stop, 1, 1, 2, 0, format.ErrTruncated}, // the sample before the cut is read
		{format.Resync, 3, 1, 3, 1, format.ErrNotFound},
	} {
		sum, _ := stats(t, names, &shard.StatsOptions{Options: shard.Options{Read: reader.Options{OnError: tt.on}}})
		if sum.Shards != tt.shards || len(sum.Failed) != tt.failed || sum.Images != tt.images || sum.Lost != tt.lost || !errors.Is(sum.Failed[0], tt.last) {
			t.Errorf("%v: %d shards, %d images, %d lost, failed %v", tt.on, sum.Shards, sum.Images, sum.Lost, sum.Failed)
		}
	}
}

// slowDecoder says that every image has a number of pixels, and watches how many
// are decoded at once.
type slowDecoder struct {
	pixels   int
	mu       *sync.Mutex
	in, most *int
}

func (d slowDecoder) Header([]byte) (augment.Header, error) {
	return augment.Header{Encoding: "slow", Width: d.pixels, Height: 1, Channels: 3}, nil
}

func (d slowDecoder) Decode(*augment.Pixels, []byte, image.Rectangle) error {
	d.mu.Lock()
	*d.in++
	*d.most = max(*d.most, *d.in)
	d.mu.Unlock()
	runtime.Gosched()
	d.mu.Lock()
	*d.in--
	d.mu.Unlock()
	return format.Errorf(format.ErrUnsupported, format.Nowhere, "slow")
}

// TestLargeImagesTakeTurns lets two images of six tenths of the limit not be
// decoded at once, and larger ones neither.
func TestLargeImagesTakeTurns(t *testing.T) {
	var members []member
	for i := range 50 {
		members = append(members, member{fmt.Sprintf("%d.png", i), []byte("x")})
	}
	in := tarOf(t, "in.tar", members...)
	for _, pixels := range []int{60, 100, 1000} {
		var mu sync.Mutex
		var now, most int
		sum, _ := stats(t, []string{in}, &shard.StatsOptions{
			Options: shard.Options{Jobs: 8, Read: reader.Options{Limits: &format.Limits{Pixels: 100}}},
			Decoder: func(*format.Limits) augment.Decoder {
				return slowDecoder{pixels: pixels, mu: &mu, in: &now, most: &most}
			},
		})
		if most != 1 || sum.Unreadable["unsupported"] != 50 {
			t.Errorf("%d pixels: %d at once, want 1; %v", pixels, most, sum.Unreadable)
		}
	}
}

// TestStatsEndWithContextAndConsumer ends runs from both sides.
func TestStatsEndWithContextAndConsumer(t *testing.T) {
	names := []string{fixtures + "photos/photos-000000.tar", fixtures + "photos/photos-000001.tfrecord"}
	boom := errors.New("boom")
	if _, err := shard.Stats(t.Context(), names, nil, func(*shard.ImageStats) error { return boom }); err != boom {
		t.Errorf("%v, want boom", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := shard.Stats(ctx, names, nil, func(*shard.ImageStats) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancellation", err)
	}
	sum, err := shard.Stats(t.Context(), names, &shard.StatsOptions{Limit: 3}, nil)
	if err != nil || sum.Samples != 6 || sum.Images != 6 || sum.Shards != 2 {
		t.Errorf("limit 3: %d samples, %d images of %d shards, %v", sum.Samples, sum.Images, sum.Shards, err)
	}
}

// TestInspectReadsHeadersOfImages looks at fields whose images begin with much
// else, and at a tar that cannot be read at offsets.
func TestInspectReadsHeadersOfImages(t *testing.T) {
	px := pngOf(t, "102030 102030 102030")
	late := []byte("\xff\xd8")
	for range 3 { // three segments of 65,533 bytes of metadata, then a frame of 640x480
		late = append(append(late, "\xff\xed\xff\xff"...), make([]byte, 65533)...)
	}
	late = append(late, "\xff\xc0\x00\x11\x08\x01\xe0\x02\x80\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"...)
	late = append(late, "\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00"...) // the scan
	late = append(late, make([]byte, 10000)...)
	in := tarOf(t, "in.tar", member{"0.jpg", late}, member{"0.odd", px}, member{"0.txt", []byte("text")}, member{"1.jpg", px}, member{"1.odd", []byte("none")},
		member{"2.jpg", []byte("\xff\xd8\xff")})
	gz := filepath.Join(t.TempDir(), "in.tar.gz")
	convert(t, []string{in}, gz, nil)
	for name, want := range map[string]string{
		in: "jpg 3 map[truncated:1] map[jpeg:1 png:1] 3 640 1 480, odd 2 map[wrong-format:1] map[png:1] 3 3 1 1, txt none",
		gz: "jpg none, odd none, txt none",
	} {
		var got []string
		err := shard.Inspect(t.Context(), []string{name}, nil, func(i *shard.Inspection) error {
			for _, f := range i.Fields {
				text := f.Name + " none"
				if c := f.Images; c != nil {
					text = fmt.Sprintf("%s %d %v %v %d %d %d %d", f.Name, c.Images, c.Unreadable, c.Encodings, c.Width.Min, c.Width.Max, c.Height.Min, c.Height.Max)
				}
				got = append(got, text)
			}
			return errors.Join(i.Errors...)
		})
		if text := strings.Join(got, ", "); err != nil || text != want {
			t.Errorf("%s: %s, %v; want %s", name, text, err, want)
		}
	}
}

// TestImagesOfOneShardAreDecodedTogether waits in each decoding for another one:
// without, nothing in the bubble could go on, and that is an error.
func TestImagesOfOneShardAreDecodedTogether(t *testing.T) {
	px := pngOf(t, "102030")
	in := tarOf(t, "in.tar", member{"0.png", px}, member{"1.png", px}, member{"2.png", px}, member{"3.png", px})
	synctest.Test(t, func(t *testing.T) {
		meet := make(chan struct{})
		o := &shard.StatsOptions{Options: shard.Options{Jobs: 2}, Decoder: func(limits *format.Limits) augment.Decoder {
			return meeting{augment.Standard(limits), meet}
		}}
		if sum, err := shard.Stats(t.Context(), []string{in}, o, nil); err != nil || sum.Images != 4 || len(sum.Unreadable) > 0 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// meeting decodes two images at a time, never one.
type meeting struct {
	augment.Decoder
	meet chan struct{}
}

func (m meeting) Decode(px *augment.Pixels, data []byte, r image.Rectangle) error {
	select {
	case m.meet <- struct{}{}:
	case <-m.meet:
	}
	return m.Decoder.Decode(px, data, r)
}

// TestInspectFailsWhereReadingDoes lets the shard fail at each opening of it and
// after more and more bytes: that is a fault of the shard, never one of an image.
func TestInspectFailsWhereReadingDoes(t *testing.T) {
	px := pngOf(t, "102030")
	in := tarOf(t, "in.tar", member{"0.jpg", px}, member{"0.odd", px}, member{"1.jpg", px}, member{"1.odd", px})
	fault := format.Errorf(format.ErrIO, format.Nowhere, "broken")
	for op, step := range map[faultstore.Op]int64{faultstore.Open: 1, faultstore.Read: 37} {
		for after := int64(0); ; after += step {
			var got *shard.Inspection
			o := &shard.InspectOptions{Options: shard.Options{Store: faultstore.New(new(store.Local), faultstore.Fault{Op: op, After: after, Err: fault})}}
			if err := shard.Inspect(t.Context(), []string{in}, o, func(i *shard.Inspection) error { got = i; return nil }); err != nil {
				t.Fatal(err)
			}
			if len(got.Errors) == 0 {
				if after < 2*step || len(got.Fields) != 2 || got.Fields[1].Images.Images != 2 {
					t.Errorf("no fault after %d, and %+v", after, got)
				}
				break
			}
			if e := format.AsError(got.Errors[0]); len(got.Errors) != 1 || !errors.Is(e, format.ErrIO) || e.Shard != in {
				t.Errorf("fault %d after %d: %v", op, after, got.Errors)
			}
			for _, f := range got.Fields {
				if f.Images != nil && len(f.Images.Unreadable) > 0 {
					t.Errorf("fault %d after %d: unreadable images in %s: %v", op, after, f.Name, f.Images.Unreadable)
				}
			}
		}
	}
}

// TestInspectOfACutShard tells of the cut once.
func TestInspectOfACutShard(t *testing.T) {
	px := pngOf(t, "102030")
	whole, err := os.ReadFile(tarOf(t, "in.tar", member{"0.jpg", px}, member{"1.jpg", px}))
	if err != nil {
		t.Fatal(err)
	}
	// A member is a header of 512 bytes and its payload; the second one begins at 1024.
	cut := filepath.Join(t.TempDir(), "cut.tar")
	if err := os.WriteFile(cut, whole[:1024+512+20], 0o600); err != nil {
		t.Fatal(err)
	}
	err = shard.Inspect(t.Context(), []string{cut}, nil, func(i *shard.Inspection) error {
		if i.ErrorsTotal != 1 || !errors.Is(i.Errors[0], format.ErrTruncated) || len(i.Fields[0].Images.Unreadable) > 0 {
			t.Errorf("%v, %+v", i.Errors, i.Fields)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsNotWantedIsNotDecoded ends a run in its first image; others wait for
// room then.
func TestWhatIsNotWantedIsNotDecoded(t *testing.T) {
	var members []member
	for i := range 50 {
		members = append(members, member{fmt.Sprintf("%d.png", i), []byte("x")})
	}
	in := tarOf(t, "in.tar", members...)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	decoded := 0
	sum, err := shard.Stats(ctx, []string{in}, &shard.StatsOptions{
		Options: shard.Options{Jobs: 8, Read: reader.Options{Limits: &format.Limits{Pixels: 100}}},
		Decoder: func(*format.Limits) augment.Decoder {
			return endingDecoder{slowDecoder{pixels: 100}, func() {
				mu.Lock()
				defer mu.Unlock()
				decoded++
				cancel()
			}}
		},
	}, func(s *shard.ImageStats) error { return fmt.Errorf("image %d was passed on: %w", s.Index, s.Err) })
	if err != context.Canceled || decoded != 1 || sum.Images != 0 {
		t.Errorf("%v, %d decoded, %d counted", err, decoded, sum.Images)
	}
}

// endingDecoder calls a function in place of decoding.
type endingDecoder struct {
	slowDecoder
	end func()
}

func (d endingDecoder) Decode(*augment.Pixels, []byte, image.Rectangle) error {
	d.end()
	return nil
}

// TestManyJobsCostNothing asks for more jobs than there is memory for.
func TestManyJobsCostNothing(t *testing.T) {
	in := tarOf(t, "in.tar", member{"0.png", pngOf(t, "102030")})
	many := shard.Options{Jobs: math.MaxInt}
	if sum, _ := stats(t, []string{in}, &shard.StatsOptions{Options: many}); sum.Images != 1 {
		t.Errorf("%d images", sum.Images)
	}
	x, err := shard.Extract(t.Context(), []string{in}, t.TempDir(), &shard.ExtractOptions{Options: many, Images: shard.PNGImages})
	if err != nil || x.Files != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	if err := shard.Verify(t.Context(), []string{in}, &shard.VerifyOptions{Options: many}, func(*shard.Verification) error { return nil }); err != nil {
		t.Error(err)
	}
}

// chunk is a chunk of a PNG.
func chunk(kind string, body []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), kind...)
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// TestInspectReadsUpToPixels looks for the transparency of a PNG behind more
// than is read at first, and at an image that is not looked for any further.
func TestInspectReadsUpToPixels(t *testing.T) {
	px := pngOf(t, "102030")
	const header = 8 + 12 + 13 // of a PNG: its magic, and IHDR
	late := slices.Concat(px[:header], chunk("tEXt", make([]byte, 100_000)), chunk("tRNS", make([]byte, 6)), px[header:])
	far := []byte("\xff\xd8")
	for range 257 { // of 65,537 bytes: 16 MiB and more
		far = append(append(far, "\xff\xed\xff\xff"...), make([]byte, 65533)...)
	}
	far = append(far, "\xff\xc0\x00\x11\x08\x01\xe0\x02\x80\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"...)
	far = append(far, "\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00"...)
	in := tarOf(t, "in.tar", member{"0.png", px}, member{"0.jpg", far}, member{"1.png", late}, member{"2.png", late[:header+20]})
	err := shard.Inspect(t.Context(), []string{in}, nil, func(i *shard.Inspection) error {
		c := i.Fields[0].Images
		if got, want := fmt.Sprint(c.Images, c.Channels, c.Unreadable, c.NotLookedAt), "3 map[3:1 4:1] map[truncated:1] 0"; got != want {
			t.Errorf("png: %s, want %s", got, want)
		}
		c = i.Fields[1].Images
		if got, want := fmt.Sprint(c.Images, c.Channels, c.Unreadable, c.NotLookedAt), "1 map[] map[] 1"; got != want {
			t.Errorf("jpg: %s, want %s", got, want)
		}
		return errors.Join(i.Errors...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExtractTakesNamesAsTheyAre extracts fields whose names would be several
// alternatives, and features that are named as an image and are none.
func TestExtractTakesNamesAsTheyAre(t *testing.T) {
	px := pngOf(t, "102030")
	example := func(add func(*tfexample.Builder)) []byte {
		var b tfexample.Builder
		b.AddBytes("__key__", []byte("k"))
		add(&b)
		return tfrecord.AppendFrame(nil, b.AppendTo(nil))
	}
	both := tarOf(t, "both.tar", member{"k.jpg", px})
	for _, tt := range []struct {
		in   string
		read reader.Options
		want string
	}{
		{tarOf(t, "in.tar", member{"k.a;b.jpg", px}), reader.Options{}, "k.a;b.png"},
		{tarOf(t, "in.tar", member{"k.a", px[:0]}, member{"k.a;b.jpg", px}), reader.Options{}, "k.a k.a;b.png"},
		{tarOf(t, "in.tar", member{"k.a;b", px[:0]}, member{"k.jpg", px}), reader.Options{}, "k.a;b k.png"},
		{fileOf(t, "in.tfrecord", example(func(b *tfexample.Builder) {
			b.AddBytes("a", []byte("text"))
			b.AddBytes("a;b", px)
		})), reader.Options{}, "k.a k.a;b.png"},
		{fileOf(t, "in.tfrecord", example(func(b *tfexample.Builder) {
			b.AddInt64("jpg", 1, 2)
			b.AddBytes("image/encoded", px, px)
			b.AddBytes("png", px)
		})), reader.Options{}, "k.image%2Fencoded.bytes_list.json k.jpg.int64.json k.png"},
		{tarOf(t, "in.tar", member{"k.jpg.none", nil}, member{"k.cls", []byte("1")}), reader.Options{}, "k.cls k.jpg.none"},
		{both, reader.Options{Fields: []string{"jpg", "png"}, OnMissing: format.MissingFill}, "k.png"},
	} {
		if runtime.GOOS == "windows" && strings.Contains(tt.want, ";") {
			continue
		}
		dir := t.TempDir()
		_, err := shard.Extract(t.Context(), []string{tt.in}, dir, &shard.ExtractOptions{Images: shard.PNGImages, Options: shard.Options{Read: tt.read}})
		if got := strings.Join(files(t, dir), " "); err != nil || got != tt.want {
			t.Errorf("%s, %v; want %s", got, err, tt.want)
		}
	}
}

// TestExtractImagesAsPNG extracts pictures and reads them with image/png.
func TestExtractImagesAsPNG(t *testing.T) {
	var gray bytes.Buffer
	if err := png.Encode(&gray, &image.Gray{Pix: []byte{9, 200}, Stride: 1, Rect: image.Rect(0, 0, 1, 2)}); err != nil {
		t.Fatal(err)
	}
	two := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	copy(two.Pix, []byte{1, 2, 3, 128, 4, 5, 6, 255}) // alpha is dropped, not blended
	var alpha bytes.Buffer
	if err := png.Encode(&alpha, two); err != nil {
		t.Fatal(err)
	}
	px := pngOf(t, "102030 405060/708090 a0b0c0")
	in := tarOf(t, "in.tar", member{"a/0.JPG", px}, member{"a/0.seg.png", gray.Bytes()}, member{"a/0.odd", alpha.Bytes()}, member{"a/0.cls", []byte("7")})
	out := filepath.Join(t.TempDir(), "out")
	x, err := shard.Extract(t.Context(), []string{in}, out, &shard.ExtractOptions{Images: shard.PNGImages})
	if err != nil || x.Files != 4 || x.Samples != 1 {
		t.Fatalf("%+v, %v", x, err)
	}
	for name, want := range map[string]string{
		"a/0.png":     "2x2 true [16 32 48 64 80 96 112 128 144 160 176 192]",
		"a/0.seg.png": "1x2 true [9 9 9 200 200 200]",
		"a/0.odd.png": "2x1 true [1 2 3 4 5 6]",
	} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
			continue
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var rgb []byte
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				rgb = append(rgb, c.R, c.G, c.B)
			}
		}
		// In the header of a PNG, bytes 24 and 25 are the depth and the color type: 8 bits, RGB.
		if got := fmt.Sprintf("%dx%d %v %v", img.Bounds().Dx(), img.Bounds().Dy(), data[24] == 8 && data[25] == 2, rgb); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if cls, err := os.ReadFile(filepath.Join(out, "a/0.cls")); err != nil || string(cls) != "7" {
		t.Errorf("cls: %q, %v", cls, err)
	}
}

// TestExtractOfUnreadableImages leaves out samples only where that was asked
// for.
func TestExtractOfUnreadableImages(t *testing.T) {
	px := pngOf(t, "102030")
	in := tarOf(t, "in.tar", member{"0.png", px}, member{"0.cls", []byte("0")}, member{"1.cls", []byte("1")}, member{"1.png", px[:30]}, member{"2.png", px}, member{"2.cls", []byte("2")})
	extract := func(name string, on format.OnError) (*shard.Extraction, []string, error) {
		dir := t.TempDir()
		x, err := shard.Extract(t.Context(), []string{name}, dir, &shard.ExtractOptions{Images: shard.PNGImages, Options: shard.Options{Read: reader.Options{OnError: on}}})
		return x, files(t, dir), err
	}
	_, left, err := extract(in, format.Stop)
	if e := format.AsError(err); !errors.Is(err, format.ErrTruncated) || e.Key != "1" || e.Field != "png" || e.Record != 1 || len(left) > 0 {
		t.Errorf("%v, and left %v", err, left)
	}
	x, left, err := extract(in, format.Skip)
	if err != nil || x.Samples != 2 || x.Lost != 1 || !errors.Is(x.Losses[0].Err, format.ErrTruncated) || x.Skipped["truncated"] != 1 ||
		!slices.Equal(left, []string{"0.cls", "0.png", "2.cls", "2.png"}) {
		t.Errorf("%+v, %v, %v", x, left, err)
	}
	two := tarOf(t, "two.tar", member{"0.png", px}, member{"0.jpg", px})
	if _, left, err := extract(two, format.Skip); !errors.Is(err, format.ErrDuplicate) || len(left) > 0 {
		t.Errorf("two images under one name: %v, and left %v", err, left)
	}
}

// TestExtractOfImagesDoesNotDependOnJobs extracts samples of which every fifth
// cannot be decoded, all of them and the first few.
func TestExtractOfImagesDoesNotDependOnJobs(t *testing.T) {
	var members []member
	for i := range 60 {
		px := pngOf(t, fmt.Sprintf("%06x %06x", 1000*i, i))
		if i%5 == 3 {
			px = px[:30]
		}
		members = append(members, member{fmt.Sprintf("%02d.png", i), px}, member{fmt.Sprintf("%02d.cls", i), []byte{byte(i)}})
	}
	one, two := tarOf(t, "one.tar", members[:70]...), tarOf(t, "two.tar", members[70:]...)
	for _, limit := range []int64{0, 4, 30} {
		var want *shard.Extraction
		var left []string
		for _, jobs := range []int{1, 2, 7} {
			dir := t.TempDir()
			var told int64
			x, err := shard.Extract(t.Context(), []string{one, two}, dir, &shard.ExtractOptions{
				Images: shard.PNGImages, Limit: limit,
				Options: shard.Options{Jobs: jobs, Read: reader.Options{OnError: format.Skip, OnLoss: func(format.Loss) { told++ }}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if told != x.Lost || limit == 0 && (x.Samples != 48 || x.Lost != 12) || limit == 4 && (x.Samples != 4 || x.Lost != 1) {
				t.Errorf("limit %d, %d jobs: %d samples, %d lost, %d told", limit, jobs, x.Samples, x.Lost, told)
			}
			for i := range x.Losses {
				x.Losses[i].Err = nil // compared by the rest of it
			}
			if want == nil {
				want, left = x, files(t, dir)
			}
			if diff := cmp.Diff(want, x); diff != "" || !slices.Equal(left, files(t, dir)) {
				t.Errorf("limit %d, %d jobs: %s", limit, jobs, diff)
			}
		}
	}
	if _, err := shard.Extract(t.Context(), []string{one, two}, t.TempDir(), &shard.ExtractOptions{Images: shard.PNGImages, Options: shard.Options{Jobs: 3}}); format.AsError(err).Record != 3 {
		t.Errorf("stops at %v, want the first fault", err)
	}
}
