package tarshard_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/format/tarshard"
)

const casesDir = "../../fixtures/cases"

type wantSample struct {
	Key    string             `json:"key"`
	Fields map[string]*string `json:"fields"` // SHA-256; nil: filled
	Bytes  map[string]int64   `json:"bytes"`
}

type wantError struct {
	Class        string                   `json:"class"`
	AlsoOK       []string                 `json:"also_ok"`
	AlsoAt       []struct{ Offset int64 } `json:"also_ok_at"`
	Key          *string                  `json:"key"`
	Field        *string                  `json:"field"`
	Member       *string                  `json:"member"`
	Offset       *int64                   `json:"offset"`
	SampleOffset *int64                   `json:"sample_offset"`
	End          *int64                   `json:"end"`
	Hint         string                   `json:"hint"`
	Seen         []string                 `json:"seen"`
}

type outcome struct {
	Op            string           `json:"op"`
	Fields        []string         `json:"fields"`
	OnMissing     string           `json:"on_missing"`
	Policy        string           `json:"policy"`
	Samples       []wantSample     `json:"samples"`
	SamplesAlsoOK [][]wantSample   `json:"samples_also_ok"`
	SamplesAtMost []wantSample     `json:"samples_at_most"`
	Values        []string         `json:"values"`
	Skipped       map[string]int64 `json:"skipped"`
	Warnings      map[string]int64 `json:"warnings"`
	Error         *wantError       `json:"error"`
}

type testCase struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Files   []string `json:"files"`
	Compose []struct {
		File  string `json:"file"`
		Zeros int64  `json:"zeros"`
	} `json:"compose"`
	Expect struct {
		outcome
		Request struct {
			Fields    []string `json:"fields"`
			OnMissing string   `json:"on_missing"`
		} `json:"request"`
		Requests     []outcome `json:"requests"`
		Alternatives []outcome `json:"alternatives"`
		Index        []struct {
			Name   string `json:"name"`
			Offset int64  `json:"offset"`
			Size   int64  `json:"size"`
		} `json:"index"`
		Mtime map[string]int64 `json:"mtime"`
	} `json:"expect"`
}

