package reader_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

const cases = "../fixtures/cases/"

// readCase is what reading needs of a case; see fixtures/cases/README.md.
type readCase struct {
	Name, Kind string
	Files      []string
	Compose    []struct {
		File  string
		Zeros int64
	}
	Expect struct {
		outcome
		Request struct{ Fields []string }
		Index   []struct {
			Name         string
			Offset, Size int64
		}
		Requests, Alternatives []outcome
	}
}

// outcome is what is delivered under a policy or to a request.
type outcome struct {
	Op, Policy, Epochs string
	Fields             []string
	OnMissing          string `json:"on_missing"`
	Samples            []caseSample
	SamplesAlsoOK      [][]caseSample  `json:"samples_also_ok"`
	SamplesAtMost      []caseSample    `json:"samples_at_most"`
	Values             json.RawMessage // hashes, where Op is read
	Records            []string
	RecordsAlsoOK      []string `json:"records_also_ok"`
	RecordsAtMost      []string `json:"records_at_most"`
	Skipped, Warnings  map[string]int64
	Error              *caseError
}

type caseSample struct {
	Key    string
	Fields map[string]*string // null: filled
}

type caseError struct {
	Class        string
	AlsoOK       []string `json:"also_ok"`
	Offset       *int64
	SampleOffset *int64                    `json:"sample_offset"`
	AlsoAt       []struct{ Offset *int64 } `json:"also_ok_at"`
	Record       *int64
	Key          *string
	Field        string
	Hint         string
	Seen         []string
}

// loadCases returns the cases of the kinds that are about shards.
func loadCases(t *testing.T) (all []readCase) {
	t.Helper()
	text, err := os.ReadFile(cases + "cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(text, &raws); err != nil {
		t.Fatal(err)
	}
	for _, raw := range raws {
		var kind struct{ Kind string }
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"keys", "container", "tfrecord"}, kind.Kind) {
			continue
		}
		var c readCase
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// TestCases reads the cases of all formats: by the default policy, by their
// other policies, and as they ask for fields.
func TestCases(t *testing.T) {
	ran := 0
	for _, c := range loadCases(t) {
		if c.Compose != nil || slices.ContainsFunc(c.Files, func(f string) bool { return strings.HasSuffix(f, ".idx") }) {
			continue // see TestNineGiB; indexes are not this package's
		}
		if e := c.Expect; e.Samples != nil || e.Records != nil {
			ran++
			c.hold(t, "default", &reader.Options{Fields: e.Request.Fields}, &e.outcome)
		}
		for _, e := range append(c.Expect.Requests, c.Expect.Alternatives...) {
			if e.Op != "" && e.Op != "read" || e.Epochs != "" {
				continue
			}
			if o, ok := e.options(); ok {
				ran++
				c.hold(t, fmt.Sprint(e.Policy, e.Fields, e.OnMissing), o, &e)
			}
		}
	}
	if ran < 90 {
		t.Errorf("only %d outcomes were held", ran)
	}
}

// options translates the name of a policy, and tells whether there is such an
// option: that a warning is an error is for Verify to say.
func (e *outcome) options() (*reader.Options, bool) {
	o := &reader.Options{Fields: e.Fields}
	if len(e.Fields) == 0 {
		o.Fields = nil
	}
	name := e.Policy
	if e.OnMissing != "" {
		name = "on-missing=" + e.OnMissing
	}
	switch name {
	case "", "on-missing=error":
	case "key=last-dot":
		o.LastDot = true
	case "key=raw":
		o.KeyRaw = true
	case "on-error=skip":
		o.OnError = format.Skip
	case "on-error=resync":
		o.OnError = format.Resync
	case "on-duplicate=keep-first":
		o.OnDuplicate = format.KeepFirst
	case "on-duplicate=keep-last":
		o.OnDuplicate = format.KeepLast
	case "on-missing=skip":
		o.OnMissing = format.MissingSkip
	case "on-missing=fill":
		o.OnMissing = format.MissingFill
	default:
		return nil, false
	}
	return o, true
}

// read is what came of reading a case.
type read struct {
	samples, records  []string
	skipped, warnings int64
	err               error
}

