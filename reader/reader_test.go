package reader_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tarOf writes samples of the fields jpg and cls as a tar.
func tarOf(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tarshard.NewWriter(&b, nil)
	for i := range n {
		s := &format.Sample{Key: fmt.Appendf(nil, "k%04d", i), Fields: []format.Field{
			{Name: "jpg", Data: bytes.Repeat([]byte{byte(i)}, 100)}, {Name: "cls", Data: fmt.Append(nil, i)},
		}}
		if err := w.WriteSample(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// examplesOf writes Examples with a key, an image and a label.
func examplesOf(n int) []byte {
	var b []byte
	for i := range n {
		var e tfexample.Builder
		e.AddBytes(reader.KeyFeature, fmt.Appendf(nil, "k%04d", i))
		e.AddBytes("image", bytes.Repeat([]byte{byte(i)}, 100))
		e.AddInt64("label", int64(i))
		b = tfrecord.AppendFrame(b, e.AppendTo(nil))
	}
	return b
}

func packed(t testing.TB, k compress.Kind, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := compress.NewWriter(&b, k, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOpenShardFindsOutWhatItIs(t *testing.T) {
	tar, records := tarOf(t, 3), examplesOf(3)
	// A length of 0x9c78 or 0x8b1f begins as zlib or gzip does.
	likeZlib := tfrecord.AppendFrame(nil, make([]byte, 0x9c78))
	likeGzip := tfrecord.AppendFrame(nil, make([]byte, 0x8b1f))
	tests := []struct {
		name    string
		data    []byte
		options *reader.Options
		format  reader.Format
		zip     compress.Kind
		samples int
		err     error
		says    string
	}{
		{"a.tar", tar, nil, reader.Tar, compress.None, 3, nil, ""},
		{"a.tfrecord", records, nil, reader.TFRecord, compress.None, 3, nil, ""},
		{"a", tar, nil, reader.Tar, compress.None, 3, nil, ""},
		{"a.bin", records, nil, reader.TFRecord, compress.None, 3, nil, ""},
		{"a.tar.gz", tar, nil, reader.Tar, compress.None, 3, nil, ""},
		{"a.tar", packed(t, compress.Gzip, tar), nil, reader.Tar, compress.Gzip, 3, nil, ""},
		{"a.tfrecord", packed(t, compress.Zlib, records), nil, reader.TFRecord, compress.Zlib, 3, nil, ""},
		{"a", packed(t, compress.Zstd, records), nil, reader.TFRecord, compress.Zstd, 3, nil, ""},
		{"train.tfrecord-00000-of-00010", records, nil, reader.TFRecord, compress.None, 3, nil, ""},
		{"a.tfrecord", likeZlib, nil, reader.TFRecord, compress.None, 1, nil, ""},
		{"a", likeGzip, nil, reader.TFRecord, compress.None, 1, nil, ""},
		{"a.tfrecord", nil, nil, reader.TFRecord, compress.None, 0, nil, ""},
		{"a.tar", nil, nil, reader.Tar, compress.None, 0, nil, ""},
		{"a.tfrecord", tar, &reader.Options{Format: reader.Tar}, reader.Tar, compress.None, 3, nil, ""},
		{"a.tar", records, nil, 0, 0, 0, format.ErrWrongFormat, "not a tar archive: it looks like a TFRecord file"},
		{"a.tfrecord.gz", tar, nil, 0, 0, 0, format.ErrWrongFormat, "not a TFRecord file: it looks like a tar archive"},
		{"a.tar", tar, &reader.Options{Format: reader.TFRecord}, 0, 0, 0, format.ErrWrongFormat, "it looks like a tar archive"},
		{"a", nil, nil, 0, 0, 0, format.ErrWrongFormat, "it is empty"},
		{"a", []byte("version https://git-lfs.github.com/spec/v1\n"), nil, 0, 0, 0, format.ErrWrongFormat, "Git LFS pointer"},
		{"a", []byte("hello"), nil, 0, 0, 0, format.ErrWrongFormat, "neither TFRecord nor tar"},
		{"none.tar", nil, nil, 0, 0, 0, format.ErrNotFound, "none.tar"},
	}
	for _, tt := range tests {
		fsys := fstest.MapFS{}
		if tt.name != "none.tar" {
			fsys[tt.name] = &fstest.MapFile{Data: tt.data}
		}
		s, err := reader.OpenShard(t.Context(), store.FS(fsys), tt.name, tt.options)
		if tt.err != nil {
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v, want %v: %s", tt.name, err, tt.err, tt.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		n := 0
		for _, err := range s.Samples() {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			n++
		}
		if s.Format() != tt.format || s.Compression() != tt.zip || n != tt.samples {
			t.Errorf("%s: %v in %v of %d samples, want %v in %v of %d", tt.name, s.Format(), s.Compression(), n, tt.format, tt.zip, tt.samples)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", tt.name, err)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]reader.Format{
		"a.tar": reader.Tar, "A.TAR": reader.Tar, "a.tar.gz": reader.Tar, "a.tgz": reader.Tar, "a.tar.zst": reader.Tar,
		"a.tfrecord": reader.TFRecord, "a.tfrec": reader.TFRecord, "a.tfrecords.gz": reader.TFRecord,
		"mnist-train.tfrecord-00003-of-00010": reader.TFRecord, "x.tfrecord-00003-of-00010.gz": reader.TFRecord,
		"https://host/a.tar?X-Sig=b.tfrecord": reader.Tar, `c:\data\a.tar`: reader.Tar,
		"a": reader.AutoFormat, "tar": reader.AutoFormat, "a.gz": reader.AutoFormat, "a.tar/b": reader.AutoFormat, "": reader.AutoFormat,
	} {
		if got := reader.FormatOf(name); got != want {
			t.Errorf("FormatOf(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestRecordsAreGuessedByTheFirstSixteen(t *testing.T) {
	example := func(i int) []byte {
		var e tfexample.Builder
		e.AddInt64("label", int64(i))
		return e.AppendTo(nil)
	}
	var sequence tfexample.SequenceBuilder
	sequence.AddList("steps", tfexample.Int64Of(1))
	records := func(payloads ...[]byte) []byte {
		var b []byte
		for _, p := range payloads {
			b = tfrecord.AppendFrame(b, p)
		}
		return b
	}
	repeat := func(p []byte, n int) (all [][]byte) {
		for range n {
			all = append(all, p)
		}
		return all
	}
	raw := []byte("no protocol buffer")
	for _, tt := range []struct {
		name  string
		data  []byte
		want  reader.Type
		fault error
	}{
		{"Examples", records(repeat(example(1), 20)...), reader.Example, nil},
		{"one raw among the first", records(append(repeat(example(1), 15), raw)...), reader.Raw, nil},
		{"one raw behind the first", records(append(repeat(example(1), 16), raw)...), reader.Example, format.ErrCorrupt},
		{"a sequence", records(sequence.AppendTo(nil)), reader.Sequence, nil},
		{"empty records alone", records(nil, nil), reader.Raw, nil},
		{"empty records and an Example", records(nil, example(1)), reader.Example, nil},
		{"none", nil, reader.Raw, nil},
	} {
		s, err := reader.OpenShard(t.Context(), store.FS(fstest.MapFS{"a.tfrecord": {Data: tt.data}}), "a.tfrecord", nil)
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range s.Samples() {
			last = err
		}
		if s.Type() != tt.want || !errors.Is(last, tt.fault) {
			t.Errorf("%s: type %v and %v, want %v and %v", tt.name, s.Type(), last, tt.want, tt.fault)
		}
		s.Close()
	}
}

// sampleText is a sample as a string, for comparison.
func sampleText(s *format.Sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", s.Key)
	for i := range s.Fields {
		fmt.Fprintf(&b, " %s:%d", s.Fields[i].Name, s.Fields[i].Size())
		if s.Fields[i].Offset < 0 {
			b.WriteString("?")
		}
	}
	return b.String()
}

func TestFieldsAreChosen(t *testing.T) {
	fsys := store.FS(fstest.MapFS{"a.tar": {Data: tarOf(t, 2)}, "a.tfrecord": {Data: examplesOf(2)}})
	for _, tt := range []struct {
		name  string
		o     reader.Options
		want  []string
		class string
		skips int64
	}{
		{"a.tar", reader.Options{Fields: []string{"CLS", "png;jpg"}}, []string{"k0000 cls:1 jpg:100", "k0001 cls:1 jpg:100"}, "", 0},
		{"a.tfrecord", reader.Options{Fields: []string{"LABEL", "png;image"}}, []string{"k0000 label:3 image:100", "k0001 label:3 image:100"}, "", 0},
		{"a.tar", reader.Options{Fields: []string{"jpg", "txt"}}, nil, "missing", 0},
		{"a.tfrecord", reader.Options{Fields: []string{"txt"}}, nil, "missing", 0},
		{"a.tar", reader.Options{Fields: []string{"txt"}, OnMissing: format.MissingSkip}, nil, "", 2},
		{"a.tfrecord", reader.Options{Fields: []string{"txt"}, OnMissing: format.MissingSkip}, nil, "", 2},
		{"a.tar", reader.Options{Fields: []string{"txt", "cls"}, OnMissing: format.MissingFill}, []string{"k0000 txt:0? cls:1", "k0001 txt:0? cls:1"}, "", 0},
		{"a.tfrecord", reader.Options{Fields: []string{"txt", "label"}, OnMissing: format.MissingFill}, []string{"k0000 txt:0? label:3", "k0001 txt:0? label:3"}, "", 0},
		{"a.tar", reader.Options{HeadersOnly: true}, []string{"k0000 jpg:100 cls:1", "k0001 jpg:100 cls:1"}, "", 0},
	} {
		s, err := reader.OpenShard(t.Context(), fsys, tt.name, &tt.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		class := ""
		for sample, err := range s.Samples() {
			if err != nil {
				class = format.Class(err)
				if e := format.AsError(err); e.Shard != tt.name || e.Record != 0 || e.Field == "" {
					t.Errorf("%s %v: the error does not say where: %+v", tt.name, tt.o.Fields, e)
				}
				break
			}
			got = append(got, sampleText(sample))
		}
		if !cmp.Equal(got, tt.want) || class != tt.class || s.Skipped()["missing"] != tt.skips {
			t.Errorf("%s %v: %q, %q and %v skipped; want %q, %q and %d", tt.name, tt.o.Fields, got, class, s.Skipped(), tt.want, tt.class, tt.skips)
		}
		s.Close()
	}
}

func TestRandomReadsWhatReadingInOrderGave(t *testing.T) {
	st := store.FS(fstest.MapFS{"a.tar": {Data: tarOf(t, 20)}, "a.tfrecord": {Data: examplesOf(20)}})
	random := reader.NewRandom(t.Context(), nil)
	defer random.Close()
	var places []reader.Place
	var want []string
	for _, name := range []string{"a.tar", "a.tfrecord"} {
		s, err := reader.OpenShard(t.Context(), st, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for sample, err := range s.Samples() {
			if err != nil {
				t.Fatal(err)
			}
			if n := len(places); n > 0 && places[n-1].Name == name {
				places[n-1].End = sample.Offset
			}
			places = append(places, reader.Place{Store: st, Name: name, Format: s.Format(), Type: s.Type(), Offset: sample.Offset, End: s.Size()})
			want = append(want, fmt.Sprint(sampleText(sample), sample.Fields[0].Offset, sample.Fields[0].Data))
		}
		s.Close()
	}
	for i := range places {
		k := (i*7 + 3) % len(places)
		sample, err := random.Sample(places[k])
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(sampleText(sample), sample.Fields[0].Offset, sample.Fields[0].Data); got != want[k] {
			t.Errorf("place %d: %s, want %s", k, got, want[k])
		}
	}
	wrong := places[0]
	wrong.Offset, wrong.End = 512, 1024
	if _, err := random.Sample(wrong); err == nil {
		t.Error("a sample was read in the middle of another")
	}
}

func TestNothingIsAllocatedPerSample(t *testing.T) {
	for name, data := range map[string][]byte{"a.tar": tarOf(t, 4000), "a.tfrecord": examplesOf(4000)} {
		s, err := reader.OpenShard(t.Context(), store.FS(fstest.MapFS{name: {Data: data}}), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 { // until buffers have grown and names are known
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		}
		n := testing.AllocsPerRun(1000, func() {
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a sample", name, n)
		}
		s.Close()
	}
}

// endless is a tar, or records, without an end.
type endless struct {
	unit []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.unit[e.at:])
	e.at = (e.at + n) % len(e.unit)
	return n, nil
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := reader.OpenShard(ctx, &store.Local{Stdin: &endless{unit: examplesOf(10)}}, "-", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := 0; ; i++ {
		if i == 100 {
			cancel()
		}
		_, err := s.Next()
		if errors.Is(err, context.Canceled) {
			break
		}
		if err == io.EOF || err != nil {
			t.Fatal(err)
		}
	}
}

func TestFaultsOfCompressedStreamsAreFound(t *testing.T) {
	whole := packed(t, compress.Gzip, tarOf(t, 50))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-8] ^= 1 // the checksum, behind the tar's end marker
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"whole", whole, nil},
		{"checksum", flipped, format.ErrCorrupt},
		{"cut", whole[:len(whole)/2], format.ErrTruncated},
		{"cut in the trailer", whole[:len(whole)-3], format.ErrTruncated},
	} {
		s, err := reader.OpenShard(t.Context(), store.FS(fstest.MapFS{"a.tar.gz": {Data: tt.data}}), "a.tar.gz", nil)
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range s.Samples() {
			last = err
		}
		if !errors.Is(last, tt.want) || tt.want == nil && last != nil {
			t.Errorf("%s: %v, want %v", tt.name, last, tt.want)
		}
		s.Close()
	}
}