func loadCases(t testing.TB) []testCase {
	raw, err := os.ReadFile(filepath.Join(casesDir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all, mine []testCase
	// The key "samples_at_most" and its kin are used by some kinds only.
	if err := json.Unmarshal(filterKinds(t, raw), &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == "b9_stale_index" || c.Name == "b4_repeat_empty" {
			continue // of an index, and of a reader that repeats shards
		}
		mine = append(mine, c)
	}
	if len(mine) < 40 {
		t.Fatalf("only %d cases", len(mine))
	}
	return mine
}

func filterKinds(t testing.TB, raw []byte) []byte {
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	var mine []json.RawMessage
	for _, c := range all {
		var k struct{ Kind string }
		if err := json.Unmarshal(c, &k); err != nil {
			t.Fatal(err)
		}
		if k.Kind == "keys" || k.Kind == "container" {
			mine = append(mine, c)
		}
	}
	out, err := json.Marshal(mine)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// result is what reading one source after the other gave.
type result struct {
	samples  []*format.Sample
	skipped  map[string]int64
	warnings map[string]int64
	losses   []format.Loss
	err      error
}

// open decompresses as the content says.
func open(t testing.TB, path string) io.Reader {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return decompressed(t, raw)
}

func decompressed(t testing.TB, raw []byte) io.Reader {
	kind := compress.None
	if !tarshard.Sniff(raw[:min(len(raw), 512)]) {
		kind = compress.Sniff(raw[:min(len(raw), compress.PeekSize)])
	}
	r, err := compress.NewReader(bytes.NewReader(raw), kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func readAll(r io.Reader, o tarshard.Options) result {
	var res result
	res.read(r, o)
	return res
}

func (res *result) read(r io.Reader, o tarshard.Options) {
	o.OnLoss = func(l format.Loss) { res.losses = append(res.losses, l) }
	rd := tarshard.NewReader(r, &o)
	for s, err := range rd.Samples() {
		if err != nil {
			res.err = err
			break
		}
		res.samples = append(res.samples, s.Clone())
	}
	res.skipped = addTo(res.skipped, rd.Skipped())
	res.warnings = addTo(res.warnings, rd.Warnings())
	if c, ok := r.(*compress.Reader); ok && c.Trailing() {
		res.warnings["trailing-garbage"]++
	}
}

func addTo[K ~string](dst map[string]int64, src map[K]int64) map[string]int64 {
	if dst == nil {
		dst = map[string]int64{}
	}
	for k, n := range src {
		dst[string(k)] += n
	}
	return dst
}

func TestCases(t *testing.T) {
	for _, c := range loadCases(t) {
		if c.Compose != nil {
			continue // TestHuge
		}
		t.Run(c.Name, func(t *testing.T) {
			want := c.Expect.outcome
			want.Fields, want.OnMissing = c.Expect.Request.Fields, c.Expect.Request.OnMissing
			check(t, c, want, "")
			for _, r := range c.Expect.Requests {
				if r.Op == "read" {
					t.Run("request", func(t *testing.T) { check(t, c, r, r.Policy) })
				}
			}
			for _, a := range c.Expect.Alternatives {
				a.Fields = want.Fields
				if a.Policy == "strict" {
					continue // Warnings tells what a strict reader would make of it
				}
				t.Run(a.Policy, func(t *testing.T) { check(t, c, a, a.Policy) })
			}
			if c.Expect.Index != nil {
				checkIndex(t, c)
			}
		})
	}
}

// check reads a case by a policy and compares.
func check(t *testing.T, c testCase, want outcome, policy string) {
	t.Helper()
	o := tarshard.Options{Shard: "s.tar"}
	if len(want.Fields) > 0 {
		o.Fields = want.Fields
	}
	for _, p := range []string{policy, "on-missing=" + want.OnMissing} {
		switch p {
		case "key=last-dot":
			o.LastDot = true
		case "key=raw":
			o.KeyRaw = true
		case "on-error=skip":
			o.OnError = format.Skip
		case "on-duplicate=keep-first":
			o.OnDuplicate = format.KeepFirst
		case "on-duplicate=keep-last":
			o.OnDuplicate = format.KeepLast
		case "on-missing=skip":
			o.OnMissing = format.MissingSkip
		case "on-missing=fill":
			o.OnMissing = format.MissingFill
		case "on-missing=error", "on-missing=", "", "key=first-dot":
		default:
			t.Fatalf("unknown policy %q", p)
		}
	}
	var res result
	for _, f := range c.Files {
		if !strings.HasSuffix(f, ".idx") && res.err == nil {
			res.read(open(t, filepath.Join(casesDir, f)), o)
		}
	}
	checkSamples(t, want, res)
	checkCounts(t, "skipped", want.Skipped, res.skipped)
	checkCounts(t, "warnings", want.Warnings, res.warnings)
	checkError(t, want.Error, res.err)
}

func checkSamples(t *testing.T, want outcome, res result) {
	t.Helper()
	if want.Values != nil {
		var have []string
		for _, s := range res.samples {
			have = append(have, sum(s.Fields[0].Data))
		}
		if !slices.Equal(have, want.Values) {
			t.Errorf("values %v, want %v", have, want.Values)
		}
		return
	}
	have := describe(res.samples)
	allowed := []string{wanted(want.Samples)}
	for _, a := range want.SamplesAlsoOK {
		allowed = append(allowed, wanted(a))
	}
	if want.SamplesAtMost != nil {
		allowed = allowed[:0]
		for n := range len(want.SamplesAtMost) + 1 {
			allowed = append(allowed, wanted(want.SamplesAtMost[:n]))
		}
	}
	if !slices.Contains(allowed, have) {
		t.Errorf("samples\n%s, want\n%s", have, strings.Join(allowed, "or\n"))
	}
}

func describe(samples []*format.Sample) string {
	var b strings.Builder
	for _, s := range samples {
		lines := map[string]*string{}
		for _, f := range s.Fields {
			if f.Data == nil {
				lines[strings.ToLower(f.Name)] = nil
				continue
			}
			h := sum(f.Data)
			lines[strings.ToLower(f.Name)] = &h
		}
		b.WriteString(line(string(s.Key), lines))
	}
	return b.String()
}

func wanted(samples []wantSample) string {
	var b strings.Builder
	for _, s := range samples {
		b.WriteString(line(s.Key, s.Fields))
	}
	return b.String()
}

func line(key string, fields map[string]*string) string {
	var parts []string
	for name, h := range fields {
		v := "null"
		if h != nil {
			v = (*h)[:12]
		}
		parts = append(parts, name+"="+v)
	}
	slices.Sort(parts)
	return key + ": " + strings.Join(parts, " ") + "\n"
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func checkCounts(t *testing.T, what string, want, have map[string]int64) {
	t.Helper()
	if want == nil {
		return
	}
	if fmt.Sprint(want) != fmt.Sprint(have) {
		t.Errorf("%s %v, want %v", what, have, want)
	}
}

func checkError(t *testing.T, want *wantError, err error) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
		return
	}
	var e *format.Error
	if err == nil || !asError(err, &e) {
		t.Errorf("error %v, want class %s", err, want.Class)
		return
	}
	if class := format.Class(err); class != want.Class && !slices.Contains(want.AlsoOK, class) {
		t.Errorf("class %s, want %s: %v", class, want.Class, err)
	}
	offsets := []int64{}
	for _, o := range []*int64{want.Offset, want.SampleOffset} {
		if o != nil {
			offsets = append(offsets, *o)
		}
	}
	if len(offsets) > 0 && !slices.Contains(offsets, e.Offset) {
		t.Errorf("offset %d, want %v: %v", e.Offset, offsets, err)
	}
	if want.Key != nil && e.Key != *want.Key {
		t.Errorf("key %q, want %q: %v", e.Key, *want.Key, err)
	}
	if want.Field != nil && e.Field != *want.Field {
		t.Errorf("field %q, want %q: %v", e.Field, *want.Field, err)
	}
	says := []string{want.Hint}
	if want.Member != nil {
		says = append(says, fmt.Sprintf("%q", *want.Member))
	}
	if want.End != nil {
		says = append(says, fmt.Sprint(*want.End))
	}
	for _, s := range append(says, want.Seen...) {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the message does not name %q: %v", s, err)
		}
	}
	if e.Shard != "s.tar" {
		t.Errorf("shard %q", e.Shard)
	}
}

func asError(err error, e **format.Error) bool {
	x, ok := err.(*format.Error)
	*e = x
	return ok
}

// checkIndex compares where payloads stand, by Scanner over the stream and
// over random access, by Reader and by CheckAt.
func checkIndex(t *testing.T, c testCase) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(casesDir, c.Files[0]))
	if err != nil {
		t.Fatal(err)
	}
	ra := bytes.NewReader(raw)
	var want []string
	for _, m := range c.Expect.Index {
		want = append(want, fmt.Sprint(m.Name, " ", m.Offset, " ", m.Size))
		if err := tarshard.CheckAt(ra, m.Offset, m.Size, m.Name); err != nil {
			t.Errorf("CheckAt: %v", err)
		}
	}
	for name, s := range map[string]*tarshard.Scanner{
		"stream": tarshard.NewScanner(bytes.NewReader(raw), nil),
		"at":     tarshard.NewScannerAt(ra, int64(len(raw)), nil),
	} {
		have, err := listed(s)
		if err != nil || !slices.Equal(have, want) {
			t.Errorf("%s: %v %v, want %v", name, have, err, want)
		}
	}
	var have []string
	for _, s := range readAll(bytes.NewReader(raw), tarshard.Options{}).samples {
		for _, f := range s.Fields {
			have = append(have, fmt.Sprint(string(s.Key), ".", f.Name, " ", f.Offset, " ", len(f.Data)))
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("Reader: %v, want %v", have, want)
	}
}

func listed(s *tarshard.Scanner) (lines []string, err error) {
	for e, err := range s.Entries() {
		if err != nil {
			return lines, err
		}
		for _, m := range e.Members {
			lines = append(lines, fmt.Sprint(string(m.Name), " ", m.Data, " ", m.Size))
		}
	}
	return lines, nil
}

func TestMtimeBefore1970(t *testing.T) {
	for _, c := range loadCases(t) {
		for name, want := range c.Expect.Mtime {
			w := tarshard.NewWalker(open(t, filepath.Join(casesDir, c.Files[0])), nil)
			for m, err := w.Next(); err == nil; m, err = w.Next() {
				if string(m.Name) == name && (m.Seconds != want || m.ModTime().Unix() != want) {
					t.Errorf("%s: mtime %d, want %d", name, m.Seconds, want)
				}
			}
		}
	}
}