func readAll(t *testing.T, names []string, o *reader.Options) (r read) {
	t.Helper()
	d := reader.New(&store.Local{}, names, o)
	for i := range d.Shards() {
		s, err := d.Shard(t.Context(), i)
		if err != nil {
			r.err = err
			return r
		}
		defer s.Close()
		for sample, err := range s.Samples() {
			if err != nil {
				r.err = err
				break
			}
			fields := make(map[string]*string)
			for _, f := range sample.Fields {
				if f.Data == nil {
					fields[strings.ToLower(f.Name)] = nil
					continue
				}
				sum := hashOf(f.Data)
				fields[strings.ToLower(f.Name)] = &sum
				r.records = append(r.records, sum)
			}
			r.samples = append(r.samples, caseSample{string(sample.Key), fields}.text())
		}
		for _, n := range s.Skipped() {
			r.skipped += n
		}
		for _, n := range s.Warnings() {
			r.warnings += n
		}
		if r.err != nil {
			return r
		}
	}
	return r
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (s caseSample) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", s.Key)
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		sum := "filled"
		if p := s.Fields[name]; p != nil {
			sum = *p
		}
		fmt.Fprintf(&b, " %s=%s", name, sum)
	}
	return b.String()
}

func sampleTexts(list []caseSample) []string {
	var all []string
	for _, s := range list {
		all = append(all, s.text())
	}
	return all
}

// hold reads the shards of a case and compares.
func (c *readCase) hold(t *testing.T, what string, o *reader.Options, e *outcome) {
	t.Helper()
	var names []string
	for _, f := range c.Files {
		names = append(names, cases+f)
	}
	if c.Kind == "tfrecord" {
		o.Type = reader.Raw
	}
	got := readAll(t, names, o)
	fail := func(msg string, args ...any) {
		t.Helper()
		t.Errorf("%s, %s: %s", c.Name, what, fmt.Sprintf(msg, args...))
	}
	var delivered []string
	var allowed [][]string
	switch {
	case e.Values != nil:
		var values []string
		if err := json.Unmarshal(e.Values, &values); err != nil {
			fail("%v", err)
		}
		delivered, allowed = got.records, [][]string{values}
	case e.Records != nil:
		delivered, allowed = got.records, [][]string{e.Records}
		if e.RecordsAlsoOK != nil {
			allowed = append(allowed, e.RecordsAlsoOK)
		}
	case e.SamplesAtMost != nil:
		delivered = got.samples
		most := sampleTexts(e.SamplesAtMost)
		for n := range len(most) + 1 {
			allowed = append(allowed, most[:n])
		}
	case e.Samples != nil:
		delivered, allowed = got.samples, [][]string{sampleTexts(e.Samples)}
		for _, list := range e.SamplesAlsoOK {
			allowed = append(allowed, sampleTexts(list))
		}
	default:
		fail("it says nothing of what is delivered")
	}
	if !slices.ContainsFunc(allowed, func(want []string) bool { return slices.Equal(delivered, want) }) {
		fail("delivered\n%s\nwant\n%s", strings.Join(delivered, "\n"), strings.Join(allowed[0], "\n"))
	}
	if e.Skipped != nil && e.Error == nil && got.skipped != total(e.Skipped) {
		fail("%d skipped, want %v", got.skipped, e.Skipped)
	}
	if e.Error == nil && got.warnings != total(e.Warnings) {
		fail("%d warnings, want %v", got.warnings, e.Warnings)
	}
	if (got.err == nil) != (e.Error == nil) {
		fail("%v, want %+v", got.err, e.Error)
	} else if got.err != nil {
		if why := e.Error.differs(got.err); why != "" {
			fail("%v: %s of %+v", got.err, why, *e.Error)
		}
	}
}

