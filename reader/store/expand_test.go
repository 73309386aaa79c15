package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
)

// braceCases were expanded by Python's braceexpand 0.1.7, the module that
// webdataset uses.
var braceCases = []struct {
	pattern string
	want    []string
}{
	{"train-{000..003}.tar", []string{"train-000.tar", "train-001.tar", "train-002.tar", "train-003.tar"}},
	{"{1..3}", []string{"1", "2", "3"}},
	{"{07..10}", []string{"07", "08", "09", "10"}},
	{"{10..7}", []string{"10", "9", "8", "7"}},
	{"{2..-1}", []string{"2", "1", "0", "-1"}},
	{"{-01..1}", []string{"-01", "000", "001"}},
	{"{0..9..3}", []string{"0", "3", "6", "9"}},
	{"{9..0..-4}", []string{"9", "5", "1"}},
	{"{5..5}", []string{"5"}},
	{"{1..5..0}", []string{"1", "2", "3", "4", "5"}},
	{"{a..e..2}", []string{"a", "c", "e"}},
	{"{e..a}", []string{"e", "d", "c", "b", "a"}},
	{"{X..b}", []string{"X", "Y", "Z", "a", "b"}},
	{"a{,.b}c", []string{"ac", "a.bc"}},
	{"python{2.{5..7},3.{2,3}}", []string{"python2.5", "python2.6", "python2.7", "python3.2", "python3.3"}},
	{"{a}", []string{"{a}"}},
	{"x{}y", []string{"x{}y"}},
	{"{a{1,2}}", []string{"{a1}", "{a2}"}},
	{"{a,b}{1..2}", []string{"a1", "a2", "b1", "b2"}},
	{"{{1..2},{a,b}}", []string{"1", "2", "a", "b"}},
	{`\{a,b\}`, []string{"{a,b}"}},
	{`a\,{b\,c,d}`, []string{"a,b,c", "a,d"}},
	{"{1..2..3..4}", []string{"{1..2..3..4}"}},
	{"{a..1}", []string{"{a..1}"}},
	{"{1..}", []string{"{1..}"}},
	{"{00..2}", []string{"00", "01", "02"}},
	{"{0..00}", []string{"00"}},
	{"{-5..-3}", []string{"-5", "-4", "-3"}},
	{"{1..003}", []string{"001", "002", "003"}},
	{"{a,{b,{c,d}}}", []string{"a", "b", "c", "d"}},
	{"{ab..cd}", []string{"{ab..cd}"}},
	{"{a..c}{,,}", nil}, // 'a' three times, 'b' three times, 'c' three times; see below
}

func TestExpandBraces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a backslash is part of a path there")
	}
	for _, tt := range braceCases {
		want := tt.want
		if want == nil {
			want = strings.Split("aaabbbccc", "")
		}
		got, err := store.Expand(t.Context(), &store.Local{}, tt.pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", tt.pattern, got, err, want)
		}
	}
}

