package tarshard_test

import (
	"bytes"
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

const tarsDir = "../../fixtures/tars"

// fixture is an archive by another tool, with what Python's tarfile and
// webdataset read in it.
type fixture struct {
	File        string          `json:"file"`
	Compression *string         `json:"compression"`
	Differs     []string        `json:"differs"`
	Bytes       int64           `json:"bytes"`
	SHA256      string          `json:"sha256"`
	Members     []fixtureMember `json:"members"`
	All         []fixtureMember `json:"members_ignore_zeros"`
	Samples     []struct {
		Key    string `json:"key"`
		Fields []struct {
			Name   string `json:"name"`
			Bytes  int    `json:"bytes"`
			SHA256 string `json:"sha256"`
		} `json:"fields"`
	} `json:"samples"`
}

type fixtureMember struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	Offset int64  `json:"offset"`
	Data   int64  `json:"offset_data"`
	Mtime  string `json:"mtime"`
	Link   string `json:"link"`
}

func loadFixtures(t testing.TB) []fixture {
	raw, err := os.ReadFile(filepath.Join(tarsDir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []fixture
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d fixtures", len(all))
	}
	return all
}

func (f *fixture) differs(word string) bool { return slices.Contains(f.Differs, word) }

// bytes returns the decompressed archive.
func (f *fixture) bytes(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(tarsDir, f.File))
	if err != nil {
		t.Fatal(err)
	}
	if f.Compression == nil {
		return raw
	}
	kind := compress.Sniff(raw[:min(len(raw), compress.PeekSize)])
	r, err := compress.NewReader(bytes.NewReader(raw), kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(plain)) != f.Bytes || sum(plain) != f.SHA256 {
		t.Fatalf("%s does not inflate to what it should", f.File)
	}
	return plain
}

func TestFixtureMembers(t *testing.T) {
	for _, f := range loadFixtures(t) {
		if f.differs("unsupported") || f.differs("window") {
			continue
		}
		t.Run(f.File, func(t *testing.T) {
			data := f.bytes(t)
			compareMembers(t, tarshard.NewWalker(bytes.NewReader(data), nil), f.Members)
			compareMembers(t, tarshard.NewWalkerAt(bytes.NewReader(data), int64(len(data)), nil), f.Members)
			if f.All != nil {
				compareMembers(t, tarshard.NewWalker(bytes.NewReader(data), &tarshard.Options{Concatenated: true}), f.All)
			}
		})
	}
}

var fixtureTypes = map[byte]string{
	tarshard.TypeFile: "file", tarshard.TypeHardlink: "hardlink", tarshard.TypeSymlink: "symlink",
	tarshard.TypeDirectory: "dir", tarshard.TypeFifo: "fifo", 'V': "label",
}

func compareMembers(t *testing.T, w *tarshard.Walker, want []fixtureMember) {
	t.Helper()
	for i := 0; ; i++ {
		m, err := w.Next()
		if err == io.EOF && i == len(want) {
			return
		}
		if err != nil || i == len(want) {
			t.Fatalf("%d members, then %v; want %d", i, err, len(want))
		}
		have := fixtureMember{
			// tarfile cuts a slash off the end of a folder's name.
			Name: strings.TrimSuffix(string(m.Name), "/"), Type: fixtureTypes[m.Type], Size: m.Size,
			Offset: m.Offset, Data: m.DataOffset, Mtime: mtimeText(m), Link: string(m.Link),
		}
		exp := want[i]
		if exp.Type == "sparse" && m.Sparse {
			// tarfile counts the holes, and the map of version 1.0 as no data.
			have.Type, have.Size, have.Data = exp.Type, exp.Size, exp.Data
		}
		exp.Mtime = trimFraction(exp.Mtime)
		if have != exp {
			t.Errorf("member %d\n have %+v\n want %+v", i, have, exp)
		}
	}
}