func total(counts map[string]int64) (n int64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// differs says in what an error is not the one of a case.
func (e *caseError) differs(err error) string {
	got := format.AsError(err)
	if got == nil {
		return "the type"
	}
	at := []*int64{e.Offset, e.SampleOffset}
	for _, a := range e.AlsoAt {
		at = append(at, a.Offset)
	}
	switch {
	case !slices.Contains(append(e.AlsoOK, e.Class), format.Class(err)):
		return "not the class"
	case e.Offset != nil && !slices.ContainsFunc(at, func(o *int64) bool { return o != nil && *o == got.Offset }):
		return "not the offset"
	case e.Record != nil && got.Record != *e.Record:
		return "not the record"
	case e.Key != nil && got.Key != *e.Key:
		return "not the key"
	case e.Field != "" && !format.EqualName(got.Field, e.Field):
		return "not the field"
	case got.Shard == "" || !strings.Contains(err.Error(), e.Hint):
		return "not the shard or the hint"
	}
	for _, name := range e.Seen {
		if !strings.Contains(err.Error(), name) {
			return "not all fields"
		}
	}
	return ""
}

// composed is the bytes of a case's parts at any offset, zeros included, of
// which none is held.
type composed []section

type section struct {
	data []byte // nil: zeros
	size int64
}

func (c *readCase) compose(t *testing.T) (all composed, size int64) {
	t.Helper()
	for _, p := range c.Compose {
		s := section{size: p.Zeros}
		if p.File != "" {
			var err error
			if s.data, err = os.ReadFile(cases + p.File); err != nil {
				t.Fatal(err)
			}
			s.size = int64(len(s.data))
		}
		all = append(all, s)
		size += s.size
	}
	return all, size
}

func (c composed) ReadAt(p []byte, off int64) (n int, err error) {
	for _, s := range c {
		for off < s.size && n < len(p) {
			k := int(min(s.size-off, int64(len(p)-n)))
			if s.data == nil {
				clear(p[n : n+k])
			} else {
				copy(p[n:], s.data[off:off+int64(k)])
			}
			n, off = n+k, off+int64(k)
		}
		off -= s.size
		if off < 0 {
			off = 0
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// one is a store of one object.
type one struct {
	name string
	r    io.ReaderAt
	size int64
}

func (s one) Open(_ context.Context, name string) (store.Object, error) { return s, nil }

func (s one) List(context.Context, string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) { yield(s.Stat(), nil) }
}

func (s one) Create(context.Context, string) (store.Sink, error) { return nil, format.ErrUnsupported }

func (s one) ReadAt(_ context.Context, p []byte, off int64) (int, error) { return s.r.ReadAt(p, off) }
func (s one) Stat() store.Entry                                          { return store.Entry{Name: s.name, Size: s.size} }
func (s one) Close() error                                               { return nil }

// TestNineGiB reads members that no memory holds: their places, from a few
// blocks at offsets; or whole, which is refused before anything of it is read.
func TestNineGiB(t *testing.T) {
	ran := 0
	for _, c := range loadCases(t) {
		if c.Compose == nil {
			continue
		}
		ran++
		all, size := c.compose(t)
		var fetched int64
		st := store.Meter(one{c.Name + ".tar", all, size}, func(n int) { fetched += int64(n) })
		s, err := reader.OpenShard(t.Context(), st, c.Name+".tar", &reader.Options{HeadersOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for sample, err := range s.Samples() {
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			for _, f := range sample.Fields {
				got = append(got, fmt.Sprintf("%s.%s @ %d: %d", sample.Key, f.Name, f.Offset, f.Size()))
			}
		}
		for _, m := range c.Expect.Index {
			want = append(want, fmt.Sprintf("%s @ %d: %d", m.Name, m.Offset, m.Size))
		}
		if !slices.Equal(got, want) || fetched > 4<<20 || s.End() > size || len(s.Warnings()) > 0 {
			t.Errorf("%s: %q, want %q; %d bytes fetched, warnings %v", c.Name, got, want, fetched, s.Warnings())
		}
		s.Close()

		fetched = 0
		in := &store.Local{Stdin: io.NewSectionReader(all, 0, size)}
		for _, st := range []store.Store{st, store.Meter(in, func(n int) { fetched += int64(n) })} {
			var last error
			for _, err := range reader.New(st, []string{"-"}, &reader.Options{Format: reader.Tar}).Samples(t.Context()) {
				if last = err; err != nil {
					break
				}
			}
			want := c.Expect.Alternatives[0].Error
			if why := want.differs(last); last == nil || why != "" {
				t.Errorf("%s: whole fields: %v, want %+v", c.Name, last, *want)
			}
		}
		if fetched > 16<<20 {
			t.Errorf("%s: %d bytes were read for fields that are refused", c.Name, fetched)
		}
	}
	if ran != 2 {
		t.Errorf("%d cases", ran)
	}
}