// Names stand in byte order within a glob, and as given between patterns.
func TestExpandFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names with * are no names there")
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"b.tar", "a.tar", "B.tar", "10.tar", "9.tar", ".hidden.tar", ".a.tar.123.shardtool-part", "a[1].tar", "a1.tar", "star*.tar", "x::y.tar", "c.{z}.tar",
		"d/a.tar", "d/e/a.tar", "d/e/f/b.tar", "d/.h/a.tar", "d.tar/inner.tar",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", "d/up"); err != nil { // a circle
		t.Fatal(err)
	}
	for _, tt := range []struct {
		patterns string // by spaces
		want     string
	}{
		{"*.tar", "10.tar 9.tar B.tar a.tar a1.tar a[1].tar b.tar c.{z}.tar star*.tar x::y.tar"},
		{"b.tar a.tar b.tar", "b.tar a.tar b.tar"},
		{"b.tar::{a,9}.tar", "b.tar a.tar 9.tar"},
		{"[ab].tar ?.tar", "a.tar b.tar 9.tar B.tar a.tar b.tar"},
		{"a[1].tar", "a[1].tar"}, // the file of that very name
		{"a[0-9].tar", "a1.tar"},
		{`a\[1\].tar`, "a[1].tar"},
		{`star\*.tar`, "star*.tar"},
		{"x::y.tar", "x::y.tar"},
		{"c.{z}*", "c.{z}.tar"},
		{"{d,d/e}/*.tar", "d/a.tar d/e/a.tar"},
		{"d/**/*.tar", "d/a.tar d/e/a.tar d/e/f/b.tar"},
		{"**/b.tar", "b.tar d/e/f/b.tar"},
		{"d*/*.tar", "d.tar/inner.tar d/a.tar"},
		{".hid*", ".hidden.tar"},
		{"not-there.tar", "not-there.tar"}, // told by whoever opens it
		{"- a.tar", "- a.tar"},
		{"./a.tar", "./a.tar"},
		{"http://h/a*.tar?x=[1]", "http://h/a*.tar?x=[1]"},
		{"http://[::1]:80/{0..1}.tar::a.tar", "http://[::1]:80/0.tar http://[::1]:80/1.tar a.tar"},
	} {
		got, err := store.Expand(t.Context(), &store.Local{}, strings.Fields(tt.patterns)...)
		if err != nil || !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s:\n got  %q, %v\n want %s", tt.patterns, got, err, tt.want)
		}
	}
}

func TestExpandFaults(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("folder/sub", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pattern  string
		sentinel error
		says     string
	}{
		{"*.tar", format.ErrNotFound, "*.tar: not-found: nothing matches"},
		{"folder/*", format.ErrNotFound, "folder/*: not-found"}, // a folder is no match
		{"nowhere/**/x", format.ErrNotFound, "nowhere"},
		{"{a,b}*.tar", format.ErrNotFound, "a*.tar: not-found"},
		{"folder", format.ErrUsage, "folder: usage: is a folder; write folder/*.tar"},
		{"folder/", format.ErrUsage, "write folder/*.tar"},
		{"a{b", format.ErrUsage, "not closed"},
		{"a}b", format.ErrUsage, "not opened"},
		{"{a}}", format.ErrUsage, "not opened"},
		{"a[b", format.ErrUsage, "bracket"},
		{"", format.ErrUsage, "empty path"},
		{"a::", format.ErrUsage, "empty path"},
		{"{,a}", format.ErrUsage, "empty path"},
		{"{0..999999999}", format.ErrLimit, "more than 1048576 names"},
		{"{0..9223372036854775807}", format.ErrLimit, "more than"},
		{"{-9223372036854775807..9223372036854775807..9}", format.ErrLimit, "more than"},
		{"{0..99999999999999999999}", format.ErrLimit, "too many digits"},
		{"{1..9}{1..99}{1..999}{1..9999}", format.ErrLimit, "more than"},
		{strings.Repeat("{a,b}", 60), format.ErrLimit, "more than"},
		{strings.Repeat("x", 1000) + "{1..999999}", format.ErrLimit, "bytes"},
		{strings.Repeat("{", 200) + strings.Repeat("}", 200), format.ErrLimit, "braces stand in"},
	} {
		_, err := store.Expand(t.Context(), &store.Local{}, tt.pattern)
		if !errors.Is(err, tt.sentinel) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.40s: %v; want %v, saying %s", tt.pattern, err, tt.sentinel, tt.says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Expand(ctx, &store.Local{}, "{1..9}*"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
}

func TestExpandByListing(t *testing.T) {
	fsys := fstest.MapFS{}
	for _, name := range []string{"a/1.tar", "a/2.tar", "a/b/3.tar", "c.tar"} {
		fsys[name] = &fstest.MapFile{}
	}
	for pattern, want := range map[string]string{
		"a/*.tar":    "a/1.tar a/2.tar",
		"**/*.tar":   "a/1.tar a/2.tar a/b/3.tar c.tar",
		"{c,a/1}*":   "c.tar a/1.tar",
		"a/[2-9].*":  "a/2.tar",
		"{c,d}.tar":  "c.tar d.tar",
		"a/b/3.tar*": "a/b/3.tar",
	} {
		got, err := store.Expand(t.Context(), store.FS(fsys), pattern)
		if err != nil || fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("%s: %q, %v; want %s", pattern, got, err, want)
		}
	}
}

