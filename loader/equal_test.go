package loader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"shardtool/augment"
	"shardtool/echo"
	"shardtool/fixtures"
	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/loader/internal/column"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/reader/store/faultserver"
	"shardtool/reader/store/faultstore"
	"shardtool/reader/store/remote"
	"shardtool/reader/store/s3"
	"shardtool/tensor"
)

// assorted makes shards, tar and TFRecord by turns, whose samples have a
// picture (jpg), a list (ids.json), bytes (bin), a label (cls, 1000*shard +
// index) and a text (txt). spoil may change the fields of a sample.
func assorted(t testing.TB, spoil func(label int, s *format.Sample), counts ...int) *reader.Dataset {
	t.Helper()
	dir := t.TempDir()
	var err error
	var names []string
	for shard, n := range counts {
		ext := [2]string{"tar", "tfrecord"}[shard%2]
		names = append(names, filepath.Join(dir, fmt.Sprintf("a-%03d.%s", shard, ext)))
		var data bytes.Buffer
		tars, records := tarshard.NewWriter(&data, nil), tfrecord.NewWriter(&data)
		for i := range n {
			s := assortedSample(t, 1000*shard+i)
			if spoil != nil {
				spoil(1000*shard+i, s)
			}
			if shard%2 == 0 {
				err = tars.WriteSample(s)
			} else {
				err = records.Write(exampleOf(s))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if shard%2 == 0 {
			err = tars.Close()
		} else {
			err = records.Flush()
		}
		if err == nil {
			err = os.WriteFile(names[shard], data.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return reader.New(&store.Local{}, names, &reader.Options{CacheDir: "-"})
}

func assortedSample(t testing.TB, label int) *format.Sample {
	img := image.NewRGBA(image.Rect(0, 0, 30, 22))
	for y := range 22 {
		for x := range 30 {
			img.Set(x, y, color.RGBA{uint8(8 * x), uint8(11 * y), uint8(37 * label), 255})
		}
	}
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, img, nil); err != nil {
		t.Fatal(err)
	}
	list, _ := json.Marshal(ids(label))
	return &format.Sample{Key: fmt.Appendf(nil, "k%06d", label), Fields: []format.Field{
		{Name: "jpg", Data: picture.Bytes()},
		{Name: "ids.json", Data: list},
		{Name: "bin", Data: bytes.Repeat([]byte{byte(label)}, label%11*50)},
		{Name: "cls", Data: fmt.Appendf(nil, "%d", label)},
		{Name: "txt", Data: fmt.Appendf(nil, "text %d", label)},
	}}
}

func exampleOf(s *format.Sample) []byte {
	var b tfexample.Builder
	b.AddBytes(reader.KeyFeature, s.Key)
	for _, f := range s.Fields {
		switch f.Name {
		case "ids.json", "cls":
			var list []int64
			if json.Unmarshal(f.Data, &list) != nil {
				list = []int64{0}
				_ = json.Unmarshal(f.Data, &list[0])
			}
			b.AddInt64(f.Name, list...)
		default:
			b.AddBytes(f.Name, f.Data)
		}
	}
	return b.AppendTo(nil)
}

// assortedColumns are of every form, the label last.
func assortedColumns() []Column {
	return []Column{
		Image("jpg", augment.ImageNetTrain(16)),
		Padded("ids.json", tensor.Int64, 8, &PadOptions{Value: -1}),
		Ragged("ids.json", tensor.Int64),
		Bytes("bin"),
		Key(),
		Bytes("txt").OrHole(),
		Location(),
		Int64("cls"),
	}
}

// placeOf is a hash of all that a batch has at one place.
func placeOf(b *Batch, i int, tensors [32]byte) (sum [32]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %v %q\n", b.Refs[i], b.Valid[i], b.Key(i))
	h.Write(tensors[:])
	return [32]byte(h.Sum(nil))
}

// tensorsOf is a hash of the values at one place.
func tensorsOf(b *Batch, i int) (sum [32]byte) {
	h := sha256.New()
	for c := range b.l.columns {
		switch b.l.columns[c].form {
		case column.FormDense:
			h.Write(b.Column(c).At(i).Bytes())
		case column.FormPadded:
			p := b.Padded(c)
			fmt.Fprintln(h, p.Lengths[i], p.Values.At(i).Shape())
			h.Write(p.Values.At(i).Bytes())
		case column.FormRagged:
			v := b.Ragged(c).At(i)
			fmt.Fprintln(h, v.Shape())
			h.Write(v.Bytes())
		case column.FormBinary:
			fmt.Fprintf(h, "%q\n", b.Binary(c).At(i))
		case column.FormPlaces:
			fmt.Fprintf(h, "%+v\n", b.Location(i))
		}
	}
	return [32]byte(h.Sum(nil))
}

// seen is what came of one batch.
type seen struct {
	refs    []order.Ref
	valid   []bool
	labels  []int64 // of the last column
	places  [][32]byte
	tensors [][32]byte // places, whichever the reference
	all     [32]byte   // of all arrays as they lie
	state   State
}

func see(b *Batch) seen {
	s := seen{refs: slices.Clone(b.Refs), valid: slices.Clone(b.Valid), labels: slices.Clone(b.Int64(len(b.l.columns) - 1)), state: *b.State()}
	h := sha256.New()
	for _, a := range b.Arrays() {
		fmt.Fprintln(h, a.DType(), a.Shape())
		h.Write(a.Bytes())
	}
	for i := range b.Len() {
		s.tensors = append(s.tensors, tensorsOf(b, i))
		s.places = append(s.places, placeOf(b, i, s.tensors[i]))
		h.Write(s.places[i][:])
	}
	s.all = [32]byte(h.Sum(nil))
	return s
}

// watch runs a loader to its end or to an error.
func watch(t testing.TB, ds *reader.Dataset, o Options) (all []seen, err error) {
	t.Helper()
	if o.Columns == nil {
		o.Columns = assortedColumns()
	}
	l, err := New(context.Background(), ds, &o)
	if err != nil {
		return nil, err
	}
	return watchLoader(t, l)
}

// watchLoader takes all batches of a loader, to its end or to an error.
func watchLoader(t testing.TB, l *Loader) (all []seen, err error) {
	t.Helper()
	for b, e := range l.Batches(context.Background()) {
		if e != nil {
			err = e
			break
		}
		all = append(all, see(b))
		b.Release()
	}
	checkEnd(t, l)
	return all, err
}

// equalSeen says at which step two runs differ, or -1.
func equalSeen(a, b []seen) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].all != b[i].all || a[i].state.Epoch != b[i].state.Epoch || a[i].state.Step != b[i].state.Step {
			return i
		}
	}
	return -1
}

// shuffles are the modes, each with what it is set to here.
var shuffles = []order.Shuffle{order.None, order.Global, order.Block(2), order.Stream(2, 8)}

// crews are numbers of workers, fetchers and batches ahead.
var crews = [][3]int{{1, 1, 1}, {2, 8, 3}, {8, 1, 2}, {8, 8, 4}}

// equalForAnyCrew runs options with each crew, and returns what all of them
// gave.
func equalForAnyCrew(t *testing.T, ds *reader.Dataset, o Options) []seen {
	t.Helper()
	var first []seen
	for i, c := range crews {
		o.Workers, o.Fetchers, o.Prefetch = c[0], c[1], c[2]
		all, err := watch(t, ds, o)
		if err != nil {
			t.Fatalf("%v, crew %v: %v", o.Shuffle, c, err)
		}
		if i == 0 {
			first = all
		} else if at := equalSeen(first, all); at >= 0 {
			t.Fatalf("%v, rank %d of %d, echo %+v: crew %v differs from %v at step %d", o.Shuffle, o.Rank, o.World, o.Echo, c, crews[0], at)
		}
	}
	return first
}

func TestEqualForAnyCrew(t *testing.T) {
	ds := assorted(t, nil, 9, 14, 0, 13)
	for _, shuffle := range shuffles {
		for _, e := range []echo.Options{{}, {Factor: 2, Buffer: 16}, {Factor: 1.5, Unit: echo.Batch, Buffer: 2}, {Factor: 2, Keep: echo.Decoded}, {Factor: 2, Keep: echo.Augmented, Buffer: 9}, {Factor: 2, Unit: echo.Shard, Buffer: 5}} {
			if e.Unit == echo.Shard && shuffle == order.Global {
				continue
			}
			for world := 1; world <= 2; world++ {
				o := Options{GlobalBatch: 8, Seed: 11, Epochs: 2, Shuffle: shuffle, Tail: order.TailPad, World: world, Rank: world - 1, Echo: e}
				all := equalForAnyCrew(t, ds, o)
				fresh := 0
				for _, s := range all {
					for i, ref := range s.refs {
						if ref.Kind != order.Fresh {
							continue
						}
						fresh++
						if !s.valid[i] || s.labels[i] != 1000*int64(ref.Shard)+ref.Index {
							t.Fatalf("%v: label %d at %+v", shuffle, s.labels[i], ref)
						}
					}
				}
				if world == 1 && e.Factor != 1.5 && fresh != int(max(1, e.Factor))*36*2 {
					t.Errorf("%v, %+v: %d emissions", shuffle, e, fresh)
				}
			}
		}
	}
}

// The photographs, whose crops need parts of pictures of many blocks.
func TestPhotosEqualForAnyCrew(t *testing.T) {
	ds := reader.New(store.FS(fixtures.Photos), fixtures.PhotoShards, &reader.Options{CacheDir: "-"})
	o := Options{
		Columns:     []Column{Image("jpg;image/encoded", augment.ImageNetTrain(48)), Int64("cls;image/class/label")},
		GlobalBatch: 9, Seed: 5, Shuffle: order.Global, World: 1,
	}
	if all := equalForAnyCrew(t, ds, o); len(all) != 4 {
		t.Errorf("%d batches of 9 of 36 photographs", len(all))
	}
}

// damage changes shards whose samples are counted already: the file has the
// size and time that it had. Of a record it changes a byte, so that its
// checksum does not fit; of a tar, the checksum of a member's header, behind
// which reading in order has lost its way.
func damage(t *testing.T, ds *reader.Dataset, labels ...int) {
	t.Helper()
	if _, err := ds.Manifest(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, label := range labels {
		shard, i := label/1000, label%1000
		places, err := ds.Places(t.Context(), shard)
		if err != nil {
			t.Fatal(err)
		}
		off, _ := places.At(i)
		name := ds.Shards()[shard]
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".tar") {
			data[off+148] ^= 1 // the first digit of the header's checksum
		} else {
			data[off+12+5] ^= 0x40 // of the payload, behind length and its checksum
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
}

// Bad samples of every kind: the batches are equal for any crew, each hole is
// where the order has the bad sample, and is filled as the contract says.
func TestHolesEqualForAnyCrew(t *testing.T) {
	pictures, texts := []int{2, 1005, 3000}, []int{6, 1000, 1013, 3007}
	framing := []int{4, 1003, 1009, 3004, 3012}
	ds := assorted(t, func(label int, s *format.Sample) {
		if slices.Contains(pictures, label) {
			s.Fields[0].Data = s.Fields[0].Data[:len(s.Fields[0].Data)/2]
		}
		if slices.Contains(texts, label) {
			s.Fields = s.Fields[:4]
		}
	}, 9, 14, 0, 13)
	damage(t, ds, framing...)
	bad := slices.Concat(pictures, texts, framing)
	for _, shuffle := range shuffles {
		for _, e := range []echo.Options{{}, {Factor: 2, Unit: echo.Batch}, {Factor: 2, Buffer: 16}, {Factor: 2, Keep: echo.Decoded}, {Factor: 2, Keep: echo.Augmented, Buffer: 9}} {
			for rank := range 3 { // the only one, and both of two
				o := Options{
					GlobalBatch: 12, Seed: 21, Epochs: 2, Shuffle: shuffle, Tail: order.TailPad, World: 1, Echo: e,
					OnBad: OnBad{Skip: int64(2 * len(pictures) * len(framing))},
				}
				if rank > 0 {
					o.GlobalBatch, o.World, o.Rank = 24, 2, rank-1
				}
				for step, s := range equalForAnyCrew(t, ds, o) {
					holdHoles(t, fmt.Sprintf("%v, echo %+v, rank %d of %d, step %d", shuffle, e, o.Rank, o.World, step), s, bad)
				}
			}
		}
	}
}

// holdHoles holds the places of a batch against its references: who is bad is
// a hole with the nearest earlier good one, else the nearest later.
func holdHoles(t *testing.T, what string, s seen, bad []int) {
	t.Helper()
	label := func(i int) int {
		if s.refs[i].Kind == order.Padding {
			return -1
		}
		l := int(1000*s.refs[i].Shard) + int(s.refs[i].Index)
		if slices.Contains(bad, l) {
			return -1
		}
		return l
	}
	for i := range s.refs {
		from := i
		for from >= 0 && label(from) < 0 {
			from--
		}
		if from < 0 {
			for from = i; from < len(s.refs) && label(from) < 0; {
				from++
			}
		}
		want := int64(0) // of padding alone
		if from < len(s.refs) {
			want = int64(label(from))
		}
		if s.valid[i] != (label(i) >= 0) || s.labels[i] != want {
			t.Fatalf("%s: place %d of %+v has label %d, valid %v; want %d, as place %d", what, i, s.refs, s.labels[i], s.valid[i], want, from)
		}
	}
}

// The parts of all ranks, one behind the other, are the batch of a single one.
func TestRanksMakeTheSameBatch(t *testing.T) {
	ds := assorted(t, nil, 9, 14, 0, 13)
	for _, shuffle := range shuffles {
		for _, tail := range []order.Tail{order.TailDrop, order.TailPad, order.TailWrap} {
			for _, e := range []echo.Options{{}, {Factor: 2, Buffer: 24}, {Factor: 2, Unit: echo.Batch, Buffer: 2}, {Factor: 1.5, Keep: echo.Decoded, Buffer: 24}, {Factor: 2, Keep: echo.Augmented}} {
				o := Options{GlobalBatch: 8, Seed: 2, Epochs: 2, Shuffle: shuffle, Tail: tail, Echo: e}
				one := together(t, ds, o, 1)
				for _, world := range []int{2, 4} {
					holdTogether(t, fmt.Sprintf("%v, tail %v, echo %+v, world %d", shuffle, tail, e, world), one, together(t, ds, o, world))
				}
			}
		}
	}
}

// together runs all ranks of a world, and joins their parts of each batch.
func together(t *testing.T, ds *reader.Dataset, o Options, world int) (all []seen) {
	t.Helper()
	for rank := range world {
		o.World, o.Rank = world, rank
		part, err := watch(t, ds, o)
		if err != nil {
			t.Fatal(err)
		}
		if rank == 0 {
			all = part
			continue
		}
		if len(part) != len(all) {
			t.Fatalf("%v: rank %d has %d steps, rank 0 %d", o.Shuffle, rank, len(part), len(all))
		}
		for i := range all {
			all[i].refs = append(all[i].refs, part[i].refs...)
			all[i].labels = append(all[i].labels, part[i].labels...)
			all[i].places = append(all[i].places, part[i].places...)
		}
	}
	return all
}

// holdTogether compares what is fresh: what fills a tail may differ.
func holdTogether(t *testing.T, what string, want, got []seen) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d steps, want %d", what, len(got), len(want))
	}
	for step := range want {
		w, g := &want[step], &got[step]
		if len(w.refs) != len(g.refs) {
			t.Fatalf("%s, step %d: %d places, want %d", what, step, len(g.refs), len(w.refs))
		}
		for i, ref := range w.refs {
			if (ref.Kind == order.Fresh) != (g.refs[i].Kind == order.Fresh) || ref.Kind == order.Fresh && w.places[i] != g.places[i] {
				t.Fatalf("%s, step %d, place %d: %+v, want %+v, or its tensors", what, step, i, g.refs[i], ref)
			}
		}
	}
}

// A read that fails ends loading with that error, and from the last state on
// another loader gives what is left: together what comes without a fault.
func TestReadFaultsAndResume(t *testing.T) {
	sound := assorted(t, nil, 9, 14, 13)
	for _, shuffle := range shuffles {
		o := Options{GlobalBatch: 6, Seed: 8, Epochs: 2, Shuffle: shuffle, Tail: order.TailDrop, World: 1, Workers: 2, Fetchers: 2}
		want, err := watch(t, sound, o)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for after := int64(0); after < 200_000; after += 23_000 {
			st := faultstore.New(&store.Local{}, faultstore.Fault{
				Op: faultstore.Read, After: after, Times: 1,
				Err: format.Errorf(format.ErrIO, format.Nowhere, "the disk is gone"),
			})
			ds := reader.New(st, sound.Shards(), &reader.Options{CacheDir: "-"})
			var got []seen
			o.Resume = nil
			for try := 0; try < 2; try++ {
				part, err := watch(t, ds, o)
				got = append(got, part...)
				if len(part) > 0 {
					o.Resume = &part[len(part)-1].state
				}
				if err == nil {
					break
				}
				failed++
				if !errors.Is(err, format.ErrIO) || !strings.Contains(err.Error(), "the disk is gone") {
					t.Fatalf("%v, after %d bytes: %v", shuffle, after, err)
				}
			}
			if at := equalSeen(want, got); at >= 0 {
				t.Fatalf("%v, after %d bytes: step %d of %d differs, want %d steps", shuffle, after, at, len(got), len(want))
			}
		}
		if failed < 3 {
			t.Errorf("%v: only %d reads failed", shuffle, failed)
		}
	}
}

// withoutEnvironment hides what this machine says about S3.
func withoutEnvironment(t testing.TB) {
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// uploaded puts the shards of a dataset on a server, and returns them as a
// dataset on S3.
func uploaded(t testing.TB, srv *faultserver.Server, local *reader.Dataset, scan reader.Scan) (*reader.Dataset, *s3.Store) {
	t.Helper()
	transport := remote.NewTransport(8)
	srv.Wire(transport)
	st := s3.New(&s3.Options{
		Endpoint: srv.URL, Region: "us-east-1", NoSign: true, PathStyle: true, Transport: transport,
		Client: remote.NewClient(&remote.Options{Connections: 8, Range: 16 << 10, Stall: time.Second, Attempts: 40, Seed: 1}),
	})
	var names []string
	for _, name := range local.Shards() {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		key := "/bkt/" + filepath.Base(name)
		srv.Put(key, &faultserver.Object{Content: faultserver.Bytes(data), ETag: faultserver.Sum(data)})
		names = append(names, "s3:/"+key)
	}
	return reader.New(st, names, &reader.Options{CacheDir: "-", Scan: scan}), st
}

// troubles answers two in five requests with a fault, which one being a
// function of the request.
func troubles(r *http.Request, n int) *faultserver.Answer {
	h := fnv.New32a()
	fmt.Fprint(h, r.Method, r.URL.Path, r.Header.Get("Range"), n)
	x := h.Sum32() >> 3
	after := int64(x>>8) % 9000
	if r.Method != http.MethodGet {
		if n%3 == 0 {
			return &faultserver.Answer{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		}
		return nil
	}
	switch x % 10 {
	case 0:
		return &faultserver.Answer{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
	case 1:
		return &faultserver.Answer{Fault: faultserver.Reset, After: after}
	case 2:
		return &faultserver.Answer{Fault: faultserver.Stall, After: after}
	case 3:
		return &faultserver.Answer{Fault: faultserver.Hangup, After: after, Wait: time.Second / 2}
	}
	return nil
}

// Over S3, with connections that are reset, that stall, that end early, and a
// server that is busy: the batches that come from the local files. The clock
// is fake, so that waits take no time.
func TestEqualOverFaultyS3(t *testing.T) {
	withoutEnvironment(t)
	local := assorted(t, nil, 9, 14, 13)
	for _, shuffle := range shuffles {
		for world := 1; world <= 2; world++ {
			o := Options{GlobalBatch: 6, Seed: 8, Epochs: 2, Shuffle: shuffle, Tail: order.TailDrop, World: world, Rank: world - 1, Workers: 2}
			o.Columns = slices.Delete(assortedColumns(), 6, 7) // where a sample stands has the name of its shard
			want, err := watch(t, local, o)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				srv := faultserver.StartPipe()
				srv.Before = troubles
				ds, st := uploaded(t, srv, local, reader.ScanAlways)
				defer srv.Close()
				defer st.Close()
				got, err := watch(t, ds, o)
				if err != nil {
					t.Fatal(err)
				}
				if at := equalSeen(want, got); at >= 0 {
					t.Fatalf("%v: step %d of %d differs, want %d", shuffle, at, len(got), len(want))
				}
				faults := 0
				for _, r := range srv.Requests(http.MethodGet) {
					if r.Header.Get("Range") != "" {
						faults++
					}
				}
				if faults < 10 {
					t.Errorf("%v: only %d requests for ranges", shuffle, faults)
				}
			})
		}
	}
}

// What one run has quarantined, another leaves out from the start, for all
// ranks alike: no hole, no error, and every good sample once.
func TestQuarantineIsLeftOut(t *testing.T) {
	bad := []int{0, 4, 1003, 1004, 1013, 3012}
	ds := assorted(t, nil, 9, 14, 0, 13)
	damage(t, ds, bad...)
	for _, shuffle := range shuffles {
		o := Options{Columns: assortedColumns(), GlobalBatch: 12, Seed: 4, Epochs: 2, Shuffle: shuffle, Tail: order.TailPad, World: 1, OnBad: OnBad{Skip: -1}}
		l, err := New(t.Context(), ds, &o)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range l.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for i, ok := range b.Valid {
				if at := b.Location(i); !ok && at.Offset == 0 && at.Record > 0 {
					t.Errorf("%v: a hole at %+v", shuffle, at)
				}
			}
			b.Release()
		}
		for _, err := range l.Quarantine() {
			if e := format.AsError(err); e == nil || e.Shard == "" || e.Record < 0 || e.Offset < 0 {
				t.Errorf("%v: %+v does not say where", shuffle, e)
			}
		}
		var list bytes.Buffer
		if err := l.WriteQuarantine(&list); err != nil {
			t.Fatal(err)
		}
		if o.Exclude, err = ReadQuarantine(&list); err != nil || len(o.Exclude) != len(bad) {
			t.Fatalf("%v: %v, %v", shuffle, o.Exclude, err)
		}
		o.OnBad = OnBad{}
		for _, world := range []int{1, 2} {
			times := map[int64]int{}
			for rank := range world {
				o.World, o.Rank = world, rank
				for _, s := range equalForAnyCrew(t, ds, o) {
					for i, ref := range s.refs {
						switch {
						case s.valid[i] != (ref.Kind != order.Padding):
							t.Fatalf("%v: a hole at %+v", shuffle, ref)
						case s.valid[i] && s.labels[i] != 1000*int64(ref.Shard)+ref.Index:
							t.Fatalf("%v: label %d at %+v", shuffle, s.labels[i], ref)
						case s.valid[i]:
							times[s.labels[i]]++
						}
					}
				}
			}
			if len(times) != 36-len(bad) {
				t.Errorf("%v, world %d: %d samples", shuffle, world, len(times))
			}
			for label, n := range times {
				if n != 2 || slices.Contains(bad, int(label)) {
					t.Errorf("%v, world %d: %d %d times", shuffle, world, label, n)
				}
			}
		}
	}
}
