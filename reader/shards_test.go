package reader_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
)

const fixtures = "../fixtures/"

// tool is a shard that another tool wrote, and what that tool reads in it.
type tool struct {
	name    string
	records bool
	holds   reader.Type
	samples []string // key and fields, names in lower case; offset and hash of a record
	class   string   // of the error, where it is not read here
}

// tools gathers the fixtures whose samples are those that shardtool promises.
func tools(t *testing.T) (all []tool) {
	t.Helper()
	parse := func(name string, to any) {
		text, err := os.ReadFile(fixtures + name)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var tars []struct {
		File    string
		Differs []string
		Samples []struct {
			Key    string
			Fields []struct {
				Name, SHA256 string
				Bytes        int64
			}
		}
	}
	parse("tars/expected.json", &tars)
	for _, f := range tars {
		one := tool{name: "tars/" + f.File}
		switch {
		case slices.Contains(f.Differs, "unsupported"):
			one.class = "wrong-format"
		case slices.Contains(f.Differs, "window"):
			one.class = "limit"
		case len(f.Differs) > 0 && !slices.Equal(f.Differs, []string{"field-case"}):
			continue
		}
		for _, s := range f.Samples {
			text := fmt.Sprintf("%q", s.Key)
			for _, x := range s.Fields {
				text += fmt.Sprintf(" %s %d %s", x.Name, x.Bytes, x.SHA256)
			}
			one.samples = append(one.samples, text)
		}
		all = append(all, one)
	}
	var records []struct {
		File, Holds string
		Records     []struct {
			Offset int64
			SHA256 string
		}
	}
	parse("tf/expected.json", &records)
	types := map[string]reader.Type{"example": reader.Example, "sequence": reader.Sequence, "raw": reader.Raw}
	for _, f := range records {
		one := tool{name: "tf/" + f.File, records: true, holds: types[f.Holds]}
		if strings.Contains(f.File, "variants") {
			one.holds = reader.Raw // some of them do not parse
		}
		for _, r := range f.Records {
			one.samples = append(one.samples, fmt.Sprint(r.Offset, " ", r.SHA256))
		}
		all = append(all, one)
	}
	if len(all) < 45 {
		t.Fatalf("only %d shards", len(all))
	}
	return all
}

func (x *tool) text(s *format.Sample) string {
	if x.records {
		return fmt.Sprint(s.Offset, " ", hashOf(s.Record))
	}
	text := fmt.Sprintf("%q", s.Key)
	for _, f := range s.Fields {
		text += fmt.Sprintf(" %s %d %s", strings.ToLower(f.Name), f.Size(), hashOf(f.Data))
	}
	return text
}

// TestShardsOfOtherTools reads shards as files, and as pipes without a name:
// the samples are those that the tools read themselves.
func TestShardsOfOtherTools(t *testing.T) {
	for _, x := range tools(t) {
		data, err := os.ReadFile(fixtures + x.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{fixtures + x.name, "-"} {
			o := &reader.Options{}
			if x.holds == reader.Raw {
				o.Type = reader.Raw // those that do not parse are not all among the first
			}
			if x.samples == nil {
				o.Format = reader.TFRecord // nothing in it says so
			}
			s, err := reader.OpenShard(t.Context(), &store.Local{Stdin: bytes.NewReader(data)}, name, o)
			var got []string
			if err == nil {
				for sample, e := range s.Samples() {
					if err = e; err == nil {
						got = append(got, x.text(sample))
					}
				}
			}
			if x.class != "" {
				if e := format.AsError(err); format.Class(err) != x.class || e == nil || e.Shard != name || len(got) > 0 {
					t.Errorf("%s as %s: %d samples, %v; want %s", x.name, name, len(got), err, x.class)
				}
				continue
			}
			if err != nil || !cmp.Equal(got, x.samples) {
				t.Errorf("%s as %s: %v, %s", x.name, name, err, cmp.Diff(x.samples, got))
				continue
			}
			if x.records && s.Type() != x.holds {
				t.Errorf("%s as %s: holds %v, want %v", x.name, name, s.Type(), x.holds)
			}
			if known := name != "-"; known != (s.Size() == int64(len(data))) || s.BytesRead() != int64(len(data)) && len(s.Warnings()) == 0 && known {
				t.Errorf("%s as %s: %d bytes, %d read of %d", x.name, name, s.Size(), s.BytesRead(), len(data))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestHeadersSayWhatPayloadsDo reads tars without payloads: from a file by
// their headers alone, and from a pipe.
func TestHeadersSayWhatPayloadsDo(t *testing.T) {
	places := func(st store.Store, name string, o *reader.Options) (all []string) {
		for s, err := range reader.New(st, []string{name}, o).Samples(t.Context()) {
			if err != nil {
				return append(all, format.Class(err))
			}
			text := fmt.Sprintf("%d %d %q", s.Index, s.Offset, s.Key)
			for _, f := range s.Fields {
				if o.HeadersOnly && f.Data != nil {
					t.Errorf("%s has data", f.Name)
				}
				text += fmt.Sprintf(" %s %d %d", f.Name, f.Offset, f.Size())
			}
			all = append(all, text)
		}
		return all
	}
	for _, x := range tools(t) {
		if x.records || x.class != "" {
			continue
		}
		data, err := os.ReadFile(fixtures + x.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, fields := range [][]string{nil, {"cls;txt;json"}} {
			want := places(&store.Local{}, fixtures+x.name, &reader.Options{Fields: fields, OnMissing: format.MissingFill})
			o := &reader.Options{Fields: fields, OnMissing: format.MissingFill, HeadersOnly: true}
			if got := places(&store.Local{}, fixtures+x.name, o); !cmp.Equal(got, want) {
				t.Errorf("%s by headers: %s", x.name, cmp.Diff(want, got))
			}
			if got := places(&store.Local{Stdin: bytes.NewReader(data)}, "-", o); !cmp.Equal(got, want) {
				t.Errorf("%s by headers, a pipe: %s", x.name, cmp.Diff(want, got))
			}
		}
	}
}

// TestRandomReadsShardsOfOtherTools reads each sample alone, from behind.
func TestRandomReadsShardsOfOtherTools(t *testing.T) {
	random := reader.NewRandom(t.Context(), nil)
	defer random.Close()
	st := &store.Local{}
	held := 0
	for _, x := range tools(t) {
		name := fixtures + x.name
		if x.class != "" {
			continue
		}
		o := &reader.Options{}
		if x.holds == reader.Raw {
			o.Type = reader.Raw
		}
		s, err := reader.OpenShard(t.Context(), st, name, o)
		if err != nil {
			t.Fatal(err)
		}
		if s.Compression() == compress.None {
			ends := []int64{}
			var places []reader.Place
			for sample, err := range s.Samples() {
				if err != nil {
					t.Fatal(err)
				}
				ends = append(ends, sample.Offset)
				places = append(places, reader.Place{Store: st, Name: name, Format: s.Format(), Type: s.Type(), Offset: sample.Offset})
			}
			ends = append(ends, s.Size())
			for i := len(places) - 1; i >= 0; i-- {
				places[i].End = ends[i+1]
				sample, err := random.Sample(places[i])
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := x.text(sample); got != x.samples[i] || sample.Shard != name || sample.Index != format.Unknown {
					t.Errorf("%s: %s, want %s", name, got, x.samples[i])
				}
				held++
			}
		}
		s.Close()
	}
	if held < 150 {
		t.Errorf("only %d samples", held)
	}
}

func TestRandomSaysWhatIsNotThere(t *testing.T) {
	tar, records := tarOf(t, 3), examplesOf(3)
	broken := bytes.Clone(records)
	broken[len(broken)-1] ^= 1
	st := store.FS(fstest.MapFS{"a.tar": {Data: tar}, "a.tfrecord": {Data: records}, "b.tfrecord": {Data: broken}})
	frame := int64(len(records) / 3)
	for _, tt := range []struct {
		name  string
		place reader.Place
		o     reader.Options
		want  error
		at    int64
	}{
		{"behind the end", reader.Place{Name: "a.tfrecord", Type: reader.Example, Offset: 3 * frame, End: 4 * frame}, reader.Options{}, format.ErrStale, 3 * frame},
		{"inside a record", reader.Place{Name: "a.tfrecord", Type: reader.Example, Offset: frame + 1, End: 2 * frame}, reader.Options{}, format.ErrStale, frame + 1},
		{"half a record", reader.Place{Name: "a.tfrecord", Type: reader.Example, Offset: frame, End: 2*frame - 1}, reader.Options{}, format.ErrStale, frame},
		{"a broken record", reader.Place{Name: "b.tfrecord", Type: reader.Example, Offset: 2 * frame, End: 3 * frame}, reader.Options{}, format.ErrCorrupt, 2 * frame},
		{"another type", reader.Place{Name: "a.tfrecord", Type: reader.Sequence, Offset: frame, End: 2 * frame}, reader.Options{}, nil, 0},
		{"a missing field", reader.Place{Name: "a.tfrecord", Type: reader.Example, Offset: frame, End: 2 * frame}, reader.Options{Fields: []string{"txt"}}, format.ErrMissing, frame},
		{"a payload of a tar", reader.Place{Name: "a.tar", Format: reader.Tar, Offset: 512, End: 1024}, reader.Options{}, format.ErrStale, 512},
		{"the end of a tar", reader.Place{Name: "a.tar", Format: reader.Tar, Offset: 3 * 2048, End: int64(len(tar))}, reader.Options{}, format.ErrStale, 3 * 2048},
		{"no such shard", reader.Place{Name: "none.tar", Format: reader.Tar, End: 512}, reader.Options{}, format.ErrNotFound, -1},
	} {
		random := reader.NewRandom(t.Context(), &tt.o)
		tt.place.Store = st
		if tt.place.Format == reader.AutoFormat {
			tt.place.Format = reader.TFRecord
		}
		_, err := random.Sample(tt.place)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil && format.AsError(err) == nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if e := format.AsError(err); tt.want != nil && (e == nil || e.Shard != tt.place.Name || e.Offset != tt.at) {
			t.Errorf("%s: %v does not say %d", tt.name, err, tt.at)
		}
		if err := random.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRandomKeepsFewShardsOpen reads from more shards than it keeps open, and
// closes all.
func TestRandomKeepsFewShardsOpen(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 200 {
		files[fmt.Sprintf("%03d.tar", i)] = &fstest.MapFile{Data: tarOf(t, 1)}
	}
	counted := &openCounter{Store: store.FS(files)}
	random := reader.NewRandom(t.Context(), nil)
	for i := range 400 {
		p := reader.Place{Store: counted, Name: fmt.Sprintf("%03d.tar", i*7%200), Format: reader.Tar, End: 2048}
		if s, err := random.Sample(p); err != nil || string(s.Key) != "k0000" {
			t.Fatal(err)
		}
		if counted.open > 64 {
			t.Fatalf("%d shards are open", counted.open)
		}
	}
	if err := random.Close(); err != nil || counted.open != 0 {
		t.Errorf("%v, and %d are open", err, counted.open)
	}
}

type openCounter struct {
	store.Store
	open int
}

func (s *openCounter) Open(ctx context.Context, name string) (store.Object, error) {
	o, err := s.Store.Open(ctx, name)
	if err == nil {
		s.open++
	}
	return &countedObject{o, s}, err
}

type countedObject struct {
	store.Object
	s *openCounter
}

func (o *countedObject) Close() error {
	o.s.open--
	return o.Object.Close()
}

// TestDatasetGoesThroughItsShards: in the order given, one open at a time, all
// closed whatever ends it; an error names its shard, and the next one follows.
func TestDatasetGoesThroughItsShards(t *testing.T) {
	cut := examplesOf(3)
	cut = cut[:len(cut)-1]
	files := fstest.MapFS{
		"b.tar": {Data: tarOf(t, 2)}, "a.tfrecord": {Data: examplesOf(3)}, "c.tar.gz": {Data: packed(t, compress.Gzip, tarOf(t, 1))}, "cut.tfrecord": {Data: cut},
	}
	for _, tt := range []struct {
		shards string
		stop   int // after so many samples; 0: never
		want   string
		class  string
	}{
		{"b.tar a.tfrecord c.tar.gz", 0, "b.tar/0 b.tar/1 a.tfrecord/0 a.tfrecord/1 a.tfrecord/2 c.tar.gz/0", ""},
		{"a.tfrecord a.tfrecord", 4, "a.tfrecord/0 a.tfrecord/1 a.tfrecord/2 a.tfrecord/0", ""},
		{"b.tar cut.tfrecord a.tfrecord", 0, "b.tar/0 b.tar/1 cut.tfrecord/0 cut.tfrecord/1 a.tfrecord/0 a.tfrecord/1 a.tfrecord/2", "cut.tfrecord truncated 2"},
		{"c.tar.gz none.tar b.tar", 0, "c.tar.gz/0 b.tar/0 b.tar/1", "none.tar not-found -1"},
		{"", 0, "", ""},
	} {
		counted := &openCounter{Store: store.FS(files)}
		d := reader.New(counted, strings.Fields(tt.shards), nil)
		var got []string
		class := ""
		for s, err := range d.Samples(t.Context()) {
			if err != nil {
				e := format.AsError(err)
				class = fmt.Sprint(e.Shard, " ", format.Class(err), " ", e.Record)
				continue
			}
			got = append(got, fmt.Sprintf("%s/%d", s.Shard, s.Index))
			if counted.open != 1 {
				t.Errorf("%s: %d shards are open", tt.shards, counted.open)
			}
			if len(got) == tt.stop {
				break
			}
		}
		if strings.Join(got, " ") != tt.want || class != tt.class || counted.open != 0 {
			t.Errorf("%s: %v and %q, %d open; want %s and %q", tt.shards, got, class, counted.open, tt.want, tt.class)
		}
	}
}

// TestErrorsOfRecordsSayWhere: also those of records that were read ahead to
// tell their type, and those of what a record holds.
func TestErrorsOfRecordsSayWhere(t *testing.T) {
	cutProto, err := os.ReadFile(cases + "tfrecord/example_cut_proto.tfrecord")
	if err != nil {
		t.Fatal(err)
	}
	frame := len(examplesOf(1))
	flipped := examplesOf(20)
	flipped[3*frame+20] ^= 1
	for _, tt := range []struct {
		name           string
		data           []byte
		o              reader.Options
		samples        int
		class          string
		offset, record int64
	}{
		{"no Example", cutProto, reader.Options{Type: reader.Example}, 0, "corrupt", 0, 0},
		{"no Example, guessed", cutProto, reader.Options{}, 1, "", 0, 0},
		{"read ahead", flipped, reader.Options{}, 3, "corrupt", int64(3 * frame), 3},
		{"read ahead, skipped", flipped, reader.Options{OnError: format.Skip}, 19, "", 0, 0},
		{"cut behind what is read ahead", examplesOf(20)[:20*frame-1], reader.Options{}, 19, "truncated", int64(19 * frame), 19},
		{"field missing", examplesOf(20), reader.Options{Fields: []string{"txt"}}, 0, "missing", 0, 0},
	} {
		s, err := reader.OpenShard(t.Context(), store.FS(fstest.MapFS{"a.tfrecord": {Data: tt.data}}), "a.tfrecord", &tt.o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var fault error
		for _, err := range s.Samples() {
			if err != nil {
				fault = err
				break
			}
			n++
		}
		if n != tt.samples || format.Class(fault) != tt.class {
			t.Errorf("%s: %d samples, %v; want %d, %s", tt.name, n, fault, tt.samples, tt.class)
		}
		if e := format.AsError(fault); tt.class != "" && (e.Shard != "a.tfrecord" || e.Offset != tt.offset || e.Record != tt.record) {
			t.Errorf("%s: %v, want @ %d (%d)", tt.name, fault, tt.offset, tt.record)
		}
		if fault != nil {
			if _, again := s.Next(); again != fault {
				t.Errorf("%s: after the error comes %v", tt.name, again)
			}
		}
		s.Close()
	}
}

// TestNothingIsAllocatedWhateverIsAsked reads on with buffers that have grown.
func TestNothingIsAllocatedWhateverIsAsked(t *testing.T) {
	const n = 4000
	var sequences, raw []byte
	for i := range n {
		var q tfexample.SequenceBuilder
		q.AddField(format.Field{Name: "id", Data: []byte("0123")})
		q.AddList("steps", tfexample.Int64Of(int64(i)), tfexample.Int64Of(2))
		sequences = tfrecord.AppendFrame(sequences, q.AppendTo(nil))
		raw = tfrecord.AppendFrame(raw, bytes.Repeat([]byte{0xff}, 100))
	}
	tar := tarOf(t, n)
	for _, tt := range []struct {
		name string
		data []byte
		o    reader.Options
	}{
		{"raw.tfrecord", raw, reader.Options{}},
		{"sequences.tfrecord", sequences, reader.Options{}},
		{"fields.tfrecord", examplesOf(n), reader.Options{Fields: []string{"label", "png;image"}}},
		{"fill.tfrecord", examplesOf(n), reader.Options{Fields: []string{"txt", "image"}, OnMissing: format.MissingFill}},
		{"fields.tar", tar, reader.Options{Fields: []string{"cls", "png;jpg"}}},
		{"fill.tar", tar, reader.Options{Fields: []string{"txt", "jpg"}, OnMissing: format.MissingFill}},
		{"headers.tar", tar, reader.Options{HeadersOnly: true}},
		{"resync.tar", tar, reader.Options{OnError: format.Resync}},
		{"a.tar.gz", packed(t, compress.Gzip, tar), reader.Options{}},
		{"a.tar.zst", packed(t, compress.Zstd, tar), reader.Options{}},
	} {
		s, err := reader.OpenShard(t.Context(), store.FS(fstest.MapFS{tt.name: {Data: tt.data}}), tt.name, &tt.o)
		if err != nil {
			t.Fatal(err)
		}
		next := func() {
			if _, err := s.Next(); err != nil {
				t.Fatal(tt.name, err)
			}
		}
		for range 2000 {
			next()
		}
		if got := testing.AllocsPerRun(1000, next); got != 0 {
			t.Errorf("%s: %v allocations a sample", tt.name, got)
		}
		s.Close()
	}
}

// TestCancellationEndsEveryRead: of files and pipes, compressed or not, and of a
// pipe whose other end says nothing.
func TestCancellationEndsEveryRead(t *testing.T) {
	tar := tarOf(t, 30)
	for name, data := range map[string][]byte{
		"a.tar": tar, "a.tar.gz": packed(t, compress.Gzip, tar), "a.tar.zst": packed(t, compress.Zstd, tar), "a.tfrecord": examplesOf(10),
	} {
		for _, o := range []reader.Options{{}, {OnError: format.Resync}, {HeadersOnly: true}} {
			ctx, cancel := context.WithCancel(t.Context())
			fsys := store.Meter(store.FS(fstest.MapFS{name: {Data: data}}), func(int) { cancel() })
			var last error
			for _, err := range reader.New(fsys, []string{name}, &o).Samples(ctx) {
				last = err
			}
			// What was read before may be delivered, and be all of a small shard.
			if last != nil && last != context.Canceled {
				t.Errorf("%s: %v", name, last)
			}
			cancel()
			if _, err := reader.OpenShard(ctx, fsys, name, &o); err != context.Canceled {
				t.Errorf("%s: opened after the end: %v", name, err)
			}
		}
	}
	silentPipe(t)
}

func silentPipe(t *testing.T) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := r.SetReadDeadline(time.Time{}); err != nil {
		t.Skip("a read of a pipe cannot be ended here:", err)
	}
	// Once while what the stream is has to be told, once behind that.
	for _, sent := range []int{20, 4000} {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := w.Write(examplesOf(100)[:sent]); err != nil {
			t.Fatal(err)
		}
		go cancel()
		var last error
		for _, err := range reader.New(&store.Local{Stdin: r}, []string{"-"}, &reader.Options{Format: reader.TFRecord, Type: reader.Raw}).Samples(ctx) {
			last = err
		}
		if last != context.Canceled {
			t.Errorf("a silent pipe, after %d bytes: %v", sent, last)
		}
		if err := r.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}
