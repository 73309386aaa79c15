package index_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"shardtool/format"
	"shardtool/format/index"
)

// le writes numbers as Energon does.
func le(numbers ...uint64) string {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return string(b)
}

func TestReadTellsDialectsApart(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		dialect  index.Dialect
		want     string // entries: "offset+size name@offset+size name@..."; -1 is not told
	}{
		{"dali", "0 28\n28 16\n", index.DALI, "0+28|28+16"},
		{"dali of CRLF lines, the last without an end", "0 28\r\n28 16", index.DALI, "0+28|28+16"},
		{"dali with blanks", "\n  0\t28  \n\n28 16\n\n", index.DALI, "0+28|28+16"},
		{"dali with a gap", "0 28\n100 16\n", index.DALI, "0+28|100+16"},
		{"no records", "", index.DALI, ""},
		{"wds", "v1.2 2\njpg 512 187 a.jpg cls 1536 1 a.cls\njpg 2560 3 b.jpg\n", index.WDS,
			"-1+-1 a.jpg@512+187 a.cls@1536+1|-1+-1 b.jpg@2560+3"},
		{"wds of CRLF lines, the last without an end", "v1.2 1\r\njpg 512 187 a.jpg", index.WDS, "-1+-1 a.jpg@512+187"},
		{"wds-1.1", "v1.1 1\njpg 512 187 seg.png 1536 1\n\n", index.WDS11, "-1+-1 jpg@512+187 seg.png@1536+1"},
		{"no samples", "v1.2 0\n", index.WDS, ""},
		{"names with spaces, as wds2idx writes them", "v1.2 1\njpg 512 1 my dir/a 1 2.jpg my cls 1536 1 my dir/a 1 2.my cls\n", index.WDS,
			"-1+-1 my dir/a 1 2.jpg@512+1 my dir/a 1 2.my cls@1536+1"},
		{"names without dot, as wds2idx writes them", "v1.2 1\nd/__meta__ 512 1 d/__meta__ LICENSE 1536 1 LICENSE\n", index.WDS,
			"-1+-1 d/__meta__@512+1 LICENSE@1536+1"},
		{"energon", le(0, 2048, 4096), index.Energon, "0+2048|2048+2048"},
		{"energon of no samples", le(0), index.Energon, ""},
		{"energon that begins behind a folder", le(512, 1536), index.Energon, "512+1024"},
	} {
		for _, slow := range []bool{false, true} {
			var r = iotest.DataErrReader(strings.NewReader(tt.in))
			if slow {
				r = iotest.OneByteReader(strings.NewReader(tt.in))
			}
			x, err := index.Read(r, nil)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			var got []string
			for i := range x.Len() {
				e := x.At(i)
				s := fmt.Sprintf("%d+%d", e.Offset, e.Size)
				for _, f := range e.Fields {
					name := f.Member
					if name == "" {
						name = f.Name
					}
					s += fmt.Sprintf(" %s@%d+%d", name, f.Offset, f.Size)
				}
				got = append(got, s)
			}
			if x.Dialect != tt.dialect || strings.Join(got, "|") != tt.want {
				t.Errorf("%s: %s %s, want %s %s", tt.name, x.Dialect, strings.Join(got, "|"), tt.dialect, tt.want)
			}
		}
	}
}

