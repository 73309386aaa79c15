package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
)

// TestParserSaysWhatIsNotThere: what no longer is the sample, and where.
func TestParserSaysWhatIsNotThere(t *testing.T) {
	tar, records := tarOf(t, 4), examplesOf(4)
	st := store.FS(fstest.MapFS{"a.tar": {Data: tar}, "a.tfrecord": {Data: records}})
	d := reader.New(st, []string{"a.tar", "a.tfrecord"}, &reader.Options{CacheDir: "-", Fields: []string{"cls;label"}})
	parser := d.NewParser()
	if _, err := parser.Sample(0, 0, 0, nil); !errors.Is(err, format.ErrUsage) {
		t.Errorf("places were not asked for: %v", err)
	}
	for shard, data := range [][]byte{tar, records} {
		p, err := d.Places(t.Context(), shard)
		if err != nil {
			t.Fatal(err)
		}
		off, end := p.At(2)
		good := data[off:end]
		flip := func(at int) []byte {
			b := bytes.Clone(good)
			b[at] ^= 1
			return b
		}
		next, last := p.At(3)
		for _, tt := range []struct {
			what  string
			data  []byte
			class string
		}{
			{"nothing", nil, "stale"},
			{"a part", good[:len(good)-1-599*(1-shard)], "stale"}, // of a tar, not only of its padding
			{"another place", data[off+1 : end+1], "stale"},
			{"two samples", data[off:last], "stale"},
			{"the next and zeros", append(bytes.Clone(data[next:last]), make([]byte, 512)...), map[int]string{0: "", 1: "stale"}[shard]},
			{"zeros", make([]byte, len(good)), "stale"},
			{"a bit of the header", flip(3), map[int]string{0: "corrupt", 1: "stale"}[shard]},
			{"a bit of the payload", flip(30 + 490*(1-shard)), map[int]string{0: "", 1: "corrupt"}[shard]},
			{"itself", good, ""},
		} {
			s, err := parser.Sample(shard, 2, off, tt.data)
			if format.Class(err) != tt.class {
				t.Errorf("%s, %s: %v, want %q", d.Shards()[shard], tt.what, err, tt.class)
			}
			if err == nil && (s.Index != 2 || s.Offset != off || len(s.Fields) != 1) {
				t.Errorf("%s, %s: %+v", d.Shards()[shard], tt.what, s)
			}
			if e := format.AsError(err); err != nil && (e.Shard != d.Shards()[shard] || e.Offset < off || e.Offset > off+int64(len(tt.data)) || e.Record != 2 && tt.class != "corrupt") {
				t.Errorf("%s, %s: at %+v", d.Shards()[shard], tt.what, e.Location)
			}
		}
	}
}

// TestLinksAreReadAllTheSame: by Sample and Run, which see the whole shard.
func TestLinksAreReadAllTheSame(t *testing.T) {
	ran := 0
	for _, base := range []string{"gnutar-links-gnu", "gnutar-links-posix", "gnutar-links-ustar", "gnutar-links-v7"} {
		name := fixtures + "tars/" + base + ".tar"
		d := reader.New(&store.Local{}, []string{name}, &reader.Options{CacheDir: "-"})
		want := inOrder(t, &store.Local{}, name, nil)
		p, err := d.Places(t.Context(), 0)
		if err != nil || p.Len() != len(want) {
			t.Fatalf("%s: %v, %v", base, p, err)
		}
		linked := 0
		parser := d.NewParser()
		for i := range want {
			if s, err := d.Sample(t.Context(), 0, int64(i)); err != nil || whole(s) != want[i] {
				t.Errorf("%s, sample %d: %v, want %s", base, i, err, want[i])
			}
			for to := i; to <= len(want); to++ {
				if got, err := runOf(t, d, int64(i), int64(to)); err != nil || strings.Join(got, "\n") != strings.Join(want[i:to], "\n") {
					t.Errorf("%s, %d to %d: %q, %v", base, i, to, got, err)
				}
			}
			off, end := p.At(i)
			data := make([]byte, end-off)
			o, err := (&store.Local{}).Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.ReadAt(t.Context(), data, off); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			o.Close()
			s, err := parser.Sample(0, int64(i), off, data)
			switch {
			case errors.Is(err, format.ErrUnsupported):
				linked++
			case err != nil || whole(s) != want[i]:
				t.Errorf("%s, parsed %d: %v", base, i, err)
			}
		}
		if linked == 0 {
			t.Errorf("%s has no links", base)
		}
		ran++
	}
	if ran != 4 {
		t.Errorf("%d shards", ran)
	}
}

