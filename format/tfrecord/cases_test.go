package tfrecord_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tfrecord"
)

const cases = "../../fixtures/cases"

// outcome is what a reading of a case comes to. The fields of cases.json that
// only other packages check are left out.
type outcome struct {
	Records     []string       `json:"records"`
	AlsoRecords []string       `json:"records_also_ok"`
	Skipped     map[string]int `json:"skipped"`
	Error       *fault         `json:"error"`
	MaxAllocMB  uint64         `json:"max_alloc_mb"`
}

type fault struct {
	Class  string   `json:"class"`
	AlsoOK []string `json:"also_ok"`
	Offset *int64   `json:"offset"`
	Record *int64   `json:"record"`
	End    *int64   `json:"end"`
	Hint   string   `json:"hint"`
}

type testCase struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Files  []string `json:"files"`
	Expect struct {
		outcome
		Alternatives []struct {
			Policy string `json:"policy"`
			outcome
		} `json:"alternatives"`
		Requests []struct {
			Op string `json:"op"`
			outcome
		} `json:"requests"`
		Prefixes *struct {
			Boundaries []int    `json:"boundaries"`
			Records    []string `json:"records"`
		} `json:"prefixes"`
	} `json:"expect"`
}

func load(t *testing.T) []testCase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cases, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []testCase
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(c testCase) bool { return c.Kind != "tfrecord" })
}

func (c *testCase) read(t *testing.T) []byte {
	t.Helper()
	var all []byte
	for _, name := range c.Files {
		if filepath.Ext(name) == ".idx" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(cases, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// open returns a Reader of a shard, compressed or not, as whoever opens one
// does it.
func open(t *testing.T, shard []byte, o *tfrecord.Options) *tfrecord.Reader {
	t.Helper()
	var in io.Reader = bytes.NewReader(shard)
	if !tfrecord.Sniff(shard) {
		z, err := compress.NewReader(in, compress.Sniff(shard), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		in = z
	}
	return tfrecord.NewReader(in, o)
}

// got is what a Reader delivered, in the terms of outcome.
type got struct {
	records []string
	losses  []format.Loss
	err     error
}

func readAll(r *tfrecord.Reader) (g got) {
	for p, err := range r.Records() {
		if err != nil {
			g.err = err
			break
		}
		sum := sha256.Sum256(p)
		g.records = append(g.records, hex.EncodeToString(sum[:]))
	}
	return g
}

func (g *got) check(t *testing.T, want *outcome) {
	t.Helper()
	if !slices.Equal(g.records, want.Records) && (want.AlsoRecords == nil || !slices.Equal(g.records, want.AlsoRecords)) {
		t.Errorf("read %d records %.8v, want %d: %.8v", len(g.records), g.records, len(want.Records), want.Records)
	}
	if want.Skipped != nil {
		skipped := make(map[string]int)
		for _, l := range g.losses {
			skipped[format.Class(l.Err)]++
		}
		if len(skipped) != len(want.Skipped) {
			t.Errorf("skipped %v, want %v", skipped, want.Skipped)
		}
		for class, n := range want.Skipped {
			if skipped[class] != n {
				t.Errorf("skipped %v, want %v", skipped, want.Skipped)
			}
		}
	}
	want.Error.check(t, g.err)
}

func (f *fault) check(t *testing.T, err error) {
	t.Helper()
	if f == nil {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
		return
	}
	var e *format.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want an *Error of class %s", err, f.Class)
	}
	if class := format.Class(err); class != f.Class && !slices.Contains(f.AlsoOK, class) {
		t.Errorf("error %q, want class %s", err, f.Class)
	}
	if f.Offset != nil && e.Offset != *f.Offset {
		t.Errorf("error %q at offset %d, want %d", err, e.Offset, *f.Offset)
	}
	if f.Record != nil && e.Record != *f.Record {
		t.Errorf("error %q at record %d, want %d", err, e.Record, *f.Record)
	}
	if f.End != nil && !strings.Contains(e.Detail, "at "+itoa(*f.End)) {
		t.Errorf("error %q does not say that the stream ends at %d", err, *f.End)
	}
	if !strings.Contains(e.Detail, f.Hint) {
		t.Errorf("error %q does not hint at %s", err, f.Hint)
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

func (c *testCase) run(t *testing.T, policy string, want *outcome) {
	modes := map[string]format.OnError{"": format.Stop, "on-error=stop": format.Stop, "on-error=skip": format.Skip, "on-error=resync": format.Resync}
	mode, ok := modes[policy]
	if !ok {
		t.Fatalf("policy %q is not known", policy)
	}
	var losses []format.Loss
	var before, after runtime.MemStats
	shard := c.read(t)
	r := open(t, shard, &tfrecord.Options{OnError: mode, OnLoss: func(l format.Loss) { losses = append(losses, l) }})
	runtime.ReadMemStats(&before)
	g := readAll(r)
	runtime.ReadMemStats(&after)
	g.losses = losses
	g.check(t, want)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; want.MaxAllocMB > 0 && mb > want.MaxAllocMB {
		t.Errorf("allocated %d MiB, may %d", mb, want.MaxAllocMB)
	}
}

func TestCases(t *testing.T) {
	ran := 0
	for _, c := range load(t) {
		if c.Expect.Records == nil || c.Name == "c8_other_files_index" {
			continue // read through an index, or by its own test
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			c.run(t, "", &c.Expect.outcome)
			for _, a := range c.Expect.Alternatives {
				t.Run(a.Policy, func(t *testing.T) { c.run(t, a.Policy, &a.outcome) })
			}
		})
	}
	if ran < 30 {
		t.Errorf("only %d cases ran", ran)
	}
}

// TestCasesRepaired reads what repair is to keep, which is what Resync
// delivers.
func TestCasesRepaired(t *testing.T) {
	ran := 0
	for _, c := range load(t) {
		for _, q := range c.Expect.Requests {
			if q.Op != "repair" {
				continue
			}
			ran++
			t.Run(c.Name, func(t *testing.T) { c.run(t, "on-error=resync", &outcome{Records: q.Records}) })
		}
	}
	if ran == 0 {
		t.Error("no case ran")
	}
}

func TestEveryPrefix(t *testing.T) {
	for _, c := range load(t) {
		p := c.Expect.Prefixes
		if p == nil {
			continue
		}
		shard := c.read(t)
		for n := range len(shard) + 1 {
			k := 0
			for k+1 < len(p.Boundaries) && p.Boundaries[k+1] <= n {
				k++
			}
			want := outcome{Records: p.Records[:k]}
			if !slices.Contains(p.Boundaries, n) {
				offset, record, end := int64(p.Boundaries[k]), int64(k), int64(n)
				want.Error = &fault{Class: "truncated", Offset: &offset, Record: &record, End: &end}
			}
			// Not by open: what is shorter than a header is no compression.
			g := readAll(tfrecord.NewReader(bytes.NewReader(shard[:n]), nil))
			g.check(t, &want)
		}
		return
	}
	t.Error("the case of prefixes is not there")
}
