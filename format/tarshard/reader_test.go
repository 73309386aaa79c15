package tarshard_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/format/tarshard"
)

// member makes a member by hand.
func member(name, data string) []byte {
	return slices.Concat(header(name, '0', int64(len(data))), []byte(data), make([]byte, -len(data)&511))
}

// linkTo makes a link by hand.
func linkTo(name string, kind byte, target string) []byte {
	h := header(name, kind, 0)
	copy(h[157:257], target)
	setSum(h)
	return h
}

var end = make([]byte, 1024)

// keysOf spells a result: keys with numbers of fields.
func keysOf(res result) string {
	var keys []string
	for _, s := range res.samples {
		keys = append(keys, fmt.Sprintf("%s:%d", s.Key, len(s.Fields)))
	}
	return strings.Join(keys, " ")
}

// TestHoles zeroes blocks of an archive: what follows them is not behind its
// end, and a sample of which a part is in the hole is not delivered.
func TestHoles(t *testing.T) {
	var archive []byte
	for _, key := range []string{"1", "2", "3", "4", "5"} { // of 4 blocks each
		archive = slices.Concat(archive, member(key+".jpg", strings.Repeat("x", 512)), member(key+".cls", "c"))
	}
	archive = append(archive, end...)
	for _, tt := range []struct {
		name         string
		from, blocks int
		stop, resync string // keys, with numbers of fields
	}{
		{"a header", 8, 1, "1:2 2:2", "1:2 2:2 4:2 5:2"},
		{"a header and its payload", 8, 2, "1:2 2:2", "1:2 2:2 4:2 5:2"},
		{"the second header", 10, 1, "1:2 2:2", "1:2 2:2 4:2 5:2"},
		{"a sample", 8, 4, "1:2 2:2", "1:2 2:2 4:2 5:2"},
		{"more than a sample", 8, 5, "1:2 2:2", "1:2 2:2 5:2"},
		{"the first header", 0, 2, "", "2:2 3:2 4:2 5:2"},
	} {
		data := bytes.Clone(archive)
		clear(data[tt.from*512 : (tt.from+tt.blocks)*512])
		for _, joined := range []bool{false, true} {
			if tt.blocks == 2 && joined {
				continue // taken for the end of one archive and the start of another
			}
			for name, r := range readers(data) {
				res := readAll(r, tarshard.Options{Concatenated: joined})
				if keysOf(res) != tt.stop || tt.blocks != 2 && (format.Class(res.err) != "corrupt" || format.AsError(res.err).Offset > int64(tt.from)*512) {
					t.Errorf("%s, %s, stop: %s, %v; want %s and corrupt", tt.name, name, keysOf(res), res.err, tt.stop)
				}
			}
			for name, r := range readers(data) {
				res := readAll(r, tarshard.Options{OnError: format.Resync, Concatenated: joined})
				if keysOf(res) != tt.resync || res.err != nil || len(res.losses) == 0 {
					t.Errorf("%s, %s, resync: %s, %v, losses %v; want %s", tt.name, name, keysOf(res), res.err, res.losses, tt.resync)
				}
			}
		}
	}
}

