package tarshard_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"shardtool/format"
	"shardtool/format/tarshard"
)

// composed is a file of small pieces and runs of zeros.
type composed struct {
	pieces []piece
	size   int64
	pos    int64
	read   int64 // bytes
}

type piece struct {
	at, size int64
	data     []byte // nil: zeros
}

func compose(t testing.TB, c testCase) *composed {
	f := new(composed)
	for _, p := range c.Compose {
		x := piece{at: f.size, size: p.Zeros}
		if p.File != "" {
			data, err := os.ReadFile(filepath.Join(casesDir, p.File))
			if err != nil {
				t.Fatal(err)
			}
			x.data, x.size = data, int64(len(data))
		}
		f.pieces = append(f.pieces, x)
		f.size += x.size
	}
	return f
}

func (f *composed) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for _, x := range f.pieces {
		for n < len(p) && x.at <= off && off < x.at+x.size {
			rest := p[n:min(int64(len(p)), int64(n)+x.at+x.size-off)]
			if x.data == nil {
				clear(rest)
			} else {
				copy(rest, x.data[off-x.at:])
			}
			n += len(rest)
			off += int64(len(rest))
		}
	}
	f.read += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *composed) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.pos)
	f.pos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *composed) Seek(off int64, whence int) (int64, error) {
	f.pos = off + []int64{0, f.pos, f.size}[whence]
	return f.pos, nil
}

// TestHuge walks members of 9 GiB: their payloads are neither kept nor, where
// the file can seek, read.
func TestHuge(t *testing.T) {
	found := 0
	for _, c := range loadCases(t) {
		if c.Compose == nil {
			continue
		}
		found++
		t.Run(c.Name, func(t *testing.T) {
			var want []string
			for _, m := range c.Expect.Index {
				want = append(want, fmt.Sprint(m.Name, " ", m.Offset, " ", m.Size))
			}
			before := allocated()
			f := compose(t, c)
			scans := map[string]*tarshard.Scanner{
				"at": tarshard.NewScannerAt(f, f.size, nil), "seek": tarshard.NewScanner(compose(t, c), nil),
			}
			if !testing.Short() {
				scans["stream"] = tarshard.NewScanner(plain{compose(t, c)}, nil)
			}
			for name, s := range scans {
				if have, err := listed(s); err != nil || !slices.Equal(have, want) {
					t.Errorf("%s: %v %v, want %v", name, have, err, want)
				}
			}
			if f.read > 64<<10 {
				t.Errorf("%d bytes were read to scan 4 members", f.read)
			}
			for _, m := range c.Expect.Index {
				if err := tarshard.CheckAt(f, m.Offset, m.Size, m.Name); err != nil {
					t.Error(err)
				}
			}
			// A Reader has no room for it, and says so before it makes any.
			o := tarshard.Options{Shard: "s.tar"}
			res := readAll(compose(t, c), o)
			checkSamples(t, outcome{Samples: c.Expect.Alternatives[0].Samples}, res)
			checkError(t, c.Expect.Alternatives[0].Error, res.err)
			// Skip leaves it out, a selection does not need it.
			for _, o := range []tarshard.Options{
				{OnError: format.Skip}, {Fields: []string{"jpg", "json"}, OnMissing: format.MissingSkip},
			} {
				res := readAll(compose(t, c), o)
				checkSamples(t, outcome{Samples: c.Expect.Samples[1:]}, res)
				if res.err != nil {
					t.Error(res.err)
				}
			}
			if n := allocated() - before; n > 64<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
	if found != 2 {
		t.Errorf("%d cases of 9 GiB", found)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestClaims: memory grows with what arrives, not with what is claimed.
func TestClaims(t *testing.T) {
	const claim = 1<<30 - 1
	for name, data := range map[string][]byte{
		"member":    append(header("a.jpg", '0', claim), make([]byte, 1000)...),
		"pax":       append(header("././@PaxHeader", 'x', 1<<20), make([]byte, 1000)...),
		"long name": append(header("././@LongLink", 'L', 1<<20), "name"...),
		"second":    slices.Concat(header("a.jpg", '0', 0), header("a.png", '0', claim), make([]byte, 70_000)),
	} {
		before := allocated()
		res := readAll(plain{newBytes(data)}, tarshard.Options{})
		if !errors.Is(res.err, format.ErrTruncated) || len(res.samples) != 0 {
			t.Errorf("%s: %v", name, res.err)
		}
		if n := allocated() - before; n > 1<<20 {
			t.Errorf("%s: %d bytes were allocated for %d", name, n, len(data))
		}
	}
}

// TestLimits: what is over a limit is ErrLimit, located, and under Skip left
// out alone.
func TestLimits(t *testing.T) {
	member := func(name string, n int) []byte {
		return slices.Concat(header(name, '0', int64(n)), make([]byte, (n+511)/512*512))
	}
	shard := slices.Concat(member("1.a", 10), member("2.a", 600), member("2.b", 600), member("2.c", 1), member("3.a", 10), make([]byte, 1024))
	for _, tt := range []struct {
		limits format.Limits
		offset int64
		field  string
	}{
		{format.Limits{Record: 599}, 1024, "a"},
		{format.Limits{Sample: 1200}, 2560, "b"},
		{format.Limits{Fields: 2}, 1024, ""},
	} {
		res := readAll(newBytes(shard), tarshard.Options{Limits: &tt.limits})
		var e *format.Error
		if !errors.As(res.err, &e) || e.Err != format.ErrLimit || e.Key != "2" || e.Offset != tt.offset || e.Field != tt.field || e.Record != 1 {
			t.Errorf("%+v: %v", tt.limits, res.err)
		}
		res = readAll(newBytes(shard), tarshard.Options{Limits: &tt.limits, OnError: format.Skip})
		if res.err != nil || len(res.samples) != 2 || res.samples[1].Index != 2 || res.skipped["limit"] != 1 ||
			len(res.losses) != 1 || res.losses[0].Offset != 1024 || res.losses[0].Bytes != 4096 || res.losses[0].Records != 1 {
			t.Errorf("%+v: %d samples, %v, %+v, %v", tt.limits, len(res.samples), res.skipped, res.losses, res.err)
		}
	}
	long := slices.Concat(header("././@PaxHeader", 'x', 2000), make([]byte, 2048), member("1.a", 1))
	res := readAll(newBytes(long), tarshard.Options{Limits: &format.Limits{Header: 1999}})
	if !errors.Is(res.err, format.ErrLimit) {
		t.Errorf("a long extension header: %v", res.err)
	}
	for _, size := range []string{"\x80\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00", "\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		for _, r := range []func([]byte) error{
			func(b []byte) error { return readAll(plain{newBytes(b)}, tarshard.Options{}).err },
			func(b []byte) error {
				_, err := listed(tarshard.NewScannerAt(newBytes(b), int64(len(b)), nil))
				return err
			},
		} {
			if err := r(rawHeader("a.jpg", '0', size)); !errors.Is(err, format.ErrLimit) {
				t.Errorf("size %q: %v", size, err)
			}
		}
	}
}
