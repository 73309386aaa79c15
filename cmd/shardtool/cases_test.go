package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The cases are small inputs with known right outcomes; see
// fixtures/cases/README.md. Here they go through the command: verify and cat
// under the default policy, and what else of their requests and policies the
// command can be asked for.

// wrongCases names cases whose stated outcome is held to be wrong, and why.
var wrongCases = map[string]string{}

type caseSample struct {
	Key    *string            `json:"key"`
	Fields map[string]*string `json:"fields"` // names in lower case, SHA-256
}

type caseError struct {
	Class  string         `json:"class"`
	AlsoOK []string       `json:"also_ok"`
	Key    *string        `json:"key"`
	Record *int64         `json:"record"`
	Offset *int64         `json:"offset"`
	Sample *int64         `json:"sample_offset"`
	AlsoAt []caseLocation `json:"also_ok_at"`
	Hint   string         `json:"hint"`
}

type caseLocation struct {
	Record *int64 `json:"record"`
	Offset *int64 `json:"offset"`
}

// caseOutcome is an outcome, and the request or policy that it is of.
type caseOutcome struct {
	Op            string                      `json:"op"`
	Policy        string                      `json:"policy"`
	Fields        []string                    `json:"fields"`
	OnMissing     string                      `json:"on_missing"`
	Request       struct{ Fields []string }   `json:"request"`
	Samples       []caseSample                `json:"samples"`
	SamplesAlsoOK [][]caseSample              `json:"samples_also_ok"`
	SamplesAtMost []caseSample                `json:"samples_at_most"`
	Records       []string                    `json:"records"`
	RecordsAlsoOK []string                    `json:"records_also_ok"`
	RecordsAtMost []string                    `json:"records_at_most"`
	Values        json.RawMessage             `json:"values"`
	Skipped       map[string]int64            `json:"skipped"`
	Warnings      map[string]int64            `json:"warnings"`
	Error         *caseError                  `json:"error"`
	Problems      []caseError                 `json:"problems"`
	Exit          *int                        `json:"exit"`
	Prefixes      *struct{ Boundaries []int } `json:"prefixes"`
	Requests      []caseOutcome               `json:"requests"`
	Alternatives  []caseOutcome               `json:"alternatives"`
	Has           map[string]json.RawMessage  `json:"-"`
}

func (o *caseOutcome) UnmarshalJSON(text []byte) error {
	type plain caseOutcome
	if err := json.Unmarshal(text, (*plain)(o)); err != nil {
		return err
	}
	return json.Unmarshal(text, &o.Has)
}

type caseInputs struct {
	Name    string          `json:"name"`
	Kind    string          `json:"kind"`
	Files   []string        `json:"files"`
	Compose json.RawMessage `json:"compose"`
}

type commandCase struct {
	caseInputs
	Expect caseOutcome `json:"expect"`

	paths []string // of the shards
	index []string // flag of the index, if there is one
	raw   bool     // compared as records
}

func TestCases(t *testing.T) {
	dir := filepath.Join(fixturesFolder(t), "cases")
	text, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []json.RawMessage
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, text := range cases {
		var c commandCase
		if err := json.Unmarshal(text, &c.caseInputs); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"keys", "container", "tfrecord"}, c.Kind) || len(c.Files) == 0 || c.Compose != nil {
			continue
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, f := range c.Files {
			if strings.HasSuffix(f, ".idx") {
				c.index = []string{"--index", filepath.Join(dir, f)}
			} else {
				c.paths = append(c.paths, filepath.Join(dir, f))
			}
		}
		c.raw = c.Kind == "tfrecord"
		ran++
		t.Run(c.Name, func(t *testing.T) {
			if why, ok := wrongCases[c.Name]; ok {
				t.Skip(why)
			}
			c.defaults(t)
			for _, o := range slices.Concat(c.Expect.Requests, c.Expect.Alternatives) {
				c.request(t, o)
			}
		})
	}
	if ran < 80 {
		t.Errorf("%d cases ran", ran)
	}
}

// catRowOf and verifyRowOf are what a program reads of the rows.
type catRowOf struct {
	Key    *string `json:"key"`
	Fields []struct {
		Name   string  `json:"name"`
		SHA256 *string `json:"sha256"`
	} `json:"fields"`
}

type verifyRowOf struct {
	Records int64            `json:"records"`
	Skipped map[string]int64 `json:"skipped"`
	Errors  []struct {
		Class   string  `json:"class"`
		Offset  *int64  `json:"offset"`
		Record  *int64  `json:"record"`
		Key     *string `json:"key"`
		Message string  `json:"message"`
	} `json:"errors"`
	ErrorsTotal int64 `json:"errors_total"`
	OK          bool  `json:"ok"`
}