func TestEnds(t *testing.T) {
	a, b := member("1.a", "x"), member("2.a", "y")
	zero := make([]byte, 512)
	garbage := bytes.Repeat([]byte("garbage "), 64)
	for _, tt := range []struct {
		name string
		data [][]byte
		read bool // through the end marker
		want string
		warn string
	}{
		{"marker", [][]byte{a, b, end}, false, "1:1 2:1", ""},
		{"padded", [][]byte{a, b, end, zero, zero, zero}, false, "1:1 2:1", ""},
		{"padded with less than a block", [][]byte{a, b, end, zero[:100]}, false, "1:1 2:1", ""},
		{"none", [][]byte{a, b}, false, "1:1 2:1", "no-end-marker:1"},
		{"none, part of a block", [][]byte{a, b, zero[:100]}, false, "1:1 2:1", "no-end-marker:1"},
		{"half", [][]byte{a, b, zero}, false, "1:1 2:1", "no-end-marker:1"},
		{"half and part of a block", [][]byte{a, b, zero, zero[:100]}, false, "1:1 2:1", "no-end-marker:1"},
		{"garbage", [][]byte{a, b, end, garbage}, false, "1:1 2:1", "trailing-garbage:1"},
		{"garbage after padding", [][]byte{a, b, end, zero, garbage[:10]}, false, "1:1 2:1", "trailing-garbage:1"},
		{"half, then garbage", [][]byte{a, b, zero, garbage}, false, "1:1 2:1", "no-end-marker:1 trailing-garbage:1"},
		{"another", [][]byte{a, end, b, end}, false, "1:1", "concatenated:1"},
		{"another, read", [][]byte{a, end, b, end, garbage}, true, "1:1 2:1", "concatenated:1 trailing-garbage:1"},
		{"another behind a record", [][]byte{a, make([]byte, 10240-1024), b, end}, false, "1:1", "concatenated:1"},
		{"another behind a record, read", [][]byte{a, make([]byte, 10240-1024), b, end}, true, "1:1 2:1", "concatenated:1"},
		{"three, read", [][]byte{a, end, b, end, member("3.a", ""), end}, true, "1:1 2:1 3:1", "concatenated:2"},
		{"nothing", nil, false, "", "no-end-marker:1"},
		{"only a marker", [][]byte{end}, false, "", ""},
		{"half a marker", [][]byte{zero}, false, "", "no-end-marker:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := slices.Concat(tt.data...)
			o := tarshard.Options{Concatenated: tt.read}
			for name, r := range readers(data) {
				res := readAll(r, o)
				have := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(res.warnings), "map["), "]")
				if res.err != nil || keysOf(res) != tt.want || have != tt.warn {
					t.Errorf("%s: %s, warnings %s, %v; want %s, %s", name, keysOf(res), have, res.err, tt.want, tt.warn)
				}
			}
			s := tarshard.NewScannerAt(bytes.NewReader(data), int64(len(data)), &o)
			if _, err := listed(s); err != nil || len(s.Warnings()) != len(strings.Fields(tt.warn)) {
				t.Errorf("ScannerAt: warnings %v, %v", s.Warnings(), err)
			}
		})
	}
}

func TestWrongFormat(t *testing.T) {
	for data, says := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\noid sha256:0\n": "Git LFS",
		"\x1f\x8b\x08\x00" + strings.Repeat("x", 600):                "gzip",
		strings.Repeat("x", 5000):                                    "does not begin with a header",
		"hello":                                                      "does not begin with a header",
		strings.Repeat("\x00", 512) + strings.Repeat("x", 600):       "does not begin with a header",
	} {
		for _, policy := range []format.OnError{format.Stop, format.Skip, format.Resync} {
			res := readAll(strings.NewReader(data), tarshard.Options{OnError: policy})
			if !errors.Is(res.err, format.ErrWrongFormat) || !strings.Contains(res.err.Error(), says) {
				t.Errorf("%.20q: %v: %v", data, policy, res.err)
			}
		}
		if tarshard.Sniff([]byte(data)) && data[0] != 0 {
			t.Errorf("%.20q is taken for a tar archive", data)
		}
	}
	sound := slices.Concat(member("1.a", "x"), end)
	if !tarshard.Sniff(sound) || !tarshard.Sniff(end) || tarshard.Sniff(sound[:511]) || tarshard.Sniff(nil) {
		t.Error("Sniff")
	}
	// A damaged first header is damage, as long as it is one.
	sound[0] ^= 1
	if res := readAll(bytes.NewReader(sound), tarshard.Options{}); !errors.Is(res.err, format.ErrCorrupt) {
		t.Errorf("a damaged first header: %v", res.err)
	}
	// Less than a block, but as a header begins.
	if res := readAll(strings.NewReader("000.jpg\x00\x00\x00"), tarshard.Options{}); !errors.Is(res.err, format.ErrTruncated) {
		t.Errorf("the beginning of a header: %v", res.err)
	}
}

