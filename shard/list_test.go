package shard_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shardtool/format"
	"shardtool/shard"
)

// TestListedFeaturesAreTensorFlows holds the values of features, of one file in
// three compressions, against those that TensorFlow read.
func TestListedFeaturesAreTensorFlows(t *testing.T) {
	text, err := os.ReadFile(fixtures + "tf/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		File, Holds string
		Records     []struct {
			Offset   int64
			Features []struct {
				Name   string
				Kind   *string
				Values []string
			}
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, f := range all {
		if f.Holds != "example" || f.File == "variants.tfrecord" {
			continue
		}
		var got []string
		o := &shard.ListOptions{Hash: true, Most: 1 << 20}
		err := shard.List(t.Context(), []string{fixtures + "tf/" + f.File}, o, func(l *shard.Listed) error {
			var lines []string
			for _, field := range l.Fields {
				lines = append(lines, listedText(t, &field))
			}
			slices.Sort(lines)
			got = append(got, fmt.Sprint(l.Offset, lines))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, r := range f.Records {
			var lines []string
			for _, x := range r.Features {
				kind := "none"
				if x.Kind != nil {
					kind = *x.Kind
				}
				if kind == "bytes" && len(x.Values) == 1 {
					data, err := hex.DecodeString(x.Values[0])
					if err != nil {
						t.Fatal(err)
					}
					sum := sha256.Sum256(data)
					x.Values[0] = hex.EncodeToString(sum[:])
				}
				lines = append(lines, fmt.Sprintf("%s %s %q", x.Name, kind, x.Values))
				held++
			}
			slices.Sort(lines)
			want = append(want, fmt.Sprint(r.Offset, lines))
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%s: %s", f.File, cmp.Diff(want, got))
		}
	}
	if held < 60 {
		t.Errorf("only %d features", held)
	}
}

// listedText gives the values of a field as expected.json spells them; one byte
// string by its hash, which must be that of its data.
func listedText(t *testing.T, f *shard.ListedField) string {
	t.Helper()
	values := []string{}
	kind := f.Kind.String()
	switch f.Kind {
	case format.Bytes, format.BytesList:
		kind = "bytes"
	}
	for _, v := range f.Values {
		switch v := v.(type) {
		case int64:
			values = append(values, strconv.FormatInt(v, 10))
		case float32:
			values = append(values, fmt.Sprintf("%08x", math.Float32bits(v)))
		case []byte:
			values = append(values, hex.EncodeToString(v))
		default:
			t.Errorf("a value of type %T", v)
		}
	}
	if f.Kind != format.Bytes && f.Count != len(values) {
		t.Errorf("%s has %d values, %d are listed", f.Name, f.Count, len(values))
	}
	if f.Kind == format.Bytes {
		values = []string{hex.EncodeToString(f.SHA256[:])}
	}
	return fmt.Sprintf("%s %s %q", f.Name, kind, values)
}

func TestListChoosesSamples(t *testing.T) {
	a, b := writeTar(t, "a.tar", 25), writeTar(t, "b.tar", 25)
	for _, tt := range []struct {
		name string
		o    shard.ListOptions
		want []string
	}{
		{"a pattern", shard.ListOptions{Keys: []string{"*/0003"}}, []string{"a/0003", "b/0003"}},
		{"a star stays in its folder", shard.ListOptions{Keys: []string{"*0003"}}, nil},
		{"two stars do not", shard.ListOptions{Keys: []string{"**/0003"}}, []string{"a/0003", "b/0003"}},
		{"two patterns", shard.ListOptions{Keys: []string{"a/0003", "b/*1"}}, []string{"a/0003", "b/0001", "b/0011", "b/0021"}},
		{"skipped are those that match", shard.ListOptions{Keys: []string{"b/*"}, Skip: 23}, []string{"b/0023", "b/0024"}},
		{"limit", shard.ListOptions{Limit: 2}, []string{"a/0000", "a/0001"}},
		{"skip over a shard", shard.ListOptions{Skip: 30, Limit: 1}, []string{"b/0005"}},
		{"skip over all", shard.ListOptions{Skip: 50, Limit: 1}, nil},
	} {
		var got []string
		err := shard.List(t.Context(), []string{a, b}, &tt.o, func(l *shard.Listed) error {
			got = append(got, string(l.Key))
			return nil
		})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	if err := shard.List(t.Context(), []string{a}, &shard.ListOptions{Keys: []string{"[a"}}, nil); !errors.Is(err, format.ErrUsage) {
		t.Errorf("a bad pattern: %v", err)
	}
	// The first error ends it; what stands before is listed.
	n := 0
	bad := fixtures + "cases/container/b2_header_checksum.tar"
	err := shard.List(t.Context(), []string{a, bad, b}, &shard.ListOptions{Hash: true}, func(l *shard.Listed) error {
		n++
		if f := l.Fields[0]; l.Shard == a && f.SHA256 != sha256.Sum256(make([]byte, 0)) && l.Index == 0 {
			t.Errorf("an empty field has the hash %x", f.SHA256)
		}
		return nil
	})
	if e := format.AsError(err); !errors.Is(err, format.ErrCorrupt) || e.Shard != bad || e.Offset != 2048 || n != 26 {
		t.Errorf("%d samples, then %v", n, err)
	}
	// An error of the caller is passed on.
	enough := errors.New("enough")
	if err := shard.List(t.Context(), []string{a, b}, nil, func(*shard.Listed) error { return enough }); err != enough {
		t.Errorf("%v, want the caller's error", err)
	}
}
