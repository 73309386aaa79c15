package index_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/format/index"
)

const fixtures = "../../fixtures"

// open reads a shard that is no fault to hold in memory.
func open(t testing.TB, path string) index.Shard {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return index.Shard{Name: filepath.Base(path), At: bytes.NewReader(data), Size: int64(len(data))}
}

func build(t testing.TB, s index.Shard) *index.Index {
	t.Helper()
	var x *index.Index
	var err error
	if strings.HasSuffix(s.Name, ".tar") {
		x, err = index.OfTar(s, nil)
	} else {
		x, err = index.OfTFRecord(s, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func text(t testing.TB, x *index.Index, d index.Dialect) string {
	t.Helper()
	var b bytes.Buffer
	if err := x.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestIndexesOfRealTools reads what the tools wrote, holds it against the
// shards they wrote it of, writes it back, and builds the same from the shard.
func TestIndexesOfRealTools(t *testing.T) {
	raw, err := os.ReadFile(fixtures + "/index/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		File, Of, Dialect string
		Sound             bool
	}
	if err := json.Unmarshal(raw, &all); err != nil || len(all) < 20 {
		t.Fatalf("%d indexes, %v", len(all), err)
	}
	dialects := map[string]index.Dialect{
		"wds2idx v1.2": index.WDS, "wds2idx v1.1": index.WDS11, "energon tar.idx": index.Energon, "tfrecord2idx": index.DALI,
	}
	// Other members that wds2idx lists as samples are none: "__x__.txt" and
	// such; and it takes "./" for a part of the key.
	foreign := map[string]bool{"gnutar-hidden.v1.2.idx": true}
	for _, tt := range all {
		if tt.Dialect == "wids-shard-index-v1" {
			continue
		}
		t.Run(tt.File, func(t *testing.T) {
			want, err := os.ReadFile(fixtures + "/index/" + tt.File)
			if err != nil {
				t.Fatal(err)
			}
			d, ok := dialects[tt.Dialect]
			if !ok {
				t.Fatalf("dialect %q", tt.Dialect)
			}
			x, err := index.Read(bytes.NewReader(want), &index.Options{Name: tt.File})
			if err != nil {
				t.Fatal(err)
			}
			if x.Dialect != d && len(want) > 0 {
				t.Errorf("read as %s, want %s", x.Dialect, d)
			}
			s := open(t, filepath.Join(fixtures, "index", tt.Of))
			err = x.Check(t.Context(), s)
			if tt.Sound && err != nil || !tt.Sound && !errors.Is(err, format.ErrStale) {
				t.Errorf("Check of an index with sound %v: %v", tt.Sound, err)
			}
			if got := text(t, x, d); got != string(want) {
				t.Errorf("written back as %q, want %q", got, want)
			}
			if !tt.Sound || foreign[tt.File] {
				return
			}
			if got := text(t, build(t, s), d); got != string(want) {
				t.Errorf("built\n%q\nwant\n%q", got, want)
			}
		})
	}
}

func TestDatasetIndexesOfRealTools(t *testing.T) {
	for _, name := range []string{"webdataset.wids.json", "webdataset-base.wids.json"} {
		raw, err := os.ReadFile(fixtures + "/index/" + name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := index.ReadDataset(bytes.NewReader(raw), &index.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Shards) != 2 {
			t.Errorf("%s: %d shards, want 2", name, len(d.Shards))
		}
		for _, s := range d.Shards {
			shard := open(t, fixtures+"/tars/"+filepath.Base(s.URL))
			if x := build(t, shard); s.Size != shard.Size || s.Samples != int64(x.Len()) {
				t.Errorf("%s: %s has %d samples in %d bytes, and %d in %d were read", name, s.URL, s.Samples, s.Size, x.Len(), shard.Size)
			}
		}
		var again bytes.Buffer
		if err := d.Write(&again); err != nil {
			t.Fatal(err)
		}
		var got, want any
		if json.Unmarshal(again.Bytes(), &got) != nil || json.Unmarshal(raw, &want) != nil {
			t.Fatal("no JSON")
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: written back as\n%s\nwant\n%s", name, a, b)
		}
	}
}

// TestCases holds the cases that state what an index is, and which are stale.
func TestCases(t *testing.T) {
	raw, err := os.ReadFile(fixtures + "/cases/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name   string
		Files  []string
		Expect struct {
			IndexText  map[string]string `json:"index_text"`
			EnergonHex string            `json:"energon_idx_hex"`
			Index      []struct {
				Name         string
				Offset, Size int64
			}
			Error *struct {
				Class          string
				Record, Offset *int64
				Key            string
				AlsoOKAt       []struct{ Record, Offset int64 } `json:"also_ok_at"`
			}
		}
		Compose []any
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	dialects := map[string]index.Dialect{"wds2idx-1.2": index.WDS, "wds2idx-1.1": index.WDS11, "dali": index.DALI}
	texts, indexes, stales := 0, 0, 0
	for _, c := range all {
		if len(c.Files) == 0 || c.Compose != nil {
			continue
		}
		for name, want := range c.Expect.IndexText {
			texts++
			if got := text(t, build(t, open(t, fixtures+"/cases/"+c.Files[0])), dialects[name]); got != want {
				t.Errorf("%s: %s is\n%s\nwant\n%s", c.Name, name, got, want)
			}
		}
		if c.Expect.EnergonHex != "" {
			if got := hex.EncodeToString([]byte(text(t, build(t, open(t, fixtures+"/cases/"+c.Files[0])), index.Energon))); got != c.Expect.EnergonHex {
				t.Errorf("%s: energon is %s, want %s", c.Name, got, c.Expect.EnergonHex)
			}
		}
		if c.Expect.Index != nil {
			indexes++
			x, i := build(t, open(t, fixtures+"/cases/"+c.Files[0])), 0
			for k := range x.Len() {
				for _, f := range x.At(k).Fields {
					if w := c.Expect.Index[i]; f.Member != w.Name || f.Offset != w.Offset || f.Size != w.Size {
						t.Errorf("%s: member %d is %+v, want %+v", c.Name, i, f, w)
					}
					i++
				}
			}
			if i != len(c.Expect.Index) {
				t.Errorf("%s: %d members, want %d", c.Name, i, len(c.Expect.Index))
			}
		}
		if len(c.Files) != 2 || !strings.HasSuffix(c.Files[1], ".idx") {
			continue
		}
		stales++
		data, err := os.ReadFile(fixtures + "/cases/" + c.Files[1])
		if err != nil {
			t.Fatal(err)
		}
		x, err := index.Read(bytes.NewReader(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = x.Check(t.Context(), open(t, fixtures+"/cases/"+c.Files[0]))
		if want := c.Expect.Error; want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		} else if e := format.AsError(err); e == nil || format.Class(err) != want.Class || want.Key != "" && e.Key != want.Key ||
			want.Record != nil && e.Record != *want.Record || want.Offset != nil && e.Offset != *want.Offset {
			t.Errorf("%s: %v, want %+v", c.Name, err, *want)
		}
	}
	if texts < 5 || indexes < 4 || stales < 5 {
		t.Errorf("only %d texts, %d indexes and %d sidecars were held", texts, indexes, stales)
	}
}

// TestCheckFindsWhatChanged changes a shard under its index.
func TestCheckFindsWhatChanged(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile(fixtures + "/cases/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	tar, records := read("container/good_ustar.tar"), read("tfrecord/good.tfrecord")
	of := func(name string, data []byte) index.Shard {
		return index.Shard{Name: name, At: bytes.NewReader(data), Size: int64(len(data))}
	}
	for _, tt := range []struct {
		name  string
		shard index.Shard // that the index is of
		now   []byte
	}{
		{"records appended", of("a.tfrecord", records), append(bytes.Clone(records), records...)},
		{"records cut", of("a.tfrecord", records), records[:len(records)-1]},
		{"records shifted", of("a.tfrecord", records), append([]byte{0}, records[:len(records)-1]...)},
		{"no bytes", of("a.tfrecord", records), nil},
		{"a sample appended", of("a.tar", tar[:4096]), tar},
		{"tar cut", of("a.tar", tar), tar[:2600]},
		{"tar shifted", of("a.tar", tar), append(make([]byte, 512), tar[:len(tar)-512]...)},
		{"tar without bytes", of("a.tar", tar), nil},
	} {
		for _, d := range []index.Dialect{index.DALI, index.WDS, index.WDS11, index.Energon} {
			if strings.HasSuffix(tt.shard.Name, ".tar") == (d == index.DALI) {
				continue
			}
			x, err := index.Read(strings.NewReader(text(t, build(t, tt.shard), d)), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Check(t.Context(), tt.shard); err != nil {
				t.Errorf("%s, %s: before: %v", tt.name, d, err)
			}
			if err := x.Check(t.Context(), of("now", tt.now)); !errors.Is(err, format.ErrStale) {
				t.Errorf("%s, %s: %v, want stale", tt.name, d, err)
			}
		}
	}
}