func TestDuplicates(t *testing.T) {
	data := slices.Concat(member("0.a", "1"), member("0.b", "2"), member("0.A", "3"), member("0.c", "4"), member("1.a", "5"),
		member("0.d", "6"), member("0.e", "7"), member("2.a", "8"), end)
	for _, tt := range []struct {
		onError format.OnError
		onDup   format.OnDuplicate
		fields  []string
		want    string
		skipped int64
		losses  string
		offset  int64
	}{
		{format.Stop, format.DuplicateError, nil, "", 0, "", 2048},
		{format.Skip, format.DuplicateError, nil, "1:1 2:1", 3, "0+4096 5120+1024 6144+1024", -1},
		{format.Resync, format.DuplicateError, nil, "1:1 2:1", 3, "0+4096 5120+1024 6144+1024", -1},
		{format.Stop, format.KeepFirst, nil, "0:3 1:1", 1, "", 5120},
		{format.Skip, format.KeepFirst, nil, "0:3 1:1 2:1", 3, "5120+1024 6144+1024", -1},
		{format.Skip, format.KeepLast, nil, "0:3 1:1 2:1", 3, "5120+1024 6144+1024", -1},
		{format.Skip, format.KeepLast, []string{"a"}, "0:1 1:1 2:1", 3, "5120+1024 6144+1024", -1},
	} {
		res := readAll(bytes.NewReader(data), tarshard.Options{OnError: tt.onError, OnDuplicate: tt.onDup, Fields: tt.fields})
		var losses []string
		for _, l := range res.losses {
			losses = append(losses, fmt.Sprintf("%d+%d", l.Offset, l.Bytes))
			if !errors.Is(l.Err, format.ErrDuplicate) {
				t.Errorf("%v", l.Err)
			}
		}
		if keysOf(res) != tt.want || res.skipped["duplicate"] != tt.skipped || strings.Join(losses, " ") != tt.losses {
			t.Errorf("%v %v: %s, skipped %v, losses %v", tt.onError, tt.onDup, keysOf(res), res.skipped, losses)
		}
		var e *format.Error
		if tt.offset >= 0 && (!errors.As(res.err, &e) || e.Err != format.ErrDuplicate || e.Offset != tt.offset) || tt.offset < 0 && res.err != nil {
			t.Errorf("%v %v: %v, want one at %d", tt.onError, tt.onDup, res.err, tt.offset)
		}
		if tt.onError == format.Skip && tt.onDup != format.DuplicateError {
			want := map[format.OnDuplicate]string{format.KeepFirst: "1", format.KeepLast: "3"}[tt.onDup]
			if f := res.samples[0].Field("a"); string(f.Data) != want {
				t.Errorf("%v kept %q", tt.onDup, f.Data)
			}
		}
	}
}