// mtimeText writes a time as pax headers do.
func mtimeText(m *tarshard.Member) string {
	if m.Nanos == 0 {
		return fmt.Sprint(m.Seconds)
	}
	sign, sec, nanos := "", m.Seconds, int64(m.Nanos)
	if sec < 0 {
		sign, sec, nanos = "-", -sec-1, 1e9-nanos
	}
	return trimFraction(fmt.Sprintf("%s%d.%09d", sign, sec, nanos))
}

func trimFraction(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// TestFixtureSamples holds Reader and Scanner against webdataset. Where what
// webdataset does is not what is promised here, the expected samples follow
// from fixtures/README.md.
func TestFixtureSamples(t *testing.T) {
	for _, f := range loadFixtures(t) {
		if f.differs("unsupported") || f.differs("window") {
			continue
		}
		t.Run(f.File, func(t *testing.T) {
			data := f.bytes(t)
			o := tarshard.Options{KeyRaw: f.differs("dot-slash") || f.differs("absolute")}
			wantWarnings := "map[]"
			if f.differs("concatenated") {
				wantWarnings = "map[concatenated:1]"
			}
			if f.differs("sparse") {
				o.OnError = format.Skip
			}
			for name, r := range readers(data) {
				res := readAll(r, o)
				if res.err != nil {
					t.Errorf("%s: %v", name, res.err)
				}
				if have, want := describeLong(res.samples), f.wanted(); have != want {
					t.Errorf("%s: samples\n%swant\n%s", name, have, want)
				}
				if fmt.Sprint(res.warnings) != wantWarnings {
					t.Errorf("%s: warnings %v, want %s", name, res.warnings, wantWarnings)
				}
				if f.differs("sparse") && (res.skipped["sparse"] != 2 || len(res.losses) != 2 || format.Class(res.losses[0].Err) != "unsupported") {
					t.Errorf("%s: skipped %v, losses %v", name, res.skipped, res.losses)
				}
			}
			f.scan(t, data, o)
		})
	}
}

// wanted describes the samples of a fixture.
func (f *fixture) wanted() string {
	var b strings.Builder
	for _, s := range f.Samples {
		if f.differs("hidden") && (s.Key == "a/" || s.Key == "__MACOSX/" || s.Key == "__x__") {
			continue
		}
		fmt.Fprintf(&b, "%q", s.Key)
		for _, x := range s.Fields {
			if f.differs("sparse") && (x.Name == "bin" || x.Name == "many") {
				continue
			}
			fmt.Fprintf(&b, " %s=%d:%.12s", x.Name, x.Bytes, x.SHA256)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func describeLong(samples []*format.Sample) string {
	var b strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&b, "%q", s.Key)
		for _, f := range s.Fields {
			// webdataset lowers the names.
			fmt.Fprintf(&b, " %s=%d:%.12s", strings.ToLower(f.Name), len(f.Data), sum(f.Data))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// scan compares what Scan finds with what a Reader of the same bytes gives.
func (f *fixture) scan(t *testing.T, data []byte, o tarshard.Options) {
	t.Helper()
	o.Source = bytes.NewReader(data)
	if f.File == "bsdtar-links.tar" {
		o.OnError = format.Skip // TestLinks
	}
	samples := readAll(bytes.NewReader(data), o).samples
	i := 0
	for e, err := range tarshard.Scan(bytes.NewReader(data), int64(len(data)), &o) {
		if err != nil || i == len(samples) {
			t.Fatalf("Scan: %d entries, then %v", i, err)
		}
		s := samples[i]
		if !bytes.Equal(e.Key, s.Key) || e.Index != s.Index || e.Offset != s.Offset || len(e.Members) != len(s.Fields) {
			t.Errorf("Scan: entry %+v, want %+v", e, s)
			continue
		}
		for j, m := range e.Members {
			if x := s.Fields[j]; m.Field != x.Name || m.Data != x.Offset || !bytes.Equal(data[m.Data:m.Data+m.Size], x.Data) {
				t.Errorf("Scan: %s: member %+v, want field %s at %d", e.Key, m, x.Name, x.Offset)
			}
			if err := tarshard.CheckAt(bytes.NewReader(data), m.Data, m.Size, string(m.Name)); err != nil && !m.Linked {
				t.Errorf("CheckAt: %v", err)
			}
			if err := tarshard.CheckAt(bytes.NewReader(data), m.Data, m.Size+1, string(m.Name)); format.Class(err) != "stale" {
				t.Errorf("CheckAt of a wrong size: %v", err)
			}
		}
		i++
	}
	if i != len(samples) {
		t.Errorf("Scan: %d entries, want %d", i, len(samples))
	}
}

func TestHiddenMembersAreCounted(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(tarsDir, "gnutar-hidden.tar"))
	if err != nil {
		t.Fatal(err)
	}
	res := readAll(bytes.NewReader(data), tarshard.Options{})
	checkCounts(t, "skipped", map[string]int64{"apple-double": 5, "directory": 4, "no-key": 1, "meta": 2}, res.skipped)
}

// TestLinks follows the links of the fixtures, whose targets tarfile names.
func TestLinks(t *testing.T) {
	for _, f := range loadFixtures(t) {
		if !f.differs("links") {
			continue
		}
		t.Run(f.File, func(t *testing.T) {
			data := f.bytes(t)
			followed := readAll(bytes.NewReader(data), tarshard.Options{Shard: "s.tar", Source: bytes.NewReader(data)})
			passed := readAll(bytes.NewReader(data), tarshard.Options{})
			if f.File == "bsdtar-links.tar" {
				// Its mtree puts 001.jpg behind 002.cls.
				checkError(t, &wantError{Class: "duplicate", Key: ptr("001"), Offset: ptr(int64(5120))}, followed.err)
				return
			}
			if followed.err != nil || passed.err != nil {
				t.Fatal(followed.err, passed.err)
			}
			links := int64(0)
			for _, m := range f.Members {
				if m.Type != "hardlink" && m.Type != "symlink" {
					continue
				}
				links++
				name, target := strings.TrimPrefix(m.Name, "./"), strings.TrimPrefix(m.Link, "./")
				have, want := fieldNamed(followed.samples, name), fieldNamed(followed.samples, target)
				if (have == nil) != (want == nil) || want != nil && (!bytes.Equal(have.Data, want.Data) || have.Offset != want.Offset) {
					t.Errorf("%s is %+v, its target %s %+v", name, have, target, want)
				}
				if fieldNamed(passed.samples, name) != nil {
					t.Errorf("%s was read without a Source", name)
				}
			}
			if n := passed.skipped["hardlink"] + passed.skipped["symlink"]; n != links {
				t.Errorf("%d links skipped, want %d", n, links)
			}
			if n := followed.skipped["hardlink"] + followed.skipped["symlink"]; strings.HasPrefix(f.File, "gnutar") && n != 1 {
				t.Errorf("with a Source %d links skipped, want that to missing.jpg", n)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func fieldNamed(samples []*format.Sample, name string) *format.Field {
	for _, s := range samples {
		for i := range s.Fields {
			if string(s.Key)+"."+s.Fields[i].Name == name {
				return &s.Fields[i]
			}
		}
	}
	return nil
}

func TestGlobals(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(tarsDir, "python-pax-records.tar"))
	if err != nil {
		t.Fatal(err)
	}
	r := tarshard.NewReader(bytes.NewReader(data), nil)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if have := fmt.Sprint(r.Globals()); have != "map[comment:global hdrcharset:ISO-IR 10646 2000 UTF-8]" {
		t.Errorf("globals %s", have)
	}
	if n := r.Skipped()["pax-global-header"]; n != 1 {
		t.Errorf("%d global headers counted", n)
	}
}