func TestReadFaults(t *testing.T) {
	const most = "9223372036854775807"
	for _, tt := range []struct {
		name, in string
		sentinel error
		says     string
	}{
		{"offset goes back", "0 28\n100 20\n28 16\n", format.ErrCorrupt, "i.idx @ 12 (sample 2): corrupt: line 3: offset 28"},
		{"records overlap", "0 28\n27 16\n", format.ErrCorrupt, "line 2: offset 27 lies before 28"},
		{"negative offset", "-1 28\n", format.ErrCorrupt, "line 1: a negative offset: -1"},
		{"negative size", "0 -28\n", format.ErrCorrupt, "line 1: a negative size"},
		{"overflow", "0 " + most + "0\n", format.ErrCorrupt, "line 1: a size beyond all files"},
		{"end overflows", "0 28\n28 " + most + "\n", format.ErrCorrupt, "line 2: the record would end beyond all files"},
		{"smaller than its framing", "0 15\n", format.ErrCorrupt, "the framing alone takes 16"},
		{"a third number", "0 28 1\n", format.ErrCorrupt, "line 1: more than an offset and a size"},
		{"half a line", "0 28\n28", format.ErrCorrupt, "line 2: no size"},
		{"words", "0 28\n28 16\n" + strings.Repeat("\n", 600) + "abc 1\n", format.ErrCorrupt, `line 603: "abc" is no offset`},

		{"another version", "v1.3 1\n", format.ErrUnsupported, "version v1.3"},
		{"no number of samples", "v1.2\n", format.ErrCorrupt, "line 1: no number of samples"},
		{"samples below zero", "v1.2 -1\n", format.ErrCorrupt, "negative number of samples"},
		{"fewer samples", "v1.2 3\njpg 512 1 a.jpg\njpg 1536 1 b.jpg\n", format.ErrTruncated, "i.idx @ 40 (sample 2): truncated: line 4: ends after 2 samples of 3"},
		{"as many samples as there can be", "v1.2 " + most + "\n", format.ErrTruncated, "ends after 0 samples"},
		{"more samples", "v1.2 1\njpg 512 1 a.jpg\njpg 1536 1 b.jpg\n", format.ErrCorrupt, "line 3: goes on after the last sample"},
		{"an empty sample", "v1.2 2\n\njpg 512 1 a.jpg\n", format.ErrCorrupt, "line 2: a sample without fields"},
		{"no name", "v1.2 1\njpg 512 1\n", format.ErrCorrupt, "line 2: no name"},
		{"the name of another field", "v1.2 1\njpg 512 1 a.png\n", format.ErrCorrupt, "line 2: no name"},
		{"no size", "v1.1 1\njpg 512\n", format.ErrCorrupt, "line 2: no offset and size"},
		{"offset off the grid", "v1.1 1\njpg 513 1\n", format.ErrCorrupt, "not at a block of 512"},
		{"size before offset", "v1.2 1\njpg 187 512 a.jpg\n", format.ErrCorrupt, "not at a block of 512"},
		{"no room for a header", "v1.1 1\njpg 0 1\n", format.ErrCorrupt, "no room for its header"},
		{"members overlap", "v1.1 2\njpg 512 513\njpg 1536 1\n", format.ErrCorrupt, "line 3: offset 1536"},
		{"member beyond all files", "v1.1 1\njpg 512 " + most + "\n", format.ErrCorrupt, "beyond all files"},

		{"energon cut", le(0, 2048)[:12], format.ErrTruncated, "ends 4 bytes into an offset"},
		{"energon goes back", le(0, 2048, 1024), format.ErrCorrupt, "i.idx @ 16 (sample 2): corrupt: offset 1024 does not lie after 2048"},
		{"energon off the grid", le(0, 100), format.ErrCorrupt, "not at a block"},
		{"energon beyond all files", le(0, 1<<63), format.ErrCorrupt, "beyond all files"},

		{"JSON", `{"__kind__":"wids-shard-index-v1"}`, format.ErrWrongFormat, "of a whole dataset"},
		{"a pointer", "version https://git-lfs.github.com/spec/v1\n", format.ErrWrongFormat, "Git LFS pointer"},
		{"text", "hello world", format.ErrWrongFormat, "not an index"},
		{"over the limit", strings.Repeat("0 1234567890\n", 1) + strings.Repeat("\n", 2000), format.ErrLimit, "more than 1000 bytes"},
		{"a line over the limit", "v1.2 1\n" + strings.Repeat("a", 2000), format.ErrLimit, "more than 1000 bytes"},
	} {
		_, err := index.Read(strings.NewReader(tt.in), &index.Options{Name: "i.idx", Limits: &format.Limits{Index: 1000}})
		if !errors.Is(err, tt.sentinel) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %v saying %s", tt.name, err, tt.sentinel, tt.says)
		}
	}
}

