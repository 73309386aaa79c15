package tarshard_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tarshard"
)

// written is a sample that was written, and where.
type written struct {
	sample       *format.Sample
	offset, end  int64
	headers      []int64 // of its members
	touched, cut bool
}

// drawShard writes random samples. All have the same fields if uniform.
func drawShard(t *rapid.T, uniform bool) ([]byte, []written) {
	names := []string{"jpg", "cls", "seg.png", "json"}
	fields := rapid.IntRange(1, len(names)).Draw(t, "fields")
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, nil)
	var all []written
	for i := range rapid.IntRange(1, 10).Draw(t, "samples") {
		key := fmt.Sprintf("%s%04d", strings.Repeat("long/", rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "depth")), i)
		s := &format.Sample{Key: []byte(key)}
		if !uniform {
			fields = rapid.IntRange(1, len(names)).Draw(t, "fields")
		}
		x := written{sample: s, offset: w.Offset()}
		at := w.Offset()
		for _, name := range names[:fields] {
			n := rapid.SampledFrom([]int{0, 1, 511, 512, 513, 3000}).Draw(t, "size")
			f := format.Field{Name: name, Data: bytes.Repeat([]byte{byte(i + 1)}, n)}
			s.Fields = append(s.Fields, f)
			size := tarshard.SampleSize(&format.Sample{Key: s.Key, Fields: []format.Field{f}})
			for h := at; h < at+size-int64(n+511)/512*512; h += 512 {
				if h == at || size-int64(n+511)/512*512 == 512 || (h-at)%1024 == 0 {
					x.headers = append(x.headers, h)
				}
			}
			at += size
		}
		if err := w.WriteSample(s); err != nil {
			t.Fatal(err)
		}
		x.end = w.Offset()
		if x.end != at {
			t.Fatalf("SampleSize says %d, WriteSample wrote to %d", at, x.end)
		}
		all = append(all, x)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), all
}

// spoil damages headers, and perhaps cuts the shard.
func spoil(t *rapid.T, data []byte, all []written) []byte {
	for range rapid.IntRange(0, 3).Draw(t, "flips") {
		x := &all[rapid.IntRange(0, len(all)-1).Draw(t, "sample")]
		if x.touched {
			continue // one flip a sample: two might cancel in the sum
		}
		h := rapid.SampledFrom(x.headers).Draw(t, "header")
		data[h+rapid.Int64Range(0, 511).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		x.touched = true
	}
	if rapid.Bool().Draw(t, "cut") {
		n := rapid.IntRange(0, len(data)).Draw(t, "length")
		data = data[:n]
		for i := range all {
			// A cut in the last padding takes nothing away.
			last := all[i].sample.Fields[len(all[i].sample.Fields)-1]
			whole := all[i].end - int64((512-len(last.Data)%512)%512)
			all[i].cut = whole > int64(n)
		}
	}
	return data
}

// TestDamage: under Resync, what was read and what was reported as lost is all
// that was written; samples far from damage are read; none is read by half.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked := rapid.Bool().Draw(t, "asked")
		data, all := drawShard(t, !asked)
		data = spoil(t, data, all)
		o := tarshard.Options{OnError: format.Resync}
		if asked {
			// jpg is in all samples; the rest may be missing, which is no fault.
			o.Fields, o.OnMissing = []string{"jpg", "cls"}, format.MissingSkip
		}
		res := readAll(plain{bytes.NewReader(data)}, o)
		if format.Class(res.err) == "wrong-format" {
			return // the damage is in the very first header
		}
		if res.err != nil {
			t.Fatal(res.err)
		}
		checkDelivered(t, all, res, o.Fields)
		checkAccounted(t, all, res, o.Fields)
	})
}

// checkDelivered: every sample read is one that was written, whole.
func checkDelivered(t *rapid.T, all []written, res result, fields []string) {
	for _, s := range res.samples {
		i := slices.IndexFunc(all, func(x written) bool { return bytes.Equal(x.sample.Key, s.Key) })
		if i < 0 {
			t.Fatalf("sample %q was never written", s.Key)
		}
		if all[i].cut && len(res.samples) == 1 && fields == nil && res.warnings["no-end-marker"] == 1 {
			continue // cut between members, and there is no other sample to judge it by: the warning says so
		}
		if want := expected(all[i].sample, fields); describe([]*format.Sample{s}) != want {
			t.Fatalf("sample\n%swant\n%s", describe([]*format.Sample{s}), want)
		}
	}
}

func expected(s *format.Sample, fields []string) string {
	if fields == nil {
		return describe([]*format.Sample{s})
	}
	c := &format.Sample{Key: s.Key}
	for _, name := range fields {
		if f := s.Field(name); f != nil {
			c.Fields = append(c.Fields, *f)
		}
	}
	return describe([]*format.Sample{c})
}