func rowsOf[T any](t *testing.T, out string) []T {
	t.Helper()
	var rows []T
	for line := range strings.Lines(out) {
		var row T
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		rows = append(rows, row)
	}
	return rows
}

// defaults holds the outcome of the default policy.
func (c *commandCase) defaults(t *testing.T) {
	e := &c.Expect
	if e.Prefixes != nil {
		c.prefixes(t)
	}
	if len(e.Has) == 1 && e.Requests != nil {
		return // requests only
	}
	args := slices.Clone(c.index)
	if len(e.Request.Fields) > 0 {
		args = append(args, "--field", strings.Join(e.Request.Fields, ","))
	}
	c.cat(t, e, args)
	c.verify(t, e)
}

// cat compares what is delivered, and the error after it.
func (c *commandCase) cat(t *testing.T, e *caseOutcome, args []string) {
	args = append(append([]string{"cat", "--json"}, args...), c.paths...)
	if c.raw {
		args = append(args, "--raw")
	}
	code, out, stderr := runCommand(t, "", args...)
	rows := rowsOf[catRowOf](t, out)
	var samples []caseSample
	var records []string
	for _, r := range rows {
		s := caseSample{Key: r.Key, Fields: make(map[string]*string)}
		for _, f := range r.Fields {
			s.Fields[strings.ToLower(f.Name)] = f.SHA256
			records = append(records, *orEmpty(f.SHA256))
		}
		samples = append(samples, s)
	}
	switch {
	case c.raw && e.Has["records"] != nil:
		ok := slices.Equal(records, e.Records) || e.RecordsAlsoOK != nil && slices.Equal(records, e.RecordsAlsoOK) ||
			e.RecordsAtMost != nil && len(records) <= len(e.RecordsAtMost) && slices.Equal(records, e.RecordsAtMost[:len(records)])
		if !ok {
			t.Errorf("%v: records %v, want %v", args, records, e.Records)
		}
	case e.Has["values"] != nil:
		var want []string
		if err := json.Unmarshal(e.Values, &want); err != nil || !slices.Equal(records, want) {
			t.Errorf("%v: values %v, want %s", args, records, e.Values)
		}
	case e.Has["samples_at_most"] != nil:
		if len(samples) > len(e.SamplesAtMost) || !cmp.Equal(samples, e.SamplesAtMost[:len(samples)]) {
			t.Errorf("%v: %s", args, out)
		}
	case e.Has["samples"] != nil:
		ok := false
		for _, want := range append([][]caseSample{e.Samples}, e.SamplesAlsoOK...) {
			ok = ok || len(samples) == 0 && len(want) == 0 || cmp.Equal(samples, want)
		}
		if !ok {
			t.Errorf("%v: %s", args, cmp.Diff(e.Samples, samples))
		}
	}
	switch want := e.Error; {
	case e.Has["error"] == nil:
	case want == nil && code != 0:
		t.Errorf("%v: exit %d, %s", args, code, stderr)
	case want != nil && (code != 1 || !slices.ContainsFunc(want.classes(), func(class string) bool { return strings.Contains(stderr, class+": ") })):
		t.Errorf("%v: exit %d, %s want %v", args, code, stderr, want.classes())
	}
}

func orEmpty(s *string) *string {
	if s == nil {
		return new(string)
	}
	return s
}

func (e *caseError) classes() []string { return append(slices.Clone(e.AlsoOK), e.Class) }

// at returns the offsets and records that are right for an error; none: any.
func (e *caseError) at() (offsets, records []int64) {
	for _, at := range append([]caseLocation{{e.Record, e.Offset}, {nil, e.Sample}}, e.AlsoAt...) {
		if at.Offset != nil {
			offsets = append(offsets, *at.Offset)
		}
		if at.Record != nil {
			records = append(records, *at.Record)
		}
	}
	return offsets, records
}