// TestKeyCheckStops: past Limits.Keys the check stops, says so, and reading
// goes on.
func TestKeyCheckStops(t *testing.T) {
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, nil)
	for i := range 4000 {
		if err := w.WriteSample(sampleOf(fmt.Sprint(i%3999), "a", "x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := tarshard.NewReader(bytes.NewReader(buf.Bytes()), nil)
	n := 0
	var last error
	for _, err := range r.Samples() {
		if last = err; err == nil {
			n++
		}
	}
	if n != 3999 || !errors.Is(last, format.ErrDuplicate) || r.KeyCheckStopped() {
		t.Errorf("%d samples, %v, stopped %v", n, last, r.KeyCheckStopped())
	}
	s := tarshard.NewScanner(bytes.NewReader(buf.Bytes()), &tarshard.Options{Limits: &format.Limits{Keys: 1}})
	n = 0
	for _, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 4000 || !s.KeyCheckStopped() {
		t.Errorf("%d samples, stopped %v", n, s.KeyCheckStopped())
	}
}

func TestSelection(t *testing.T) {
	data := slices.Concat(member("0.jpg", "1"), member("0.txt", "2"), member("0.CLS", "3"), member("1.png", "4"), member("1.cls", "5"), end)
	for _, tt := range []struct {
		fields    []string
		onMissing format.OnMissing
		onError   format.OnError
		want      string
		missing   int64
		losses    int
		says      string
	}{
		{[]string{"cls", "jpg;png"}, format.MissingError, format.Stop, "0: CLS=3 jpg=1; 1: cls=5 png=4; ", 0, 0, ""},
		{[]string{"png;jpg", "png;jpg"}, format.MissingError, format.Stop, "0: jpg=1 jpg=1; 1: png=4 png=4; ", 0, 0, ""},
		{[]string{}, format.MissingError, format.Stop, "0:; 1:; ", 0, 0, ""},
		{[]string{"cls", "txt"}, format.MissingError, format.Stop, "0: CLS=3 txt=2; ", 0, 0, `no field "txt"; the sample has png, cls`},
		{[]string{"cls", "txt"}, format.MissingError, format.Skip, "0: CLS=3 txt=2; ", 1, 1, ""},
		{[]string{"cls", "txt"}, format.MissingSkip, format.Stop, "0: CLS=3 txt=2; ", 1, 0, ""},
		{[]string{"cls", "txt"}, format.MissingFill, format.Stop, "0: CLS=3 txt=2; 1: cls=5 txt=nil; ", 0, 0, ""},
		{[]string{";"}, format.MissingSkip, format.Stop, "", 2, 0, ""},
	} {
		res := readAll(bytes.NewReader(data), tarshard.Options{Fields: tt.fields, OnMissing: tt.onMissing, OnError: tt.onError})
		var have strings.Builder
		for _, s := range res.samples {
			fmt.Fprintf(&have, "%s:", s.Key)
			for _, f := range s.Fields {
				if f.Data == nil {
					fmt.Fprintf(&have, " %s=nil", f.Name)
					continue
				}
				fmt.Fprintf(&have, " %s=%s", f.Name, f.Data)
			}
			have.WriteString("; ")
		}
		if have.String() != tt.want || res.skipped["missing"] != tt.missing || len(res.losses) != tt.losses {
			t.Errorf("%v: %s, skipped %v, losses %v", tt.fields, have.String(), res.skipped, res.losses)
		}
		if (tt.says == "") != (res.err == nil) || res.err != nil && (!errors.Is(res.err, format.ErrMissing) || !strings.Contains(res.err.Error(), tt.says)) {
			t.Errorf("%v: %v", tt.fields, res.err)
		}
	}
}

func TestLinkTargets(t *testing.T) {
	data := slices.Concat(
		linkTo("d/0.ahead", '2', "1.file"), // a symbolic link may come before its target
		linkTo("d/0.up", '2', "../2.top"),
		linkTo("d/0.hard", '1', "./2.top"),
		linkTo("d/0.abs", '2', "/2.top"),
		linkTo("d/0.chain", '2', "0.up"),
		linkTo("d/0.cycle", '2', "0.cycle2"),
		linkTo("d/0.cycle2", '2', "0.cycle"),
		linkTo("d/0.self", '1', "d/0.self"),
		linkTo("d/0.out", '2', "../../etc/passwd"),
		linkTo("d/0.folder", '2', "."),
		linkTo("d/0.none", '1', "nothing"),
		linkTo("nokey", '1', "2.top"),
		member("d/1.file", "first"),
		member("2.top", "second"),
		end)
	want := "ahead=first up=second hard=second abs=second chain=second "
	o := tarshard.Options{Source: bytes.NewReader(data)}
	for name, r := range readers(data) {
		res := readAll(r, o)
		if res.err != nil || len(res.samples) != 3 {
			t.Fatalf("%s: %v", name, res.err)
		}
		var have strings.Builder
		for _, f := range res.samples[0].Fields {
			fmt.Fprintf(&have, "%s=%s ", f.Name, f.Data)
		}
		if have.String() != want {
			t.Errorf("%s: %s, want %s", name, have.String(), want)
		}
		checkCounts(t, "skipped", map[string]int64{"hardlink": 2, "symlink": 4, "no-key": 1}, res.skipped)
	}
	res := readAll(bytes.NewReader(data), tarshard.Options{})
	checkCounts(t, "skipped", map[string]int64{"hardlink": 3, "symlink": 8, "no-key": 1}, res.skipped)
	o.Limits = &format.Limits{Links: 10}
	res = readAll(bytes.NewReader(data), o)
	checkCounts(t, "skipped", map[string]int64{"hardlink": 3, "symlink": 8, "no-key": 1}, res.skipped)
}

// brokenAt is random access that fails.
type brokenAt struct{ *bytes.Reader }

func (brokenAt) ReadAt([]byte, int64) (int, error) { return 0, errors.New("broken disk") }

func TestBrokenSource(t *testing.T) {
	data := slices.Concat(member("1.a", "x"), linkTo("2.a", '1', "1.a"), end)
	res := readAll(bytes.NewReader(data), tarshard.Options{Source: brokenAt{bytes.NewReader(data)}})
	if !errors.Is(res.err, format.ErrIO) {
		t.Errorf("%v, skipped %v", res.err, res.skipped)
	}
}

func TestSparseStops(t *testing.T) {
	data := fixtureBytes(t, "gnutar-sparse-oldgnu.tar")
	res := readAll(bytes.NewReader(data), tarshard.Options{})
	checkError(t, &wantError{Class: "unsupported", Key: ptr("000"), Field: ptr("bin"), Offset: ptr(int64(0))}, located(res.err))
	// A sparse member that nobody asked for is not in the way.
	res = readAll(bytes.NewReader(data), tarshard.Options{Fields: []string{"txt"}})
	if res.err != nil || keysOf(res) != "000:1" {
		t.Errorf("%s, %v", keysOf(res), res.err)
	}
}

// located gives an error the name of the shard that checkError wants.
func located(err error) error {
	return format.ReadError(err, format.Location{Shard: "s.tar"})
}

// TestReset reads several shards with one Reader, as if each had a new one.
func TestReset(t *testing.T) {
	var r tarshard.Reader
	for range 2 {
		for _, name := range []string{"gnutar-posix.tar", "python-pax-records.tar", "gnutar-case.tar", "gnutar-hidden.tar", "webdataset-000000.tar"} {
			data := fixtureBytes(t, name)
			for _, o := range []tarshard.Options{{Shard: name}, {Fields: []string{"jpg"}, OnMissing: format.MissingSkip}, {KeyRaw: true}} {
				want := readAll(bytes.NewReader(data), o)
				r.Reset(bytes.NewReader(data), &o)
				var have result
				for s, err := range r.Samples() {
					if err != nil {
						t.Fatal(name, err)
					}
					have.samples = append(have.samples, s.Clone())
				}
				have.skipped, have.warnings = addTo(nil, r.Skipped()), addTo(nil, r.Warnings())
				if outcomeOf(have) != outcomeOf(want) || readOutcome(have) != readOutcome(want) {
					t.Errorf("%s: %s\nwant %s", name, outcomeOf(have), outcomeOf(want))
				}
				if len(have.samples) > 0 && have.samples[0].Shard != o.Shard {
					t.Errorf("shard %q", have.samples[0].Shard)
				}
				if _, err := r.Next(); err != io.EOF {
					t.Errorf("after the end: %v", err)
				}
			}
		}
	}
}

// TestLent: what Next returns holds until the next call, also where the next
// header has to be read to know that the sample is whole.
func TestLent(t *testing.T) {
	var buf bytes.Buffer
	w := tarshard.NewWriter(&buf, nil)
	const n = 3000
	for i := range n {
		if err := w.WriteSample(sampleOf(fmt.Sprint(i), "a", strings.Repeat(fmt.Sprint(i), 200), "b", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"stream": plain{bytes.NewReader(buf.Bytes())}, "small reads": &chunks{r: bytes.NewReader(buf.Bytes()), n: 700}} {
		rd := tarshard.NewReader(r, nil)
		for i := range n {
			s, err := rd.Next()
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint(i); string(s.Key) != want || string(s.Fields[1].Data) != want || string(s.Fields[0].Data) != strings.Repeat(want, 200) || s.Index != int64(i) {
				t.Fatalf("%s: sample %d is %q", name, i, s.Key)
			}
		}
	}
}

// chunks gives n bytes at a time.
type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }

// endless repeats one archive without its end.
type endless struct {
	data []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.data[e.at:])
	e.at = (e.at + n) % len(e.data)
	return n, nil
}

// TestReaderAllocates: nothing in steady state, for plain and for extended
// headers, for all fields and for some, with payloads and without.
func TestReaderAllocates(t *testing.T) {
	pax := slices.Concat(header("././@PaxHeader", 'x', 40), []byte("18 path=dir/1.jpg\n22 mtime=151476480.25\n"), make([]byte, 472))
	shard := slices.Concat(pax, member("x", strings.Repeat("x", 3000)), member("dir/1.cls", "1"), member("2.jpg", "x"), member("2.cls", "2"), linkTo("d", '5', ""))
	for _, o := range []tarshard.Options{
		{OnError: format.Skip}, {Fields: []string{"cls", "png;jpg"}}, {Fields: []string{"cls"}, OnError: format.Skip},
	} {
		// The same keys come again: with a limit of one byte that is not noticed.
		o.Limits = &format.Limits{Keys: 1}
		r := tarshard.NewReader(plain{&endless{data: shard}}, &o)
		s := tarshard.NewScanner(plain{&endless{data: shard}}, &o)
		for range 2000 { // until the buffer has its size
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(5000, func() {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("Reader %v: %v allocations for a sample", o.Fields, n)
		}
		if n := testing.AllocsPerRun(5000, func() {
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("Scanner %v: %v allocations for a sample", o.Fields, n)
		}
	}
}

func TestCheckAtIsStale(t *testing.T) {
	// An index of good_ustar.tar over a shard whose first member has a pax
	// header, so that every offset is 1024 too low.
	data := slices.Concat(header("././@PaxHeader", 'x', 18), []byte("18 mtime=1500.125\n"), make([]byte, 494),
		member("0001.jpg", strings.Repeat("x", 187)), member("0001.json", strings.Repeat("x", 29)), member("dir/", ""), end)
	ra := bytes.NewReader(data)
	for _, tt := range []struct {
		data, size int64
		name       string
		ok         bool
	}{
		{1536, 187, "0001.jpg", true},
		{1536, 187, "./0001.jpg", true},
		{1536, -1, "", true},
		{2560, 29, "0001.json", true},
		{512, 187, "0001.jpg", false},
		{512, 18, "", false}, // of the extension header
		{1536, 29, "0001.json", false},
		{1536, 188, "0001.jpg", false},
		{1537, 187, "0001.jpg", false},
		{0, 187, "0001.jpg", false},
		{-512, 187, "0001.jpg", false},
		{1024, 187, "0001.jpg", false},
		{3584, 0, "dir/", true},
		{4096, 0, "dir/", false},
		{5632, 0, "", false},
		{1 << 40, 0, "", false},
	} {
		err := tarshard.CheckAt(ra, tt.data, tt.size, tt.name)
		if tt.ok != (err == nil) || err != nil && !errors.Is(err, format.ErrStale) {
			t.Errorf("CheckAt(%d, %d, %q) = %v", tt.data, tt.size, tt.name, err)
		}
	}
	if err := tarshard.CheckAt(brokenAt{}, 512, 1, "a"); !errors.Is(err, format.ErrIO) {
		t.Errorf("a broken disk: %v", err)
	}
}