// bucket is a store whose names are addresses, and that tells what it was asked.
type bucket struct {
	store.Store
	names []string // sorted
	asked []string
}

func (b *bucket) List(_ context.Context, prefix string) iter.Seq2[store.Entry, error] {
	b.asked = append(b.asked, prefix)
	return func(yield func(store.Entry, error) bool) {
		for _, name := range b.names {
			if strings.HasPrefix(name, prefix) && !yield(store.Entry{Name: name}, nil) {
				return
			}
		}
	}
}

func (b *bucket) Stat(_ context.Context, name string) (store.Entry, error) {
	b.asked = append(b.asked, "Stat "+name)
	return store.Entry{}, format.Errorf(format.ErrNotFound, format.In(name), "not asked for")
}

// TestExpandAddresses expands names of an object store: no more is listed than
// what begins as the pattern does, and nothing else is asked, through decorators
// as well.
func TestExpandAddresses(t *testing.T) {
	b := &bucket{names: []string{
		"s3://bkt/a::b.tar", `s3://bkt/back\slash.tar`, "s3://bkt/odd//x.tar", "s3://bkt/odd/[1].tar", "s3://bkt/odd/{z}.tar", "s3://bkt/star*/1.tar", "s3://bkt/starry/1.tar",
		"s3://bkt/train/.hidden.tar", "s3://bkt/train/README", "s3://bkt/train/a b.tar", "s3://bkt/train/x/000000.tar", "s3://bkt/train/x/y/1.tar", "s3://bkt/train/ü.tar", "s3://bkt/trainer/0.tar",
	}}
	for i := range 1500 {
		b.names = append(b.names, fmt.Sprintf("s3://bkt/train/%06d.tar", i))
	}
	slices.Sort(b.names)
	for _, tt := range []struct {
		pattern, want string // names after s3://bkt/, by spaces; "N names"
		listed        string
	}{
		{"s3://bkt/train/0*.tar", "1500 names", "s3://bkt/train/0"},
		{"s3://bkt/train/*.tar", "1503 names", "s3://bkt/train/"},
		{"s3://bkt/train/00000[0-1].tar", "train/000000.tar train/000001.tar", "s3://bkt/train/00000"},
		{"s3://bkt/train/**/?.tar", "train/x/y/1.tar train/ü.tar", "s3://bkt/train/"},
		{"s3://bkt/tr*/0.tar", "trainer/0.tar", "s3://bkt/tr"},
		{`s3://bkt/star\*/*.tar`, "star*/1.tar", "s3://bkt/star*/"},
		{`s3://bkt/star\*/1.tar`, "star*/1.tar", ""},
		{`s3://bkt/back\\slash.t*`, `back\slash.tar`, `s3://bkt/back\slash.t`},
		{`s3://bkt/a\::b.tar`, "a::b.tar", ""},
		{`s3://bkt/a\::b.t*`, "a::b.tar", "s3://bkt/a::b.t"},
		{"s3://bkt/odd//*.tar", "odd//x.tar", "s3://bkt/odd//"},
		{`s3://bkt/odd/\[1\].*`, "odd/[1].tar", "s3://bkt/odd/[1]."},
		{"s3://bkt/odd/{z}.*", "odd/{z}.tar", "s3://bkt/odd/{z}."},
		{"s3://bkt/{trainer/0,star\\*/1}.tar", "trainer/0.tar star*/1.tar", ""},
		{"s3://bkt/train/{000003..000001}.tar::s3://bkt/trainer/*", "train/000003.tar train/000002.tar train/000001.tar trainer/0.tar", "s3://bkt/trainer/"},
		{"s3://bkt/not-there.tar", "not-there.tar", ""},
	} {
		for name, st := range map[string]store.Store{
			"itself": b, "Meter": store.Meter(b, func(int) {}), "Limit": store.Limit(b, store.LimitOptions{}), "Cache": newCache(t, b, store.CacheOptions{}), "faultstore": faultstore.New(b),
		} {
			b.asked = nil
			got, err := store.Expand(t.Context(), st, tt.pattern)
			var keys []string
			for _, n := range got {
				keys = append(keys, strings.TrimPrefix(n, "s3://bkt/"))
			}
			list := strings.Join(keys, " ")
			if len(got) > 100 {
				list = fmt.Sprintf("%d names", len(got))
			}
			if err != nil || list != tt.want || strings.Join(b.asked, " ") != tt.listed {
				t.Errorf("%s through %s: %s, %v; want %s\n asked %q, want %q", tt.pattern, name, list, err, tt.want, b.asked, tt.listed)
			}
		}
	}
	for pattern, want := range map[string]error{"s3://bkt/none*": format.ErrNotFound, "s3://bkt/a[b": format.ErrUsage, "s3://bkt/{a": format.ErrUsage} {
		if _, err := store.Expand(t.Context(), b, pattern); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", pattern, err, want)
		}
	}
}

