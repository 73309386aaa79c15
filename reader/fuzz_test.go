package reader_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

// FuzzParser gives any bytes for those of a sample: what comes back is a sample
// that lies in them, or an error that says where.
func FuzzParser(f *testing.F) {
	tar, records := tarOf(f, 3), examplesOf(3)
	st := store.FS(fstest.MapFS{"a.tar": {Data: tar}, "a.tfrecord": {Data: records}})
	d := reader.New(st, []string{"a.tar", "a.tfrecord"}, &reader.Options{CacheDir: "-", Limits: &format.Limits{Record: 1 << 16}})
	for shard, data := range [][]byte{tar, records} {
		p, err := d.Places(f.Context(), shard)
		if err != nil {
			f.Fatal(err)
		}
		for i := range p.Len() {
			off, end := p.At(i)
			f.Add(shard == 1, data[off:end])
			f.Add(shard == 1, data[off:end-1])
		}
		f.Add(shard == 1, data)
	}
	f.Fuzz(func(t *testing.T, record bool, data []byte) {
		shard := 0
		if record {
			shard = 1
		}
		const off = 5 << 9
		s, err := d.NewParser().Sample(shard, 7, off, data)
		if err != nil {
			if e := format.AsError(err); e == nil || e.Shard != d.Shards()[shard] || e.Offset < off || e.Offset > off+int64(len(data))+2048 {
				t.Errorf("%v", err)
			}
			return
		}
		if s.Index != 7 || s.Offset < off {
			t.Errorf("%+v", s)
		}
		for _, x := range s.Fields {
			at := x.Offset - off
			if x.Kind == format.Bytes && !bytes.Equal(x.Data, data[at:at+int64(len(x.Data))]) {
				t.Errorf("field %s is not what stands at %d", x.Name, at)
			}
		}
	})
}

// FuzzPlaces gives any bytes for an index: it is refused, or leads to samples or
// errors within the shard.
func FuzzPlaces(f *testing.F) {
	tar, records := tarOf(f, 3), examplesOf(3)
	for _, s := range []string{"v1.2 1\njpg 512 100 k0000.jpg\n", "v1.1 1\njpg 512 100\n", "0 172\n172 172\n344 172\n", "v1.2 0\n"} {
		f.Add(true, []byte(s))
		f.Add(false, []byte(s))
	}
	f.Fuzz(func(t *testing.T, record bool, idx []byte) {
		name, data := "a.tar", tar
		if record {
			name, data = "a.tfrecord", records
		}
		st := store.FS(fstest.MapFS{name: {Data: data}, name + ".idx": {Data: idx}})
		d := reader.New(st, []string{name}, &reader.Options{CacheDir: "-", Scan: reader.ScanNever})
		m, err := d.Manifest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Places(t.Context(), 0)
		if (err == nil) != (m.Shards[0].Samples >= 0) {
			t.Fatalf("%+v, %v", m.Shards[0], err)
		}
		if err != nil {
			return
		}
		for i := range min(p.Len(), 50) {
			off, end := p.At(i)
			if off < 0 || end < off || end > int64(len(data)) {
				t.Fatalf("sample %d from %d to %d of %d", i, off, end, len(data))
			}
			_, _ = d.Sample(t.Context(), 0, int64(i))
		}
	})
}
