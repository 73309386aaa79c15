package tarshard_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"shardtool/format"
	"shardtool/format/tarshard"
)

func seeds(f *testing.F) {
	for _, x := range loadFixtures(f) {
		if x.Compression == nil && x.Bytes < 30_000 {
			f.Add(x.bytes(f), true)
		}
	}
	for _, pattern := range []string{"container/*.tar", "keys/*.tar"} {
		names, err := filepath.Glob(filepath.Join(casesDir, pattern))
		if err != nil || len(names) == 0 {
			f.Fatal(pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, false)
		}
	}
}

// FuzzTar holds the walker against archive/tar, and readers of the same bytes
// against one another.
func FuzzTar(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, mend bool) {
		if mend {
			data = mended(data)
		}
		compareOracle(t, data)
		compareReaders(t, data)
	})
}

// mended sets the checksums of what looks like headers, so that what was
// changed in them gets past the checksum.
func mended(data []byte) []byte {
	data = bytes.Clone(data)
	for at := 0; at+512 <= len(data); at += 512 {
		h := data[at : at+512]
		if string(h[257:262]) == "ustar" {
			setSum(h)
		}
	}
	return data
}

func setSum(h []byte) {
	copy(h[148:156], "        ")
	total := 0
	for _, c := range h {
		total += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", total))
}

// compareOracle compares members as long as both accept them. By policy they
// do not agree on these:
//   - Records of a global pax header are applied here, and numbers in a header
//     that do not matter to a sample (mode, owner, time) may be junk.
//   - The type 'X' (Solaris) is a pax header here.
//   - archive/tar takes a prefix from GNU headers whose times are not numbers,
//     and from ustar headers of a size that only pax could give.
//   - A sparse member is not expanded here.
//   - An extension header before a global one holds for the member after both.
//   - A name is cut at the first NUL here also in a GNU long name.
//   - What follows the end of the archive is not compared.
func compareOracle(t *testing.T, data []byte) {
	w := tarshard.NewWalker(bytes.NewReader(data), nil)
	oracle := tar.NewReader(bytes.NewReader(data))
	for {
		m, err := w.Next()
		if err != nil {
			return
		}
		for _, k := range []string{"path", "linkpath", "size", "mtime"} {
			if _, ok := w.Globals()[k]; ok {
				return
			}
		}
		h, err := oracle.Next()
		for err == nil && h.Typeflag == tar.TypeXGlobalHeader {
			h, err = oracle.Next()
		}
		if err != nil || h.Typeflag == 'X' || m.Sparse || h.Typeflag == tar.TypeGNUSparse {
			return
		}
		if skipsOracle(data, m) {
			return
		}
		if string(m.Name) != h.Name || isLink(h) && string(m.Link) != h.Linkname || m.Size != h.Size && m.Size != 0 {
			t.Fatalf("have %+v %q -> %q\narchive/tar %+v", m, m.Name, m.Link, h)
		}
		have, err1 := io.ReadAll(w)
		want, err2 := io.ReadAll(oracle)
		if err1 == nil && err2 == nil && !bytes.Equal(have, want) {
			t.Fatalf("payload of %q differs", m.Name)
		}
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("payload of %q: %v, archive/tar %v", m.Name, err1, err2)
		}
	}
}

// isLink: of other members the walker gives no link, archive/tar what the
// header holds there.
func isLink(h *tar.Header) bool { return h.Typeflag == tar.TypeLink || h.Typeflag == tar.TypeSymlink }

// skipsOracle tells headers that are read differently on purpose.
func skipsOracle(data []byte, m *tarshard.Member) bool {
	header := data[m.DataOffset-512 : m.DataOffset]
	if strings.HasPrefix(string(header[257:]), "ustar  ") && header[345] != 0 {
		return true
	}
	// An extension header, then a global one: walk what stands before.
	for at := m.Offset; at < m.DataOffset-512; at += 512 {
		if data[at+156] == 'g' || data[at+156] == 'X' || data[at+156] == 'L' || data[at+156] == 'K' {
			return true
		}
	}
	return false
}

// compareReaders: a stream, single bytes and random access give the same, and
// what a field is said to be stands where it is said to stand.
func compareReaders(t *testing.T, data []byte) {
	for _, o := range []tarshard.Options{
		{}, {OnError: format.Skip, KeyRaw: true, OnDuplicate: format.KeepLast},
		{OnError: format.Resync, LastDot: true, Concatenated: true, OnDuplicate: format.KeepFirst},
		{OnError: format.Resync, Fields: []string{"jpg;png", "json"}, Source: bytes.NewReader(data)},
		{OnError: format.Skip, Limits: &format.Limits{Record: 100, Sample: 150, Fields: 2, Header: 600, Keys: 512, Links: 100}},
	} {
		o := o
		whole := readAll(plain{bytes.NewReader(data)}, o)
		bytewise := readAll(iotest.OneByteReader(bytes.NewReader(data)), o)
		if have, want := outcomeOf(bytewise), outcomeOf(whole); have != want {
			t.Fatalf("%+v: by single bytes\n%s\nat once\n%s", o, have, want)
		}
		for _, s := range whole.samples {
			for _, f := range s.Fields {
				if f.Offset < 0 || f.Offset+int64(len(f.Data)) > int64(len(data)) || !bytes.Equal(data[f.Offset:f.Offset+int64(len(f.Data))], f.Data) {
					t.Fatalf("field %s of %q does not stand at %d", f.Name, s.Key, f.Offset)
				}
			}
		}
		if o.Limits != nil || metLimit(whole) {
			continue // a Scanner has no limits on payloads: what is over one for a Reader is cut short for it
		}
		if have, want := scanOutcome(tarshard.NewScanner(plain{bytes.NewReader(data)}, &o)), readOutcome(whole); have != want {
			t.Fatalf("%+v: Scanner\n%s\nReader\n%s", o, have, want)
		}
		o.Source = bytes.NewReader(data)
		linked := readAll(plain{bytes.NewReader(data)}, o)
		if have, want := scanOutcome(tarshard.NewScannerAt(bytes.NewReader(data), int64(len(data)), &o)), readOutcome(linked); have != want {
			t.Fatalf("%+v: ScannerAt\n%s\nReader\n%s", o, have, want)
		}
	}
}