// Folders are told from shards through decorators as well.
func TestExpandFoldersThroughDecorators(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, filepath.Join("folder", "a.tar"), nil)
	for _, st := range []store.Store{&store.Local{}, store.Meter(&store.Local{}, func(int) {}), newCache(t, store.Limit(&store.Local{}, store.LimitOptions{}), store.CacheOptions{})} {
		if _, err := store.Expand(t.Context(), st, "folder"); !errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), "folder/*.tar") {
			t.Errorf("%T: %v", st, err)
		}
		names, err := store.Expand(t.Context(), st, "folder/*")
		if err != nil || len(names) != 1 || filepath.ToSlash(names[0]) != "folder/a.tar" {
			t.Errorf("%T: %q, %v", st, names, err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, tt := range braceCases {
		f.Add(tt.pattern)
	}
	for _, s := range []string{"a*b?[c-d]", "x::y", `\{\`, "**/{a,b}", "{0..999999}{0..999999}", "http://[::1]/{1..2}", "{1..2"} {
		f.Add(s)
	}
	st := store.FS(fstest.MapFS{"a.tar": &fstest.MapFile{}, "ab/c": &fstest.MapFile{}})
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 1000 {
			return
		}
		names, err := store.Expand(t.Context(), st, pattern)
		if err != nil {
			if format.Sentinel(err) == nil || names != nil {
				t.Errorf("%q: %q, %v", pattern, names, err)
			}
			return
		}
		if len(names) == 0 || slices.Contains(names, "") {
			t.Errorf("%q: %q", pattern, names)
		}
	})
}

// refusing lists nothing, and names what it was asked to list, as stores do.
type refusing struct {
	store.Store
	other string // named instead
}

func (r refusing) List(_ context.Context, prefix string) iter.Seq2[store.Entry, error] {
	if r.other != "" {
		prefix = r.other
	}
	return func(yield func(store.Entry, error) bool) {
		yield(store.Entry{}, format.Errorf(format.ErrDenied, format.In(prefix), "the server says so"))
	}
}

// An error names the glob as it was written, and not up to its first star; what
// else it names stays.
func TestErrorsNameTheWholeGlob(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"s3://bucket/train/photos-*.tar", "s3://bucket/train/photos-*.tar: denied: the server says so"},
		{"s3://bucket/{train,val}/?.tar", "s3://bucket/train/?.tar: denied: the server says so"},
		{`s3://bucket/a\*b-*.tar`, `s3://bucket/a\*b-*.tar: denied: the server says so`},
		{"s3://KEY:SECRET@bucket/**", "s3://bucket/**: denied: the server says so"},
	} {
		_, err := store.Expand(t.Context(), refusing{}, tt.pattern)
		if err == nil || err.Error() != tt.want || !errors.Is(err, format.ErrDenied) {
			t.Errorf("%s: %v, want %s", tt.pattern, err, tt.want)
		}
	}
	if _, err := store.Expand(t.Context(), refusing{other: "s3://bucket/train/x"}, "s3://bucket/train/*"); err == nil || !strings.HasPrefix(err.Error(), "s3://bucket/train/x: ") {
		t.Errorf("%v", err)
	}
}
