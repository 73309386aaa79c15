package tarshard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"shardtool/format"
	"shardtool/format/tarshard"
)

// plain hides all but Read.
type plain struct{ io.Reader }

func newBytes(b []byte) *bytes.Reader { return bytes.NewReader(b) }

// readers are streams of the same bytes that come in different ways.
func readers(data []byte) map[string]io.Reader {
	return map[string]io.Reader{
		"seeker":   bytes.NewReader(data),
		"stream":   plain{bytes.NewReader(data)},
		"byte":     iotest.OneByteReader(bytes.NewReader(data)),
		"half":     iotest.HalfReader(bytes.NewReader(data)),
		"data+err": iotest.DataErrReader(plain{bytes.NewReader(data)}),
	}
}

// TestReadErrors: an error of the stream is passed on at whatever byte it
// comes, and is not taken for an end or for damage, whatever the policy.
func TestReadErrors(t *testing.T) {
	data := fixtureBytes(t, "gnutar-posix.tar")
	broken := errors.New("broken disk")
	for _, policy := range []format.OnError{format.Stop, format.Skip, format.Resync} {
		for n := 0; n <= len(data); n += 128 {
			for err, want := range map[error]error{broken: format.ErrIO, context.Canceled: context.Canceled} {
				r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(err))
				res := readAll(r, tarshard.Options{OnError: policy})
				if !errors.Is(res.err, want) || !errors.Is(res.err, err) || len(res.losses) > 0 {
					t.Fatalf("%v after %d bytes: %v, losses %v, want %v", policy, n, res.err, res.losses, want)
				}
			}
		}
	}
	res := readAll(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(data))), tarshard.Options{})
	if !errors.Is(res.err, iotest.ErrTimeout) {
		t.Errorf("timeout: %v", res.err)
	}
	res = readAll(lazy{}, tarshard.Options{})
	if !errors.Is(res.err, io.ErrNoProgress) {
		t.Errorf("a reader that never gives anything: %v", res.err)
	}
}

type lazy struct{}

func (lazy) Read([]byte) (int, error) { return 0, nil }

// TestEveryPrefix: a shard that is cut anywhere is never read to a clean end,
// and what is delivered before is what the whole shard begins with.
func TestEveryPrefix(t *testing.T) {
	for _, name := range []string{"gnutar-posix.tar", "gnutar-gnu.tar", "python-pax.tar"} {
		data := fixtureBytes(t, name)
		all := readAll(bytes.NewReader(data), tarshard.Options{}).samples
		last := len(bytes.TrimRight(data, "\x00")) // the end marker begins at the block after
		last += -last & 511
		for n := 0; n < last+1024; n += 31 {
			for _, policy := range []format.OnError{format.Stop, format.Skip} {
				res := readAll(plain{bytes.NewReader(data[:n])}, tarshard.Options{OnError: policy})
				if res.err == nil && res.warnings["no-end-marker"] != 1 {
					t.Fatalf("%s cut at %d: no error, warnings %v", name, n, res.warnings)
				}
				if class := format.Class(res.err); res.err != nil && class != "truncated" && (n >= 512 || class != "wrong-format") {
					t.Fatalf("%s cut at %d: %v", name, n, res.err)
				}
				if len(res.samples) > len(all) {
					t.Fatalf("%s cut at %d: %d samples", name, n, len(res.samples))
				}
				for i, s := range res.samples {
					if i < len(res.samples)-1 && describeLong(all[i:i+1]) != describeLong([]*format.Sample{s}) {
						t.Fatalf("%s cut at %d: sample %d differs", name, n, i)
					}
				}
			}
		}
	}
}

// TestDecompressorFaults: what a decompressor says is placed where it cuts the
// archive.
func TestDecompressorFaults(t *testing.T) {
	data := fixtureBytes(t, "gnutar-ustar.tar")
	for _, sentinel := range []error{format.ErrTruncated, format.ErrCorrupt} {
		cut := format.Errorf(sentinel, format.Location{Offset: 4242, Record: format.Unknown}, "deflate")
		// 001.jpg has its header at 4608 and 512 bytes of payload at 5120.
		for n, wantOffset := range map[int]int64{5300: 4608, 4700: 4608} {
			res := readAll(io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(cut)), tarshard.Options{})
			var e *format.Error
			if !errors.As(res.err, &e) || e.Err != sentinel || e.Offset != wantOffset || !errors.Is(res.err, cut) {
				t.Errorf("cut at %d: %v", n, res.err)
			}
		}
		res := readAll(io.MultiReader(bytes.NewReader(data), iotest.ErrReader(cut)), tarshard.Options{})
		if !errors.Is(res.err, sentinel) || len(res.samples) != 5 {
			t.Errorf("behind the end: %d samples, %v", len(res.samples), res.err)
		}
	}
}

func fixtureBytes(t testing.TB, name string) []byte {
	t.Helper()
	for _, f := range loadFixtures(t) {
		if f.File == name {
			return f.bytes(t)
		}
	}
	t.Fatalf("no fixture %s", name)
	return nil
}