// TestFillMakesOfRecordsWhatParsingMakes: whatever the type, and with the same
// errors.
func TestFillMakesOfRecordsWhatParsingMakes(t *testing.T) {
	var sequence tfexample.SequenceBuilder
	raw := append(tfrecord.AppendFrame(nil, []byte("no protocol buffer")), tfrecord.AppendFrame(nil, nil)...)
	late := append(examplesOf(20), raw...)
	files := fstest.MapFS{
		"e.tfrecord": {Data: examplesOf(20)}, "s.tfrecord": {Data: tfrecord.AppendFrame(nil, sequence.AppendTo(nil))},
		"r.tfrecord": {Data: raw}, "late.tfrecord": {Data: late}, "t.tar": {Data: tarOf(t, 3)},
	}
	names := []string{"e.tfrecord", "s.tfrecord", "r.tfrecord", "late.tfrecord", "t.tar"}
	for _, fields := range [][]string{nil, {"label;record;cls"}, {"image"}} {
		want := readEach(t, reader.New(store.FS(files), names, &reader.Options{CacheDir: "-", Fields: fields}), nil)
		d := reader.New(store.FS(files), names, &reader.Options{CacheDir: "-", Fields: fields, Unparsed: true})
		parser := d.NewParser()
		fill := func(s *format.Sample) error {
			if s.Record == nil {
				return nil
			}
			if len(s.Fields) > 0 || s.Key != nil {
				t.Errorf("%+v is parsed", s)
			}
			return parser.Fill(s)
		}
		got := readEach(t, d, fill)
		if len(want) != 20+1+2+22+3 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%v: got\n%s\nwant\n%s", fields, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	d := reader.New(store.FS(files), names, &reader.Options{CacheDir: "-", Unparsed: true})
	for name, class := range map[string]string{"none.tfrecord": "usage", "e.tfrecord": "usage"} { // nobody has looked into e
		if err := d.NewParser().Fill(&format.Sample{Shard: name}); format.Class(err) != class {
			t.Errorf("%s: %v, want %s", name, err, class)
		}
	}
	s, err := d.Run(t.Context(), 1, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil || s.Type() != reader.Sequence {
		t.Errorf("the type is %v, %v", s.Type(), err)
	}
	s.Close()
}

func readEach(t *testing.T, d *reader.Dataset, fill func(*format.Sample) error) (all []string) {
	t.Helper()
	for s, err := range d.Samples(t.Context()) {
		if err == nil && fill != nil {
			s = s.Clone()
			err = fill(s)
		}
		if err != nil {
			all = append(all, fmt.Sprint(format.AsError(err).Location, format.Class(err)))
			continue
		}
		all = append(all, whole(s))
	}
	return all
}

func TestParserAllocatesNothing(t *testing.T) {
	tar, records := tarOf(t, 50), examplesOf(50)
	st := store.FS(fstest.MapFS{"a.tar": {Data: tar}, "a.tfrecord": {Data: records}})
	for _, o := range []reader.Options{{}, {Fields: []string{"cls;label"}}, {Unparsed: true}} {
		o.CacheDir = "-"
		d := reader.New(st, []string{"a.tar", "a.tfrecord"}, &o)
		parser := d.NewParser()
		for shard, data := range [][]byte{tar, records} {
			p, err := d.Places(t.Context(), shard)
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			parse := func() {
				off, end := p.At(i)
				s, err := parser.Sample(shard, int64(i), off, data[off:end])
				if err == nil && o.Unparsed && shard == 1 {
					err = parser.Fill(s)
				}
				if err != nil {
					t.Fatal(err)
				}
				i = (i + 7) % p.Len()
			}
			for range 100 {
				parse()
			}
			if n := testing.AllocsPerRun(200, parse); n != 0 {
				t.Errorf("%s: %v allocations a sample", d.Shards()[shard], n)
			}
		}
	}
}

// BenchmarkParser reads samples that were fetched already.
func BenchmarkParser(b *testing.B) {
	tar, records := tarOf(b, 500), examplesOf(500)
	st := store.FS(fstest.MapFS{"a.tar": {Data: tar}, "a.tfrecord": {Data: records}})
	d := reader.New(st, []string{"a.tar", "a.tfrecord"}, &reader.Options{CacheDir: "-"})
	for shard, data := range [][]byte{tar, records} {
		b.Run(d.Shards()[shard], func(b *testing.B) {
			parser := d.NewParser()
			p, err := d.Places(b.Context(), shard)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % p.Len() {
				off, end := p.At(i)
				if _, err := parser.Sample(shard, int64(i), off, data[off:end]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