func TestReadPassesFailuresOn(t *testing.T) {
	for _, in := range []string{"0 28\n", "v1.2 9\n", le(0), "{"} {
		disk := errors.New("bad sector")
		broken := iotest.ErrReader(disk)
		r := func() *strings.Reader { return strings.NewReader(in) }
		for _, err := range []error{
			second(index.Read(readers{r(), broken}, nil)),
			second(index.ReadDataset(readers{r(), broken}, nil)),
		} {
			if !errors.Is(err, format.ErrIO) && !errors.Is(err, format.ErrWrongFormat) || errors.Is(err, format.ErrIO) != errors.Is(err, disk) {
				t.Errorf("%q, then a bad sector: %v", in, err)
			}
		}
		if _, err := index.Read(readers{r(), iotest.ErrReader(context.Canceled)}, nil); !errors.Is(err, context.Canceled) && !errors.Is(err, format.ErrWrongFormat) {
			t.Errorf("%q, then the end of the context: %v", in, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// readers is a first reader and what follows it at its end.
type readers struct {
	first *strings.Reader
	then  interface{ Read([]byte) (int, error) }
}

func (r readers) Read(p []byte) (int, error) {
	if r.first.Len() > 0 {
		return r.first.Read(p)
	}
	return r.then.Read(p)
}

func TestReadDatasetFaults(t *testing.T) {
	const head = `{"__kind__":"wids-shard-index-v1","wids_version":1,`
	for _, tt := range []struct {
		name, in string
		sentinel error
		says     string
	}{
		{"cut", head + `"shardlist":[{"url":"a","nsamples":1},`, format.ErrTruncated, "ends too early"},
		{"cut in a value", head + `"shardlist":[{"url":"a`, format.ErrTruncated, "ends too early"},
		{"no shards", head + `"name":"x"}`, format.ErrCorrupt, "no shardlist"},
		{"no url", head + `"shardlist":[{"url":"a","nsamples":1},{"nsamples":1}]}`, format.ErrCorrupt, "(sample 1): corrupt: a shard without url"},
		{"no count", head + `"shardlist":[{"url":"a"}]}`, format.ErrCorrupt, "without nsamples"},
		{"a negative count", head + `"shardlist":[{"url":"a","nsamples":-1}]}`, format.ErrCorrupt, "negative number"},
		{"a negative size", head + `"shardlist":[{"url":"a","nsamples":1,"filesize":-1}]}`, format.ErrCorrupt, "negative number"},
		{"a count that is none", head + `"shardlist":[{"url":"a","nsamples":1.5}]}`, format.ErrCorrupt, ""},
		{"a number beyond all", head + `"shardlist":[{"url":"a","nsamples":99999999999999999999}]}`, format.ErrCorrupt, ""},
		{"no JSON", head + `oops}`, format.ErrCorrupt, "invalid character"},
		{"more behind it", head + `"shardlist":[]} x`, format.ErrCorrupt, ""},
		{"another version", `{"__kind__":"wids-shard-index-v1","wids_version":2,"shardlist":[]}`, format.ErrUnsupported, "wids_version 2"},
		{"another kind", `{"__kind__":"other","shardlist":[]}`, format.ErrWrongFormat, "no wids-shard-index-v1"},
		{"other JSON", `{"a":[1,{"b":null}]}`, format.ErrWrongFormat, "no wids-shard-index-v1"},
		{"no JSON at all", "0 28\n", format.ErrWrongFormat, "not a JSON document"},
		{"over the limit", head + `"info":"` + strings.Repeat("x", 2000) + `"}`, format.ErrLimit, "more than 1000 bytes"},
		{"deep", head + `"x":` + strings.Repeat("[", 800), format.ErrTruncated, ""},
	} {
		_, err := index.ReadDataset(strings.NewReader(tt.in), &index.Options{Name: "d.json", Limits: &format.Limits{Index: 1000}})
		if !errors.Is(err, tt.sentinel) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %v saying %s", tt.name, err, tt.sentinel, tt.says)
		}
	}
}

// TestLinksAreLeftOut: an index leads to no data under the name of a link, as
// wds2idx has it, and still fits its shard.
func TestLinksAreLeftOut(t *testing.T) {
	for _, name := range []string{"gnutar-links-gnu.tar", "gnutar-links-posix.tar", "gnutar-links-ustar.tar", "gnutar-links-v7.tar"} {
		s := open(t, fixtures+"/tars/"+name)
		x := build(t, s)
		if x.Links == 0 {
			t.Errorf("%s: no links", name)
		}
		for _, d := range []index.Dialect{index.WDS, index.WDS11, index.Energon} {
			again, err := index.Read(strings.NewReader(text(t, x, d)), nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, d, err)
			}
			if err := again.Check(t.Context(), s); err != nil || again.Len() != x.Len() {
				t.Errorf("%s, %s: %d of %d entries, %v", name, d, again.Len(), x.Len(), err)
			}
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	read := func(in string) *index.Index {
		x, err := index.Read(strings.NewReader(in), &index.Options{Name: "i"})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, tt := range []struct {
		name string
		x    *index.Index
		d    index.Dialect
		says string
	}{
		{"a tar's as a TFRecord's", read("v1.2 1\njpg 512 1 a.jpg\n"), index.DALI, "is of a tar"},
		{"a TFRecord's as a tar's", read("0 28\n"), index.WDS, "is of a TFRecord"},
		{"names that are not told", read("v1.1 1\njpg 512 1\n"), index.WDS, "names of members"},
		{"starts that are not told", read("v1.2 1\njpg 512 1 a.jpg\n"), index.Energon, "where samples begin"},
		{"fields that are not told", read(le(0, 1024)), index.WDS11, "fields of samples"},
		{"a space in a name", read("v1.2 1\njpg 512 1 a b.jpg\n"), index.WDS, `"a b.jpg" has a space`},
		{"a space in a field", read("v1.2 1\nj g 512 1 a.j g\n"), index.WDS11, `"j g"`},
		{"a dataset's", read("0 28\n"), index.WIDS, "of a dataset"},
	} {
		var b bytes.Buffer
		err := tt.x.Write(&b, tt.d)
		if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), tt.says) || b.Len() > 0 {
			t.Errorf("%s: %v, %q", tt.name, err, b.String())
		}
	}
	var b bytes.Buffer
	if err := read("v1.2 1\njpg 512 1 a b.jpg\n").Write(&b, index.WDS11); err != nil || b.String() != "v1.1 1\njpg 512 1\n" {
		t.Errorf("a space in a name that is not written: %q, %v", b.String(), err)
	}
}

func TestLookup(t *testing.T) {
	x, err := index.Read(strings.NewReader("v1.2 4\njpg 512 1 ./d/a.jpg\ncls 1536 1 b.cls\njpg 2560 1 b.jpg\nM 3584 1 M\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"d/a": 0, "b": 1, "": -1, "M": -1, "c": -1} {
		i, ok := x.Lookup(key)
		if ok != (want >= 0) || ok && i != want {
			t.Errorf("%q: %d, %v", key, i, ok)
		}
	}
}

// A hostile line costs time in proportion to its bytes.
func TestReadIsLinearInTheBytes(t *testing.T) {
	for _, in := range []string{
		"v1.2 1\na 512 1 b.a" + strings.Repeat(" x.a", 1<<18),
		"v1.2 1\n" + strings.Repeat("a ", 1<<19),
		"v1.2 1\n" + strings.Repeat("1 ", 1<<19),
		"v1.2 1\na 512 1 " + strings.Repeat("a", 1<<20),
		"v1.2 1\na 512 1 " + strings.Repeat(".a ", 1<<18),
	} {
		if _, err := index.Read(strings.NewReader(in), nil); err == nil {
			t.Errorf("%.40s... was read", in)
		}
	}
}