// verify compares exit code, first error and counts.
func (c *commandCase) verify(t *testing.T, e *caseOutcome) {
	args := append(append([]string{"verify", "--json"}, c.index...), c.paths...)
	code, out, _ := runCommand(t, "", args...)
	var all verifyRowOf
	for _, row := range rowsOf[verifyRowOf](t, out) {
		all.Errors = append(all.Errors, row.Errors...)
		for reason, n := range row.Skipped {
			if all.Skipped == nil {
				all.Skipped = make(map[string]int64)
			}
			all.Skipped[reason] += n
		}
	}
	if e.Exit != nil && code != *e.Exit && len(e.Request.Fields) == 0 {
		t.Errorf("verify: exit %d, want %d: %s", code, *e.Exit, out)
	}
	// After a fault verify goes on, and counts what the fault costs, too.
	if e.Has["skipped"] != nil && e.Error == nil && sum(all.Skipped) != sum(e.Skipped) {
		t.Errorf("verify: skipped %v, want %v", all.Skipped, e.Skipped)
	}
	want := e.Error
	switch {
	case want == nil && e.Has["error"] != nil && sum(e.Warnings) == 0 && len(all.Errors) > 0:
		t.Errorf("verify: %s", all.Errors[0].Message)
	case want == nil || len(e.Request.Fields) > 0:
	case len(all.Errors) == 0:
		t.Error("verify: no error")
	default:
		first := all.Errors[0]
		offsets, records := want.at()
		if !slices.Contains(want.classes(), first.Class) || !fits(offsets, first.Offset) || c.raw && !fits(records, first.Record) ||
			want.Key != nil && first.Key != nil && *want.Key != *first.Key || !strings.Contains(first.Message, want.Hint) {
			t.Errorf("verify: %+v, want %+v", first, *want)
		}
	}
}

func fits(allowed []int64, got *int64) bool {
	return len(allowed) == 0 || got != nil && slices.Contains(allowed, *got)
}

func sum(counts map[string]int64) (n int64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// prefixes cuts a file everywhere: whole records and only these are counted,
// and only a cut between records is no fault.
func (c *commandCase) prefixes(t *testing.T) {
	data, err := os.ReadFile(c.paths[0])
	if err != nil {
		t.Fatal(err)
	}
	ends := c.Expect.Prefixes.Boundaries
	path := filepath.Join(t.TempDir(), "prefix.tfrecord")
	for n := range len(data) + 1 {
		if err := os.WriteFile(path, data[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		whole, want := int64(-1), 1
		for _, end := range ends {
			if end <= n {
				whole++
			}
			if end == n {
				want = 0
			}
		}
		code, out, _ := runCommand(t, "", "verify", "--json", path)
		if row := rowsOf[verifyRowOf](t, out)[0]; code != want || row.Records != whole {
			t.Errorf("%d bytes: exit %d, %d records; want %d, %d", n, code, row.Records, want, whole)
		}
	}
}

// flagsOf gives the flag of a policy; false where the command has none.
func flagsOf(policy string) ([]string, bool) {
	name, value, _ := strings.Cut(policy, "=")
	switch {
	case policy == "":
		return nil, true
	case policy == "key=last-dot":
		return []string{"--key-dot", "last"}, true
	case slices.Contains([]string{"key", "on-error", "on-duplicate", "on-missing"}, name):
		return []string{"--" + name, value}, true
	}
	return nil, false
}

// request holds the outcome of one more request, if the command can be asked
// for it.
func (c *commandCase) request(t *testing.T, e caseOutcome) {
	flags, ok := flagsOf(e.Policy)
	if !ok {
		return
	}
	switch e.Op {
	case "", "read":
		if e.Has["epochs"] != nil {
			return
		}
		if len(e.Fields) > 0 {
			flags = append(flags, "--field", strings.Join(e.Fields, ","))
		}
		if e.OnMissing != "" {
			flags = append(flags, "--on-missing", e.OnMissing)
		}
		c.cat(t, &e, flags)
	case "repair", "convert":
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(c.paths[0]))
		if code, _, stderr := runCommand(t, "", e.Op, c.paths[0], out); code != 0 {
			t.Fatalf("%s: exit %d, %s", e.Op, code, stderr)
		}
		if code, _, stderr := runCommand(t, "", "verify", out); code != 0 {
			t.Errorf("%s: the output has faults: %s", e.Op, stderr)
		}
		again := commandCase{paths: []string{out}, raw: c.raw}
		again.cat(t, &e, nil)
	case "verify":
		code, out, _ := runCommand(t, "", append([]string{"verify", "--json"}, c.paths...)...)
		row := rowsOf[verifyRowOf](t, out)[0]
		var got, want []string
		for _, err := range row.Errors {
			got = append(got, fmt.Sprint(err.Class, *err.Record, *err.Offset))
		}
		for _, err := range e.Problems {
			want = append(want, fmt.Sprint(err.Class, *err.Record, *err.Offset))
		}
		if code != 1 || !slices.Equal(got, want) {
			t.Errorf("verify: exit %d, %v, want %v", code, got, want)
		}
	case "index":
		code, _, stderr := runCommand(t, "", "index", c.paths[0], "--output", filepath.Join(t.TempDir(), "x.idx"))
		if code != 1 || !strings.Contains(stderr, e.Error.Class+": ") {
			t.Errorf("index: exit %d, %s want %s", code, stderr, e.Error.Class)
		}
	}
}
