package shard_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/shard"
)

// damagedCase is what the tests of this package need of a case; see
// fixtures/cases/README.md.
type damagedCase struct {
	Name, Kind string
	Files      []string
	Compose    []any
	Expect     caseExpect
}

type caseExpect struct {
	delivery
	Warnings     map[string]int64
	Exit         *int
	AlsoOK       [][]caseSample `json:"samples_also_ok"`
	Alternatives []struct {
		delivery
		Policy string
	}
}

type delivery struct {
	Samples []caseSample
	Records []string
	Error   *struct {
		Class  string
		AlsoOK []string `json:"also_ok"`
	}
}

type caseSample struct {
	Key    string
	Fields map[string]string
}

// texts gives the samples or records as strings.
func (d *delivery) texts() []string {
	all := slices.Clone(d.Records)
	for _, s := range d.Samples {
		all = append(all, fmt.Sprint(s.Key, s.Fields))
	}
	return all
}

// loadCases returns the cases of shards that have files.
func loadCases(t *testing.T) (all []damagedCase) {
	t.Helper()
	text, err := os.ReadFile(fixtures + "cases/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(text, &raws); err != nil {
		t.Fatal(err)
	}
	for _, raw := range raws {
		var kind struct {
			Kind    string
			Compose any
		}
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"keys", "container", "tfrecord"}, kind.Kind) || kind.Compose != nil {
			continue
		}
		var c damagedCase
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if len(all) < 80 {
		t.Fatalf("only %d cases", len(all))
	}
	return all
}

// paths returns the shards of a case, and the index among its files or "".
func (c *damagedCase) paths() (shards []string, index string) {
	for _, f := range c.Files {
		if strings.HasSuffix(f, ".idx") {
			index = fixtures + "cases/" + f
		} else {
			shards = append(shards, fixtures+"cases/"+f)
		}
	}
	return shards, index
}

func TestVerifyCases(t *testing.T) {
	for _, c := range loadCases(t) {
		e := &c.Expect
		if e.Exit == nil {
			continue
		}
		shards, index := c.paths()
		var faults []error
		err := shard.Verify(t.Context(), shards, &shard.VerifyOptions{Index: index}, func(v *shard.Verification) error {
			faults = append(faults, v.Errors...)
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if (len(faults) > 0) != (*e.Exit == 1) {
			t.Errorf("%s: faults %v, want exit %d", c.Name, faults, *e.Exit)
			continue
		}
		var want []string
		switch {
		case e.Error != nil:
			want = append(e.Error.AlsoOK, e.Error.Class)
		case e.Warnings[string(format.NoEndMarker)] > 0:
			want = []string{"truncated"}
		case len(e.Warnings) > 0:
			want = []string{"corrupt"}
		}
		if want != nil && !slices.Contains(want, format.Class(faults[0])) {
			t.Errorf("%s: %v, want %v", c.Name, faults[0], want)
		}
	}
}

// TestRepairCases repairs all cases, damaged and sound. The output holds what
// the most lenient policy that a case gives delivers.
func TestRepairCases(t *testing.T) {
	// Behind what the default policy delivers, these have something sound.
	behind := map[string][]string{
		"b2_header_checksum":    {"0003"},
		"c2_length_1tib_second": {""},
	}
	for _, c := range loadCases(t) {
		shards, index := c.paths()
		e := &c.Expect
		if len(shards) != 1 || index != "" || e.Samples == nil && e.Records == nil {
			continue
		}
		want := [][]string{e.texts()}
		for _, list := range e.AlsoOK {
			want = append(want, (&delivery{Samples: list}).texts())
		}
		for _, a := range e.Alternatives {
			if a.Error == nil && slices.Contains([]string{"on-error=skip", "on-error=resync", "on-duplicate=keep-first"}, a.Policy) {
				want = [][]string{a.texts()}
			}
		}
		suffix := ".tfrecord"
		if reader.FormatOf(shards[0]) == reader.Tar {
			suffix = ".tar"
		}
		dir := t.TempDir()
		out, again := filepath.Join(dir, "out"+suffix), filepath.Join(dir, "again"+suffix)
		done, err := shard.Repair(t.Context(), shards[0], out, nil)
		if class := format.Class(err); class != "" {
			if left := files(t, dir); e.Error == nil || class != e.Error.Class || class != "wrong-format" || len(left) > 0 {
				t.Errorf("%s: %v; left %v", c.Name, err, left)
			}
			continue
		}
		got, keys := hashes(t, out, c.Kind == "tfrecord")
		if more := behind[c.Name]; more != nil {
			n := len(want[0])
			if len(got) != n+len(more) || !slices.Equal(keys[n:], more) {
				t.Errorf("%s: %v, want %v and %v", c.Name, got, want[0], more)
				continue
			}
			got = got[:n]
		}
		if !slices.ContainsFunc(want, func(w []string) bool { return slices.Equal(w, got) }) {
			t.Errorf("%s: %v, want %v", c.Name, got, want)
		}
		if (e.Error != nil) != (done.Lost > 0 || done.Skipped["duplicate"] > 0) {
			t.Errorf("%s: lost %d %v and skipped %v, the case says %v", c.Name, done.Lost, done.Losses, done.Skipped, e.Error)
		}
		// The repaired shard is without fault: to repair it again changes nothing.
		err = shard.Verify(t.Context(), []string{out}, nil, func(v *shard.Verification) error {
			if !v.OK() {
				t.Errorf("%s: the repaired shard has %v", c.Name, v.Errors)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := shard.Repair(t.Context(), out, again, nil); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		one, _ := os.ReadFile(out)
		if two, _ := os.ReadFile(again); !bytes.Equal(one, two) {
			t.Errorf("%s: a second repair gives another shard", c.Name)
		}
	}
}

// hashes reads a shard as the cases describe one, and the keys.
func hashes(t *testing.T, name string, records bool) (all, keys []string) {
	t.Helper()
	o := &reader.Options{}
	if records {
		o.Type = reader.Raw
	}
	for s, err := range reader.New(&store.Local{}, []string{name}, o).Samples(t.Context()) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		keys = append(keys, string(s.Key))
		fields := make(map[string]string)
		for _, f := range s.Fields {
			sum := sha256.Sum256(f.Data)
			fields[strings.ToLower(f.Name)] = hex.EncodeToString(sum[:])
		}
		if sum, ok := fields[reader.RawField]; ok && records {
			all = append(all, sum)
		} else {
			all = append(all, fmt.Sprint(string(s.Key), fields))
		}
	}
	return all, keys
}