// checkAccounted: every sample written was read, or lies in a reported loss, or
// lacks a field that was asked for.
func checkAccounted(t *rapid.T, all []written, res result, fields []string) {
	for i, x := range all {
		read := slices.ContainsFunc(res.samples, func(s *format.Sample) bool { return bytes.Equal(s.Key, x.sample.Key) })
		lost := slices.ContainsFunc(res.losses, func(l format.Loss) bool { return l.Offset <= x.offset && x.offset < l.Offset+l.Bytes })
		lacks := fields != nil && len(x.sample.Fields) < len(fields)
		if !read && !lost && !lacks && !x.cut {
			t.Fatalf("sample %q at %d was neither read nor reported lost: %+v", x.sample.Key, x.offset, res.losses)
		}
		hurt := func(i int) bool { return i >= 0 && i < len(all) && (all[i].touched || all[i].cut) }
		// In an archive with extension headers one more may go: the member that
		// damage may have taken one from, and the sample that begins behind it.
		far := hurt(i-2) && slices.ContainsFunc(all, func(x written) bool { return len(x.sample.Key) > 100 })
		if !read && !lacks && !far && !hurt(i-1) && !hurt(i) && !hurt(i+1) {
			t.Fatalf("sample %q was not read, though it and its neighbours are sound: %+v", x.sample.Key, res.losses)
		}
	}
	if cut := slices.ContainsFunc(all, func(x written) bool { return x.cut }); cut && len(res.losses) == 0 && res.warnings["no-end-marker"] == 0 {
		t.Fatal("a shard was cut, and nothing says so")
	}
}

// archive writes members and returns their first blocks by name.
func archive(t testing.TB, names ...string) ([]byte, map[string]int64) {
	t.Helper()
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, nil)
	at := map[string]int64{}
	for _, name := range names {
		at[name] = w.Offset()
		if err := w.WriteMember(name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), at
}

// TestBesideDamage spoils the header of one member of small shards. Members
// are of 1024 bytes each, so the losses can be told by hand.
func TestBesideDamage(t *testing.T) {
	for _, tt := range []struct {
		name    string
		members string
		spoilt  string // its header
		fields  []string
		policy  format.OnError
		want    string // keys and numbers of fields
		losses  string // offset+bytes
		class   string
	}{
		{"stop: the sample before may have been whole", "1.a 1.b 2.a 2.b", "2.a", nil, format.Stop, "1:2", "", "corrupt"},
		{"stop: it lacks what all before had", "1.a 1.b 2.a 2.b 3.a 3.b", "2.b", nil, format.Stop, "1:2", "", "corrupt"},
		{"stop: it has what all before had", "1.a 1.b 2.a 2.b 3.a 3.b", "3.a", nil, format.Stop, "1:2 2:2", "", "corrupt"},
		{"stop: it has what was asked for", "1.a 1.b 2.a 2.b", "2.a", []string{"b"}, format.Stop, "1:1", "", "corrupt"},
		{"stop: it lacks what was asked for", "1.a 1.b 2.a 2.b", "1.b", []string{"a", "b"}, format.Stop, "", "", "corrupt"},
		{"skip ends there too", "1.a 1.b 2.a 2.b", "2.a", nil, format.Skip, "1:2", "4096+0", "corrupt"},
		{"resync: both sides known by the shape", "1.a 1.b 2.a 2.b 3.a 3.b 4.a 4.b", "2.b", nil, format.Resync, "1:2 3:2 4:2", "2048+2048", ""},
		{"resync: head of a sample", "1.a 1.b 2.a 2.b 3.a 3.b", "2.a", nil, format.Resync, "1:2 3:2", "2048+2048", ""},
		{"resync: the first sample is judged by the next whole one", "1.a 1.b 2.a 2.b 3.a 3.b", "2.a", nil, format.Resync, "1:2 3:2", "2048+2048", ""},
		{"resync: and dropped if that has more", "1.a 1.b 2.a 2.b 3.a 3.b", "1.b", nil, format.Resync, "3:2", "0+4096", ""},
		{"resync: shapes that differ prove nothing", "1.a 2.a 2.b 3.a 3.b 4.a 5.a", "3.b", nil, format.Resync, "1:1 2:2 5:1", "3072+3072", ""},
		{"resync: fields asked for prove it", "1.a 2.a 2.b 3.a 3.b 4.a 5.a", "3.b", []string{"a"}, format.Resync, "1:1 2:1 3:1 4:1 5:1", "4096+1024", ""},
		{"resync: a sample cut in two is dropped on both sides", "0.a 0.b 0.c 1.a 1.b 1.c 2.a 2.b 2.c", "1.b", nil, format.Resync, "0:3 2:3", "3072+3072", ""},
		{"resync: last header", "1.a 1.b 2.a 2.b", "2.b", nil, format.Resync, "1:2", "2048+2048", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, at := archive(t, strings.Fields(tt.members)...)
			data[at[tt.spoilt]+148] ^= 4
			for name, r := range readers(data) {
				res := readAll(r, tarshard.Options{OnError: tt.policy, Fields: tt.fields})
				var keys, losses []string
				for _, s := range res.samples {
					keys = append(keys, fmt.Sprintf("%s:%d", s.Key, len(s.Fields)))
				}
				for _, l := range res.losses {
					losses = append(losses, fmt.Sprintf("%d+%d", l.Offset, l.Bytes))
				}
				if have := strings.Join(keys, " "); have != tt.want {
					t.Errorf("%s: samples %s, want %s", name, have, tt.want)
				}
				if have := strings.Join(losses, " "); tt.losses != "4096+0" && have != tt.losses {
					t.Errorf("%s: losses %s, want %s", name, have, tt.losses)
				}
				if format.Class(res.err) != tt.class {
					t.Errorf("%s: error %v", name, res.err)
				}
			}
		})
	}
}
