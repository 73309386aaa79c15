package shard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfrecord"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/shard"
)

// drawn is a shard that was written, and where its parts are.
type drawn struct {
	bytes   []byte
	samples []drawnSample
	end     int64 // of the samples: there the end marker of a tar begins
}

type drawnSample struct {
	text    string // as sampleText has it
	fields  []string
	headers []int64 // offsets of the headers of a tar's members; of a record's frame
	size    int64   // of a record's frame
}

const block = 512

// drawTar draws samples that all have the same fields, and writes them.
func drawTar(t *rapid.T) *drawn {
	d := &drawn{}
	names := []string{"jpg", "cls", "seg.png", "json"}[:rapid.IntRange(1, 4).Draw(t, "fields")]
	var b bytes.Buffer
	w := tarshard.NewWriter(&b, nil)
	for i := range rapid.IntRange(0, 12).Draw(t, "samples") {
		s := &format.Sample{Key: fmt.Appendf(nil, "dir/%04d", i)}
		var one drawnSample
		for _, name := range names {
			data := rapid.SliceOfN(rapid.Byte(), 0, 1200).Draw(t, name)
			s.Fields = append(s.Fields, format.Field{Name: name, Data: data})
			one.headers = append(one.headers, d.end)
			d.end += block + (int64(len(data))+block-1)/block*block
			one.fields = append(one.fields, fieldText(name, data))
		}
		one.text = keyedText(s.Key, one.fields)
		d.samples = append(d.samples, one)
		if err := w.WriteSample(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d.bytes = b.Bytes()
	return d
}

// drawRecords draws raw records, and writes them.
func drawRecords(t *rapid.T) *drawn {
	d := &drawn{}
	for range rapid.IntRange(1, 12).Draw(t, "records") {
		data := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
		d.samples = append(d.samples, drawnSample{
			text:    keyedText(nil, []string{fieldText(reader.RawField, data)}),
			headers: []int64{d.end},
			size:    int64(len(data)) + 16,
		})
		d.bytes = tfrecord.AppendFrame(d.bytes, data)
		d.end = int64(len(d.bytes))
	}
	return d
}

func fieldText(name string, data []byte) string { return fmt.Sprintf(" %s=%x", name, data) }

func keyedText(key []byte, fields []string) string {
	text := fmt.Sprintf("%q", key)
	for _, f := range fields {
		text += f
	}
	return text
}

// texts reads a shard to its end, which must be reached.
func texts(t *rapid.T, path string) []string {
	var all []string
	o := &reader.Options{Type: reader.Raw}
	for s, err := range reader.New(&store.Local{}, []string{path}, o).Samples(context.Background()) {
		if err != nil {
			t.Fatalf("the repaired shard: %v", err)
		}
		var fields []string
		for _, f := range s.Fields {
			fields = append(fields, fieldText(f.Name, f.Data))
		}
		all = append(all, keyedText(s.Key, fields))
	}
	return all
}

// checkDamaged verifies and repairs damaged bytes. It returns whether a fault
// was found, and the samples of the repaired shard, which itself must be
// without fault. Without an output there are none.
func checkDamaged(t *rapid.T, dir, suffix string, damaged []byte) (faulty bool, left []string) {
	in, out := filepath.Join(dir, "in"+suffix), filepath.Join(dir, "out"+suffix)
	if err := os.WriteFile(in, damaged, 0o666); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(out)
	ctx := context.Background()
	verify := func(name string) (v *shard.Verification) {
		o := &shard.VerifyOptions{Options: shard.Options{Read: reader.Options{Type: reader.Raw}}}
		err := shard.Verify(ctx, []string{name}, o, func(one *shard.Verification) error {
			v = one
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := verify(in)
	for _, err := range before.Errors {
		if e := format.AsError(err); e == nil || e.Shard != in {
			t.Fatalf("a fault that does not say where: %v", err)
		}
	}
	c, err := shard.Repair(ctx, in, out, nil)
	if err != nil {
		if _, e := os.Lstat(out); e == nil {
			t.Fatalf("after %v there is an output", err)
		}
		if !errors.Is(err, format.ErrWrongFormat) {
			t.Fatalf("repair: %v", err)
		}
		return true, nil
	}
	after := verify(out)
	left = texts(t, out)
	if !after.OK() || after.Samples != c.Samples || int(c.Samples) != len(left) {
		t.Fatalf("the repaired shard has %d samples of %d and the faults %v", len(left), c.Samples, after.Errors)
	}
	if before.OK() && c.Lost > 0 {
		t.Fatalf("nothing is wrong, and repair lost %v", c.Losses)
	}
	return !before.OK(), left
}

// subsequence fails unless every text of part is one of whole, in order.
// changed are places in whole whose text may be any.
func subsequence(t *rapid.T, part []string, whole []drawnSample, changed int) {
	at := 0
	for _, text := range part {
		for at < len(whole) && whole[at].text != text && at != changed {
			at++
		}
		if at == len(whole) {
			t.Fatalf("%.200s is not, or not there, in what was written", text)
		}
		at++
	}
}

// TestAnyDamageToRecordsIsFound damages a TFRecord shard in one place.
func TestAnyDamageToRecordsIsFound(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := drawRecords(t)
		damaged := slices.Clone(d.bytes)
		lost := 0 // records that have to be missing
		want := true
		if rapid.Bool().Draw(t, "cut") {
			n := rapid.IntRange(0, len(damaged)-1).Draw(t, "length")
			damaged = damaged[:n]
			for _, s := range d.samples {
				if s.headers[0]+s.size > int64(n) {
					lost++
				}
				want = want && s.headers[0] != int64(n) // a cut between records is a shorter shard
			}
		} else {
			// A burst of up to 32 bits is what a CRC-32 always shows.
			at := rapid.IntRange(0, len(damaged)-1).Draw(t, "at")
			n := min(rapid.IntRange(1, 4).Draw(t, "bytes"), len(damaged)-at)
			for i := range n {
				damaged[at+i] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
			}
			for _, s := range d.samples {
				if s.headers[0] < int64(at+n) && s.headers[0]+s.size > int64(at) {
					lost++
				}
			}
		}
		faulty, left := checkDamaged(t, dir, ".tfrecord", damaged)
		if faulty != want {
			t.Fatalf("faulty is %v, want %v", faulty, want)
		}
		subsequence(t, left, d.samples, -1)
		if len(left) != len(d.samples)-lost {
			t.Fatalf("%d records are left of %d, of which %d were damaged", len(left), len(d.samples), lost)
		}
	})
}

// TestDamageToTarHeadersIsFound damages a tar in one place. Payloads and
// padding have no checksum; headers have.
func TestDamageToTarHeadersIsFound(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := drawTar(t)
		damaged := slices.Clone(d.bytes)
		if rapid.Bool().Draw(t, "cut") {
			n := rapid.Int64Range(0, int64(len(damaged))-1).Draw(t, "length")
			faulty, left := checkDamaged(t, dir, ".tar", damaged[:n])
			if want := n < d.end+2*block; faulty != want {
				t.Fatalf("cut at %d of %d: faulty is %v", n, len(damaged), faulty)
			}
			d.checkCut(t, left, n)
			return
		}
		at := rapid.Int64Range(0, int64(len(damaged))-1).Draw(t, "at")
		damaged[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		faulty, left := checkDamaged(t, dir, ".tar", damaged)
		sample, in := d.find(at)
		switch {
		case in == inHeader && !faulty, in == inMarker && !faulty, in == inPayload && faulty:
			t.Fatalf("changed at %d, part %d of sample %d: faulty is %v", at, in, sample, faulty)
		}
		changed := -1
		if in == inPayload {
			changed = sample
			if len(left) != len(d.samples) {
				t.Fatalf("%d samples of %d are left, and no header was damaged", len(left), len(d.samples))
			}
		}
		subsequence(t, left, d.samples, changed)
		// No more than the sample itself and its neighbours, of which it is not
		// known whether they are whole.
		if len(left) < len(d.samples)-3 {
			t.Fatalf("%d samples of %d are left after one damaged header", len(left), len(d.samples))
		}
	})
}

type region int

const (
	inHeader  region = iota
	inNumber         // the end of the checksum field, which some fill otherwise
	inPayload        // or its padding
	inMarker
	inFill // behind the end marker
)

// find tells in what an offset of a tar is.
func (d *drawn) find(at int64) (sample int, in region) {
	switch {
	case at >= d.end+2*block:
		return len(d.samples), inFill
	case at >= d.end:
		return len(d.samples), inMarker
	}
	for i, s := range d.samples {
		for _, h := range s.headers {
			if at < h {
				return sample, in
			}
			sample, in = i, inPayload
			switch {
			case at < h+154:
				in = inHeader
			case at < h+156:
				in = inNumber
			case at < h+block:
				in = inHeader
			}
		}
	}
	return sample, in
}

// checkCut holds what is left of a tar that was cut against what was written:
// the samples that are whole, except that of one cut between members nobody
// knows that there were more.
func (d *drawn) checkCut(t *rapid.T, left []string, n int64) {
	whole := 0
	for whole < len(d.samples) {
		next := d.end
		if whole+1 < len(d.samples) {
			next = d.samples[whole+1].headers[0]
		}
		if next > n {
			break
		}
		whole++
	}
	for i, text := range left {
		if i >= len(d.samples) || i > whole {
			t.Fatalf("%d samples are left of %d whole ones", len(left), whole)
		}
		if s := d.samples[i]; text != s.text {
			k := bytes.Count([]byte(text), []byte("="))
			key, _, _ := bytes.Cut([]byte(s.text), []byte(" "))
			if i != len(left)-1 || text != string(key)+keyedText(nil, s.fields[:k])[len(`""`):] {
				t.Fatalf("sample %d came back as %.200s", i, text)
			}
		}
	}
	if len(left) < whole-1 {
		t.Fatalf("%d samples are left of %d whole ones", len(left), whole)
	}
}