// metLimit reports whether a member was over a limit.
func metLimit(r result) bool {
	met := format.Class(r.err) == "limit" || r.skipped[tarshard.SkipLimit] > 0
	for _, l := range r.losses {
		met = met || format.Class(l.Err) == "limit"
	}
	return met
}

func outcomeOf(r result) string {
	return fmt.Sprint(describe(r.samples), r.skipped, r.warnings, r.losses, r.err)
}

// readOutcome and scanOutcome spell what both see.
func readOutcome(r result) string {
	var b strings.Builder
	for _, s := range r.samples {
		fmt.Fprintf(&b, "%q %d %d", s.Key, s.Index, s.Offset)
		for _, f := range s.Fields {
			fmt.Fprintf(&b, " %q@%d+%d", f.Name, f.Offset, len(f.Data))
		}
		b.WriteByte('\n')
	}
	fmt.Fprint(&b, onceCut(r.skipped), format.Class(r.err))
	return b.String()
}

// onceCut counts the end of a stream that is cut once: a Reader that misses
// payload there may count the payload and the end. Links are not compared then:
// in the search behind a cut a Reader may come upon one that a Scanner passes.
func onceCut(skipped map[string]int64) map[string]int64 {
	if skipped[tarshard.SkipTruncated] > 0 {
		skipped[tarshard.SkipTruncated] = 1
		delete(skipped, tarshard.SkipHardlink)
		delete(skipped, tarshard.SkipSymlink)
	}
	return skipped
}

func scanOutcome(s *tarshard.Scanner) string {
	var b strings.Builder
	var last error
	for e, err := range s.Entries() {
		if err != nil {
			last = err
			break
		}
		fmt.Fprintf(&b, "%q %d %d", e.Key, e.Index, e.Offset)
		for _, m := range e.Members {
			fmt.Fprintf(&b, " %q@%d+%d", m.Field, m.Data, m.Size)
		}
		b.WriteByte('\n')
	}
	fmt.Fprint(&b, onceCut(s.Skipped()), format.Class(last))
	return b.String()
}

// FuzzPAX puts records into a pax header before a member, and holds what comes
// of it against archive/tar.
func FuzzPAX(f *testing.F) {
	for _, s := range []string{
		"", "16 path=000.jpg\n", "12 size=10\n", "20 mtime=1500000.25\n", "13 mtime=-1.5\n",
		"7 size=\n", "8 path=\n", "5 a=\n", "9 =abcdef\n", "99999999999999999999 path=x\n", "30 mtime=1350244992.023960108\n",
		"28 GNU.sparse.name=000.bin\n22 GNU.sparse.major=1\n", "11 a=b\n11 c=d\n", "10 path=a\x00b\n", "26 size=4611686018427387904\n", "26 size=00000001100000000\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, records []byte) {
		if len(records) > 10_000 {
			return
		}
		data := withPAX(records)
		compareOracle(t, data)
		compareReaders(t, data)
		// What is refused must be refused as damage, not read as something else.
		w := tarshard.NewWalker(bytes.NewReader(data), nil)
		m, err := w.Next()
		if class := format.Class(err); err != nil && class != "corrupt" && class != "limit" {
			t.Fatalf("%q: %v", records, err)
		}
		if err == nil && m.Offset != 0 {
			t.Fatalf("%q: the member begins at %d", records, m.Offset)
		}
	})
}

// withPAX makes an archive of one member behind a pax header.
func withPAX(records []byte) []byte {
	var buf bytes.Buffer
	buf.Write(header("././@PaxHeader", 'x', int64(len(records))))
	buf.Write(records)
	buf.Write(make([]byte, -len(records)&511))
	buf.Write(header("000.jpg", '0', 10))
	buf.Write(append([]byte("0123456789"), make([]byte, 502)...))
	buf.Write(make([]byte, 1024))
	return buf.Bytes()
}

// header makes a ustar header by hand.
func header(name string, kind byte, size int64) []byte {
	return rawHeader(name, kind, fmt.Sprintf("%011o\x00", size))
}

func rawHeader(name string, kind byte, size string) []byte {
	h := make([]byte, 512)
	copy(h, name)
	copy(h[100:], "0000644\x000000000\x000000000\x00")
	copy(h[124:136], size)
	copy(h[136:], "00000000000\x00")
	h[156] = kind
	copy(h[257:], "ustar\x0000")
	setSum(h)
	return h
}
