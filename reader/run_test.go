package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/index"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
)

// whole is a sample as a string, with all that it holds.
func whole(s *format.Sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d @%d %q", s.Shard, s.Index, s.Offset, s.Key)
	for _, f := range s.Fields {
		fmt.Fprintf(&b, " %s %v @%d %s", f.Name, f.Kind, f.Offset, hashOf(f.Data))
	}
	fmt.Fprintf(&b, " %s", hashOf(s.Record))
	return b.String()
}

// inOrder reads a shard as a whole, by nothing but a Shard.
func inOrder(t testing.TB, st store.Store, name string, o *reader.Options) []string {
	t.Helper()
	s, err := reader.OpenShard(t.Context(), st, name, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []string
	for sample, err := range s.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, whole(sample))
	}
	return all
}

// drawTar makes a tar shard by the writer, or by hand what it does not write:
// folders between samples and names that need an extension header.
func drawTar(t *rapid.T) []byte {
	var b bytes.Buffer
	w := tarshard.NewWriter(&b, nil)
	n := rapid.IntRange(0, 12).Draw(t, "samples")
	for i := range n {
		key := fmt.Sprintf("d%d/%04d", i%3, i)
		if rapid.IntRange(0, 5).Draw(t, "long") == 0 {
			key = strings.Repeat("long/", 60) + key
		}
		s := &format.Sample{Key: []byte(key)}
		for f := range rapid.IntRange(1, 3).Draw(t, "fields") {
			size := rapid.SampledFrom([]int{0, 1, 511, 512, 513, 3000}).Draw(t, "bytes")
			s.Fields = append(s.Fields, format.Field{Name: []string{"jpg", "cls", "a.json"}[f], Data: bytes.Repeat([]byte{byte(i)}, size)})
		}
		if err := w.WriteSample(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func drawRecords(t *rapid.T) []byte {
	var b []byte
	raw := rapid.Bool().Draw(t, "raw")
	for i := range rapid.IntRange(0, 24).Draw(t, "records") {
		payload := bytes.Repeat([]byte{0xff}, rapid.IntRange(0, 40).Draw(t, "bytes"))
		if !raw {
			var e tfexample.Builder
			e.AddBytes(reader.KeyFeature, fmt.Append(nil, i))
			e.AddInt64("label", slices.Repeat([]int64{int64(i)}, rapid.IntRange(0, 9).Draw(t, "values"))...)
			payload = e.AppendTo(nil)
		}
		b = tfrecord.AppendFrame(b, payload)
	}
	return b
}

// indexOf writes the index of a shard in a dialect.
func indexOf(t testing.TB, name string, data []byte, d index.Dialect) []byte {
	t.Helper()
	in := index.Shard{Name: name, At: bytes.NewReader(data), Size: int64(len(data))}
	var x *index.Index
	var err error
	if d == index.DALI {
		x, err = index.OfTFRecord(in, nil)
	} else {
		x, err = index.OfTar(in, nil)
	}
	var b bytes.Buffer
	if err == nil {
		err = x.Write(&b, d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestEveryWayToASample: runs, single samples and parsed bytes are what reading
// the shard in order gives, whatever it is and whatever tells its places.
func TestEveryWayToASample(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name, data := "a.tar", []byte(nil)
		dialects := []index.Dialect{index.WDS, index.WDS11, index.Energon}
		if rapid.Bool().Draw(r, "tfrecord") {
			name, data = "a.tfrecord", drawRecords(r)
			dialects = []index.Dialect{index.DALI}
		} else {
			data = drawTar(r)
		}
		kind := rapid.SampledFrom([]compress.Kind{compress.None, compress.None, compress.None, compress.Gzip, compress.Zstd}).Draw(r, "compression")
		files := fstest.MapFS{}
		sidecar := kind == compress.None && rapid.Bool().Draw(r, "index")
		if sidecar {
			files[name+".idx"] = &fstest.MapFile{Data: indexOf(t, name, data, rapid.SampledFrom(dialects).Draw(r, "dialect"))}
		}
		if kind != compress.None {
			data = packed(t, kind, data)
		}
		files[name] = &fstest.MapFile{Data: data}
		st := store.FS(files)
		o := &reader.Options{CacheDir: "-", Scan: rapid.SampledFrom([]reader.Scan{reader.ScanAuto, reader.ScanNever, reader.ScanAlways}).Draw(r, "scan")}
		want := inOrder(t, st, name, o)
		d := reader.New(st, []string{name}, o)
		if rapid.Bool().Draw(r, "manifest") {
			m, err := d.Manifest(t.Context())
			if err != nil {
				r.Fatal(err)
			}
			known := sidecar || o.Scan == reader.ScanAlways || o.Scan == reader.ScanAuto && kind == compress.None
			if e := m.Shards[0]; known && e.Samples != int64(len(want)) || !known && e.Samples != format.Unknown || len(m.Warnings) > 0 {
				r.Fatalf("%+v, want %d samples, known %v; %q", e, len(want), known, m.Warnings)
			}
		}
		checkRuns(t, r, d, want)
		checkPlaces(t, r, d, data, want, sidecar || kind == compress.None && o.Scan != reader.ScanNever)
		for i := range want {
			s, err := d.Sample(t.Context(), 0, int64(i))
			if err != nil || whole(s) != want[i] {
				r.Fatalf("sample %d: %v, want %s", i, err, want[i])
			}
		}
		if s, err := d.Sample(t.Context(), 0, int64(len(want))); !errors.Is(err, format.ErrUsage) {
			r.Fatalf("a sample behind the last: %v, %v", s, err)
		}
	})
}

func checkRuns(t *testing.T, r *rapid.T, d *reader.Dataset, want []string) {
	for range 4 {
		from := rapid.IntRange(0, len(want)).Draw(r, "from")
		to := rapid.IntRange(from, len(want)).Draw(r, "to")
		end := int64(to)
		if rapid.IntRange(0, 3).Draw(r, "open") == 0 {
			to, end = len(want), format.Unknown
		}
		got, err := runOf(t, d, int64(from), end)
		if err != nil || !slices.Equal(got, want[from:to]) {
			r.Fatalf("run %d to %d: %v, %s", from, to, err, cmp.Diff(want[from:to], got))
		}
	}
	n := int64(len(want))
	if got, err := runOf(t, d, 0, n+1); !errors.Is(err, format.ErrStale) {
		r.Fatalf("a run beyond the end: %d samples and %v", len(got), err)
	}
}

func runOf(t *testing.T, d *reader.Dataset, from, to int64) (all []string, err error) {
	s, err := d.Run(t.Context(), 0, from, to)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for sample, err := range s.Samples() {
		if err != nil {
			return all, err
		}
		all = append(all, whole(sample))
	}
	if _, err := s.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	return all, nil
}

func checkPlaces(t *testing.T, r *rapid.T, d *reader.Dataset, data []byte, want []string, known bool) {
	p, err := d.Places(t.Context(), 0)
	if !known {
		if !errors.Is(err, format.ErrUnsupported) && d.ReadOptions(0).Scan != reader.ScanAlways {
			r.Fatalf("places: %v", err)
		}
		return
	}
	if err != nil || p.Len() != len(want) {
		r.Fatalf("%v, %d places of %d", err, p.Len(), len(want))
	}
	parser := d.NewParser()
	for i := range want {
		off, end := p.At(i)
		s, err := parser.Sample(0, int64(i), off, data[off:end])
		if err != nil || whole(s) != want[i] {
			r.Fatalf("parsed %d: %v, want %s", i, err, want[i])
		}
	}
}

// TestShardsOfOtherToolsHavePlaces: of all fixtures, by their headers.
func TestShardsOfOtherToolsHavePlaces(t *testing.T) {
	for _, x := range tools(t) {
		if x.class != "" {
			continue
		}
		o := &reader.Options{CacheDir: "-", Scan: reader.ScanAlways}
		if x.holds == reader.Raw {
			o.Type = reader.Raw
		}
		if x.samples == nil {
			o.Format = reader.TFRecord
		}
		d := reader.New(&store.Local{}, []string{fixtures + x.name}, o)
		m, err := d.Manifest(t.Context())
		if err != nil || m.Shards[0].Samples != int64(len(x.samples)) || m.Shards[0].From != "scan" {
			t.Errorf("%s: %+v, %v; want %d samples", x.name, m, err, len(x.samples))
			continue
		}
		if m.Shards[0].Compression != compress.None {
			continue
		}
		for i, want := range x.samples {
			s, err := d.Sample(t.Context(), 0, int64(i))
			if err != nil || x.text(s) != want {
				t.Errorf("%s, sample %d: %v, want %s", x.name, i, err, want)
			}
		}
		if got, err := runOf(t, d, 0, int64(len(x.samples))); err != nil || len(got) != len(x.samples) {
			t.Errorf("%s: a run has %d samples, %v", x.name, len(got), err)
		}
	}
}

// TestIndexesOfOtherTools: of all fixtures, the places that an index tells are
// where the samples are.
func TestIndexesOfOtherTools(t *testing.T) {
	ran := 0
	for _, tt := range []struct{ index, shard string }{
		{"webdataset-000000.v1.2.idx", "webdataset-000000.tar"},
		{"webdataset-000000.v1.1.idx", "webdataset-000000.tar"},
		{"webdataset-000000.tar.idx", "webdataset-000000.tar"},
		{"webdataset-long.v1.2.idx", "webdataset-long.tar"},
		{"webdataset-long.tar.idx", "webdataset-long.tar"},
		{"gnutar-v7.v1.2.idx", "gnutar-v7.tar"},
		{"gnutar-posix.v1.2.idx", "gnutar-posix.tar"},
		{"gnutar-posix.tar.idx", "gnutar-posix.tar"},
		{"gnutar-gnu.tar.idx", "gnutar-gnu.tar"},
		{"gnutar-ustar.v1.1.idx", "gnutar-ustar.tar"},
	} {
		name := fixtures + "tars/" + tt.shard
		want := inOrder(t, &store.Local{}, name, nil)
		d := reader.New(&store.Local{}, []string{name}, &reader.Options{CacheDir: "-", Scan: reader.ScanNever, Index: fixtures + "index/" + tt.index})
		m, err := d.Manifest(t.Context())
		if err != nil || m.Shards[0].Samples != int64(len(want)) || m.Shards[0].From != "sidecar" || m.Shards[0].Format != reader.Tar {
			t.Errorf("%s: %+v, %v; want %d samples", tt.index, m, err, len(want))
			continue
		}
		for i := range want {
			if s, err := d.Sample(t.Context(), 0, int64(i)); err != nil || whole(s) != want[i] {
				t.Errorf("%s, sample %d: %v, want %s", tt.index, i, err, want[i])
			}
		}
		ran++
	}
	if ran != 10 {
		t.Errorf("%d indexes", ran)
	}
}

// faultyRecords has a record whose payload does not hold, number 2, and one that
// is over a limit of 100 bytes, number 4, among six.
func faultyRecords() []byte {
	var b []byte
	for i := range 6 {
		payload := fmt.Appendf(nil, "record %d", i)
		if i == 4 {
			payload = make([]byte, 101)
		}
		b = tfrecord.AppendFrame(b, payload)
		if i == 2 {
			b[len(b)-1] ^= 1
		}
	}
	return b
}

// faultyTar has a sample with a field twice, number 1, and one without cls,
// number 3, among five.
func faultyTar(t testing.TB) []byte {
	var b bytes.Buffer
	w := tarshard.NewWriter(&b, nil)
	for i := range 5 {
		s := &format.Sample{Key: fmt.Appendf(nil, "%d", i), Fields: []format.Field{{Name: "jpg", Data: []byte("x")}, {Name: "cls", Data: fmt.Append(nil, i)}}}
		if i == 1 {
			s.Fields[1].Name = "abc"
		}
		if i == 3 {
			s.Fields[1].Name = "txt"
		}
		if err := w.WriteSample(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The writer refuses a field twice: rename it, and mend the checksum.
	data := b.Bytes()
	at := bytes.Index(data, []byte("1.abc"))
	head := data[at : at+512]
	copy(head, "1.jpg")
	sum := 0
	copy(head[148:156], "        ")
	for _, c := range head {
		sum += int(c)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

// TestErrorsStandInTheirPlaces: whoever goes on ranging gets the sample behind
// a faulty one, and each keeps its number; runs, places and single samples
// agree on them.
func TestErrorsStandInTheirPlaces(t *testing.T) {
	st := store.FS(fstest.MapFS{"a.tfrecord": {Data: faultyRecords()}, "a.tar": {Data: faultyTar(t)}, "a.tar.gz": {Data: packed(t, compress.Gzip, faultyTar(t))}})
	limits := &format.Limits{Record: 100}
	for _, tt := range []struct {
		name string
		o    reader.Options
		want string
	}{
		{"a.tfrecord", reader.Options{Type: reader.Raw, Limits: limits}, "0 1 corrupt/2 3 limit/4 5"},
		{"a.tar", reader.Options{}, "0 duplicate/1 2 3 4"},
		{"a.tar", reader.Options{Fields: []string{"cls"}}, "0 duplicate/1 2 missing/3 4"},
		{"a.tar", reader.Options{Fields: []string{"cls"}, OnDuplicate: format.KeepFirst}, "0 missing/1 2 missing/3 4"},
		{"a.tar", reader.Options{Fields: []string{"cls"}, HeadersOnly: true}, "0 duplicate/1 2 missing/3 4"},
		{"a.tar.gz", reader.Options{Fields: []string{"cls"}}, "0 duplicate/1 2 missing/3 4"},
	} {
		tt.o.CacheDir = "-"
		d := reader.New(st, []string{tt.name, tt.name}, &tt.o)
		var got []string
		say := func(s *format.Sample, err error) string {
			if err != nil {
				e := format.AsError(err)
				if e == nil || e.Shard != tt.name {
					return err.Error()
				}
				return fmt.Sprintf("%s/%d", format.Class(err), e.Record)
			}
			return fmt.Sprint(s.Index)
		}
		for s, err := range d.Samples(t.Context()) {
			got = append(got, say(s, err))
		}
		if s := strings.Join(got, " "); s != tt.want+" "+tt.want {
			t.Errorf("%s %v: %s, want %s twice", tt.name, tt.o.Fields, s, tt.want)
		}
		want := strings.Fields(tt.want)
		compressed := strings.HasSuffix(tt.name, ".gz")
		m, err := d.Manifest(t.Context())
		if err != nil || !compressed && m.Samples() != int64(2*len(want)) {
			t.Errorf("%s: %+v, %v", tt.name, m, err)
		}
		for from := range want {
			for to := from; to <= len(want); to++ {
				run, err := d.Run(t.Context(), 1, int64(from), int64(to))
				if err != nil {
					t.Fatal(err)
				}
				got = nil
				for {
					s, err := run.Next()
					if err == io.EOF {
						break
					}
					got = append(got, say(s, err))
					if err != nil && !run.Resume() {
						t.Errorf("%s: no way behind %v", tt.name, err)
						break
					}
				}
				if !slices.Equal(got, want[from:to]) {
					t.Errorf("%s, %d to %d: %q, want %q", tt.name, from, to, got, want[from:to])
				}
				run.Close()
			}
			if tt.o.HeadersOnly {
				continue
			}
			if s, err := d.Sample(t.Context(), 0, int64(from)); say(s, err) != want[from] {
				t.Errorf("%s: sample %d is %s, want %s", tt.name, from, say(s, err), want[from])
			}
		}
	}
}

// TestRunsEndAtDamage: an error that leaves nothing behind is given again, and
// cannot be left behind.
func TestRunsEndAtDamage(t *testing.T) {
	data := examplesOf(5)
	frame := len(tfrecord.AppendFrame(nil, examplesOf(1)[12:len(examplesOf(1))-4]))
	data[2*frame] ^= 1 // the length of record 2
	d := reader.New(store.FS(fstest.MapFS{"a.tfrecord": {Data: data}}), []string{"a.tfrecord"}, &reader.Options{CacheDir: "-"})
	s, err := d.Run(t.Context(), 0, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		_, err := s.Next()
		if !errors.Is(err, format.ErrCorrupt) || format.AsError(err).Record != 2 || s.Resume() {
			t.Errorf("damage: %v", err)
		}
	}
}

// TestFaultyShardsAreCounted: a manifest fails with the fault, or counts what
// stands before it.
func TestFaultyShardsAreCounted(t *testing.T) {
	tar := tarOf(t, 5)
	bad := bytes.Clone(tar)
	bad[3*4*512/2*2] ^= 1 // a header of the fourth sample
	late := tarOf(t, 2)
	late = append(late[:2*4*512:2*4*512], append(tarOf(t, 1)[:4*512], tarOf(t, 3)[2*4*512:]...)...) // k0000 comes back
	records := examplesOf(4)
	st := store.FS(fstest.MapFS{
		"good.tar": {Data: tar}, "bad.tar": {Data: bad}, "late.tar": {Data: late},
		"cut.tfrecord": {Data: records[:len(records)-1]}, "none.tar": {Data: []byte("<html>")},
	})
	for _, tt := range []struct {
		name, class string
		samples     int64
		help, left  string
	}{
		{"bad.tar", "corrupt", 3, "shardtool repair", "only the 3 samples before it are read"},
		{"late.tar", "duplicate", 2, "OnError: Resync", "only the 2 samples before it are read"},
		{"cut.tfrecord", "truncated", 3, "reader.Options.KeepFaulty", "only the 3 samples before it are read"},
		{"none.tar", "wrong-format", 0, "reader.Options.KeepFaulty", "none of its samples is read"},
	} {
		names := []string{"good.tar", tt.name}
		_, err := reader.New(st, names, &reader.Options{CacheDir: "-"}).Manifest(t.Context())
		if e := format.AsError(err); format.Class(err) != tt.class || e == nil || e.Shard != tt.name || !strings.Contains(e.Detail, tt.help) {
			t.Errorf("%s: %v, want %s and %s", tt.name, err, tt.class, tt.help)
		}
		var log bytes.Buffer
		d := reader.New(st, names, &reader.Options{CacheDir: "-", KeepFaulty: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		m, err := d.Manifest(t.Context())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(m.Warnings) != 1 || !strings.HasPrefix(m.Warnings[0], m.Shards[1].Fault.Error()) || !strings.HasSuffix(m.Warnings[0], tt.left) || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("%s: warnings %q, log %s", tt.name, m.Warnings, &log)
		}
		if e := m.Shards[1]; e.Samples != tt.samples || format.Class(e.Fault) != tt.class || m.Shards[0].Fault != nil {
			t.Errorf("%s: %+v, want %d samples and %s", tt.name, e, tt.samples, tt.class)
		}
		if tt.samples == 0 {
			continue
		}
		run, err := d.Run(t.Context(), 1, 1, tt.samples)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		n := int64(1)
		for s, err := range run.Samples() {
			if err != nil || s.Index != n {
				t.Errorf("%s: %v", tt.name, err)
			}
			n++
		}
		if run.Close(); n != tt.samples {
			t.Errorf("%s: the run ends before %d", tt.name, n)
		}
	}
}

// TestCountsAreThoseOfTheOptions: what is left out is not counted, and numbers
// are of what is delivered.
func TestCountsAreThoseOfTheOptions(t *testing.T) {
	tar := faultyTar(t)
	records := append(examplesOf(3), tfrecord.AppendFrame(nil, nil)...)
	joined := append(tarOf(t, 2), tarOf(t, 5)[2*4*512:]...)
	st := store.FS(fstest.MapFS{
		"a.tar": {Data: tar}, "a.tar.idx": {Data: []byte("v1.2 0\n")}, "a.tfrecord": {Data: records}, "j.tar": {Data: joined},
		"b.tar": {Data: tarOf(t, 2)},
	})
	cls := []string{"cls"}
	for _, tt := range []struct {
		name string
		o    reader.Options
		want int64
	}{
		{"a.tar", reader.Options{Fields: cls, OnMissing: format.MissingSkip, OnDuplicate: format.KeepFirst}, 3},
		{"a.tar", reader.Options{Fields: []string{"txt"}, OnMissing: format.MissingSkip}, 1},
		{"a.tar", reader.Options{OnError: format.Skip}, format.Unknown},
		{"a.tar", reader.Options{OnError: format.Skip, Scan: reader.ScanAlways}, 4},
		{"a.tfrecord", reader.Options{Fields: []string{"label"}, OnMissing: format.MissingSkip}, format.Unknown},
		{"a.tfrecord", reader.Options{Fields: []string{"label"}, OnMissing: format.MissingSkip, Scan: reader.ScanAlways}, 3},
		{"a.tfrecord", reader.Options{Fields: []string{"label"}, OnMissing: format.MissingSkip, Unparsed: true}, 4},
		{"j.tar", reader.Options{}, 2},
		{"j.tar", reader.Options{Concatenated: true}, 5},
		{"b.tar", reader.Options{LastDot: true, KeyRaw: true}, 2},
	} {
		tt.o.CacheDir = "-"
		d := reader.New(st, []string{tt.name}, &tt.o)
		m, err := d.Manifest(t.Context())
		if err != nil || m.Shards[0].Samples != tt.want {
			t.Errorf("%s %+v: %+v, %v; want %d", tt.name, tt.o, m, err, tt.want)
			continue
		}
		var all []string
		for s, err := range d.Samples(t.Context()) {
			if err == nil {
				all = append(all, string(s.Key))
			}
		}
		if tt.want == format.Unknown {
			continue
		}
		for from := range tt.want + 1 {
			run, err := d.Run(t.Context(), 0, from, tt.want)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			at := from
			for s, err := range run.Samples() {
				if err != nil || s.Index != at || string(s.Key) != all[at] && !tt.o.Unparsed {
					t.Errorf("%s from %d: %v, %v at %d", tt.name, from, err, s, at)
					break
				}
				at++
			}
			if at != tt.want {
				t.Errorf("%s from %d: it ends before %d", tt.name, from, at)
			}
			run.Close()
		}
	}
}

// TestCountsThatNoLongerHold: a shard that was changed is found out when it is
// opened, and one whose count was wrong at its end.
func TestCountsThatNoLongerHold(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.tar")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(tarOf(t, 3))
	d := reader.New(&store.Local{}, []string{name}, &reader.Options{CacheDir: "-"})
	if _, err := d.Manifest(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(tarOf(t, 9))
	stale := func(what string, err error) {
		t.Helper()
		if e := format.AsError(err); !errors.Is(err, format.ErrStale) || e.Shard != name {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := d.Shard(t.Context(), 0)
	stale("Shard", err)
	_, err = d.Run(t.Context(), 0, 1, 2)
	stale("Run", err)
	_, err = d.Sample(t.Context(), 0, 1)
	stale("Sample", err)
	for _, err := range d.Samples(t.Context()) {
		stale("Samples", err)
	}

	// A manifest tells the size; and a count that is not so at the right size.
	write(tarOf(t, 3))
	manifest := filepath.Join(dir, "m.json")
	for _, tt := range []struct {
		samples, size string
		what          string
	}{{"3", "1", "size"}, {"2", fmt.Sprint(len(tarOf(t, 3))), "fewer"}, {"4", fmt.Sprint(len(tarOf(t, 3))), "more"}} {
		text := `{"__kind__":"wids-shard-index-v1","wids_version":1,"shardlist":[{"url":"a.tar","nsamples":` + tt.samples + `,"filesize":` + tt.size + `}]}`
		if err := os.WriteFile(manifest, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := reader.Open(t.Context(), "@"+manifest, &reader.Options{CacheDir: "-", Store: &store.Local{}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Manifest(t.Context())
		if err != nil || fmt.Sprint(m.Shards[0].Samples) != tt.samples {
			t.Fatal(m, err)
		}
		_, err = runOf(t, d, 0, m.Shards[0].Samples)
		stale(tt.what, err)
		_, err = d.Places(t.Context(), 0)
		stale(tt.what+", places", err)
	}
}

// TestMovedSamplesAreFound: an index that fits at both ends and not between.
func TestMovedSamplesAreFound(t *testing.T) {
	tar := tarOf(t, 6)
	moved := bytes.Clone(tar)
	// Samples 2 and 3 have become one, by name.
	for at := 3 * 4 * 512; at < 4*4*512; at += 1024 {
		copy(moved[at:], "k0002.")
		copy(moved[at+6:], []string{"abc", "def"}[at/1024%2])
		sum := 0
		copy(moved[at+148:], "        ")
		for _, c := range moved[at : at+512] {
			sum += int(c)
		}
		copy(moved[at+148:], fmt.Sprintf("%06o\x00 ", sum))
	}
	st := store.FS(fstest.MapFS{"a.tar": {Data: moved}, "a.tar.idx": {Data: indexOf(t, "a.tar", tar, index.WDS)}})
	d := reader.New(st, []string{"a.tar"}, &reader.Options{CacheDir: "-", Scan: reader.ScanNever})
	if m, err := d.Manifest(t.Context()); err != nil || m.Shards[0].Samples != 6 {
		t.Fatal(m, err)
	}
	for i := range int64(6) {
		_, err := d.Sample(t.Context(), 0, i)
		if i == 2 || i == 3 {
			continue // each is a part of one, and a sample for who sees no more
		}
		if err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	if got, err := runOf(t, d, 0, 6); !errors.Is(err, format.ErrStale) || len(got) != 3 {
		t.Errorf("a run: %d samples, %v", len(got), err)
	}
}

func TestRunsAreClosed(t *testing.T) {
	counted := &openCounter{Store: store.FS(fstest.MapFS{"a.tar": {Data: tarOf(t, 5)}, "b.tar.gz": {Data: packed(t, compress.Gzip, tarOf(t, 5))}})}
	d := reader.New(counted, []string{"a.tar", "b.tar.gz"}, &reader.Options{CacheDir: "-"})
	for shard := range 2 {
		for _, r := range [][2]int64{{0, 5}, {2, 4}, {5, 5}, {0, format.Unknown}, {3, format.Unknown}, {2, 9}, {4, 2}, {-1, 2}} {
			s, err := d.Run(t.Context(), shard, r[0], r[1])
			if err != nil {
				continue
			}
			for range s.Samples() {
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		for i := range int64(6) {
			_, _ = d.Sample(t.Context(), shard, i)
		}
		_, _ = d.Places(t.Context(), shard)
	}
	if counted.open != 0 {
		t.Errorf("%d are open", counted.open)
	}
}

func TestRunOfAFileReadsItsPartAlone(t *testing.T) {
	data := tarOf(t, 1000)
	read := 0
	st := store.Meter(store.FS(fstest.MapFS{"a.tar": {Data: data}}), func(n int) { read += n })
	d := reader.New(st, []string{"a.tar"}, &reader.Options{CacheDir: "-"})
	p, err := d.Places(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	read = 0
	if _, err := runOf(t, d, 400, 410); err != nil {
		t.Fatal(err)
	}
	from, _ := p.At(400)
	_, to := p.At(409)
	if int64(read) != to-from {
		t.Errorf("%d bytes were read for %d", read, to-from)
	}
}
