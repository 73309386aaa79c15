package compress_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"shardtool/format"
	"shardtool/format/compress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cases = "../../fixtures/cases"

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cases, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unbase64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// text is compressible and long enough for several blocks of every kind.
func text(n int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("shard sample record key epoch rank batch shuffle buffer echo factor \n")
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.Bytes()[:n]
}

// gz and zz compress with the standard library, so that the reader is not
// held against our own writer.
func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "name", "comment", bytes.Repeat([]byte("x"), 1000)
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func compressed(t testing.TB, k compress.Kind, data []byte) []byte {
	t.Helper()
	switch k {
	case compress.Gzip:
		return gz(t, data)
	case compress.Zlib:
		return zz(t, data)
	}
	var b bytes.Buffer
	w, err := compress.NewWriter(&b, k, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var allKinds = []compress.Kind{compress.None, compress.Gzip, compress.Zlib, compress.Zstd}

// read reads in as k and returns what came, whether something trailed, and the
// error other than io.EOF.
func read(t testing.TB, in io.Reader, k compress.Kind, o *compress.Options) (data []byte, trailing bool, err error) {
	t.Helper()
	z, err := compress.NewReader(in, k, o)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err = io.ReadAll(z)
	if z.Offset() != int64(len(data)) {
		t.Errorf("%s: offset is %d after %d bytes", k, z.Offset(), len(data))
	}
	return data, z.Trailing(), err
}

func TestNames(t *testing.T) {
	for _, k := range allKinds {
		if got, ok := compress.ParseKind(k.String()); got != k || !ok {
			t.Errorf("ParseKind(%s) = %v, %v", k, got, ok)
		}
	}
	if _, ok := compress.ParseKind("bzip2"); ok {
		t.Error("ParseKind knows bzip2")
	}
	if _, err := compress.NewReader(nil, 77, nil); !errors.Is(err, format.ErrUsage) {
		t.Errorf("NewReader of kind 77: %v", err)
	}
	if _, err := compress.NewWriter(nil, 77, 0); !errors.Is(err, format.ErrUsage) {
		t.Errorf("NewWriter of kind 77: %v", err)
	}
}

func TestSniff(t *testing.T) {
	random := make([]byte, 600)
	rand.NewChaCha8([32]byte{}).Read(random)
	// The two bytes of a zlib header that fit, before data that does not.
	fits := append([]byte{0x78, 0x9c}, "... and then text"...)
	for name, tt := range map[string]struct {
		in   []byte
		want compress.Kind
	}{
		"gzip":               {gz(t, text(3000)), compress.Gzip},
		"gzip of nothing":    {gz(t, nil), compress.Gzip},
		"gzip, three bytes":  {[]byte("\x1f\x8b\x08"), compress.Gzip},
		"not quite gzip":     {[]byte("\x1f\x8b\x00\x00\x00\x00\x00\x00"), compress.None},
		"gzip, strange flag": {[]byte("\x1f\x8b\x08\xe0\x00\x00\x00\x00"), compress.None},
		"zlib":               {zz(t, text(3000)), compress.Zlib},
		"zlib of noise":      {zz(t, random), compress.Zlib},
		"zlib of nothing":    {zz(t, nil), compress.Zlib},
		"zlib, two bytes":    {[]byte{0x78, 0x9c}, compress.None},
		"a zlib header":      {fits, compress.None},
		"Xf":                 {[]byte("Xf is a word that looks like a zlib header"), compress.None},
		"zstd":               {compressed(t, compress.Zstd, text(3000)), compress.Zstd},
		"skippable frame":    {[]byte("\x5a\x2a\x4d\x18\x01\x00\x00\x00x"), compress.Zstd},
		"text":               {text(600), compress.None},
		"nothing":            {nil, compress.None},
		"tar.gz":             {file(t, "container/b13_nul_tail.tar.gz"), compress.Gzip},
		"tfrecord, zlib":     {file(t, "tfrecord/good_zlib.tfrecord"), compress.Zlib},
		"tfrecord":           {file(t, "tfrecord/good.tfrecord"), compress.None},
	} {
		for _, n := range []int{len(tt.in), min(len(tt.in), compress.PeekSize)} {
			if got := compress.Sniff(tt.in[:n]); got != tt.want {
				t.Errorf("%s: %d bytes are %s, want %s", name, n, got, tt.want)
			}
		}
	}
}

// What other tools have written of "hello, shard\n": Python's gzip and zlib, and
// zstd, with two frames and a skippable one in between.
var vectors = []struct {
	kind compress.Kind
	in   string
	want string
}{
	{compress.Gzip, "H4sIAAAAAAACA8tIzcnJ11EozkgsSuECAF6cgYkNAAAA", "hello, shard\n"},
	{compress.Zlib, "eNrLSM3JyddRKM5ILErhAgAhegR9", "hello, shard\n"},
	{compress.Zstd, "KLUv/QRYaQAAaGVsbG8sIHNoYXJkClHCMWFQKk0YAwAAAGFiYyi1L/0EWGkAAGhlbGxvLCBzaGFyZApRwjFh", "hello, shard\nhello, shard\n"},
}

func TestRoundTrip(t *testing.T) {
	for _, k := range allKinds {
		for _, n := range []int{0, 1, 1000, 300_000} {
			data := text(n)
			for name, wrap := range map[string]func(io.Reader) io.Reader{
				"plain": func(r io.Reader) io.Reader { return r }, "one byte": iotest.OneByteReader,
				"half": iotest.HalfReader, "data and err": iotest.DataErrReader,
			} {
				got, trailing, err := read(t, wrap(bytes.NewReader(compressed(t, k, data))), k, nil)
				if !bytes.Equal(got, data) || trailing || err != nil {
					t.Errorf("%s of %d bytes, %s: read %d, trailing %v, error %v", k, n, name, len(got), trailing, err)
				}
			}
		}
	}
}

// TestPieces joins members and frames, and puts padding or garbage behind
// them.
func TestPieces(t *testing.T) {
	a, b := text(70_000), text(200)
	both := append(bytes.Clone(a), b...)
	nul := make([]byte, 512)
	skippable := []byte("\x50\x2a\x4d\x18\x05\x00\x00\x00hello")
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	za, zb := compressed(t, compress.Zstd, a), compressed(t, compress.Zstd, b)
	for name, tt := range map[string]struct {
		k        compress.Kind
		in       []byte
		want     []byte
		trailing bool
		err      error
	}{
		"two members":               {compress.Gzip, join(gz(t, a), gz(t, b)), both, false, nil},
		"members around an empty":   {compress.Gzip, join(gz(t, a), gz(t, nil), gz(t, b)), both, false, nil},
		"gzip, padding":             {compress.Gzip, join(gz(t, a), nul), a, false, nil},
		"gzip, garbage":             {compress.Gzip, join(gz(t, a), []byte("garbage")), a, true, nil},
		"gzip, padding and garbage": {compress.Gzip, join(gz(t, a), nul, []byte("x")), a, true, nil},
		"gzip, cut in a header":     {compress.Gzip, join(gz(t, a), gz(t, b)[:5]), a, false, format.ErrTruncated},
		"gzip, cut in a magic":      {compress.Gzip, join(gz(t, a), []byte{0x1f}), a, false, format.ErrTruncated},
		"gzip, another method":      {compress.Gzip, []byte("\x1f\x8b\x07\x00\x00\x00\x00\x00\x00\x03"), nil, false, format.ErrUnsupported},
		"gzip, reserved flag":       {compress.Gzip, []byte("\x1f\x8b\x08\x40\x00\x00\x00\x00\x00\x03"), nil, false, format.ErrUnsupported},
		"gzip, nothing":             {compress.Gzip, nil, nil, false, format.ErrTruncated},
		"not gzip":                  {compress.Gzip, text(100), nil, false, format.ErrWrongFormat},
		"zlib, padding":             {compress.Zlib, join(zz(t, a), nul), a, false, nil},
		"zlib, garbage":             {compress.Zlib, join(zz(t, a), zz(t, b)), a, true, nil},
		"zlib, nothing":             {compress.Zlib, nil, nil, false, format.ErrTruncated},
		"zlib, preset dictionary":   {compress.Zlib, []byte{0x78, 0xbb, 0, 0, 0, 1, 0}, nil, false, format.ErrUnsupported},
		"not zlib":                  {compress.Zlib, text(100), nil, false, format.ErrWrongFormat},
		"two frames":                {compress.Zstd, join(za, zb), both, false, nil},
		"frames and skippable":      {compress.Zstd, join(skippable, za, skippable, zb, skippable), both, false, nil},
		"only a skippable":          {compress.Zstd, skippable, nil, false, nil},
		"zstd, padding":             {compress.Zstd, join(za, nul), a, false, nil},
		"zstd, garbage":             {compress.Zstd, join(za, []byte("garbage")), a, true, nil},
		"zstd, cut in a magic":      {compress.Zstd, join(za, zb[:3]), a, false, format.ErrTruncated},
		"zstd, cut in a skippable":  {compress.Zstd, join(za, skippable[:10]), a, false, format.ErrTruncated},
		"zstd, nothing":             {compress.Zstd, nil, nil, false, format.ErrTruncated},
		"zstd, a dictionary":        {compress.Zstd, []byte("\x28\xb5\x2f\xfd\x01\x58\x07\x01\x00\x00"), nil, false, format.ErrUnsupported},
		"not zstd":                  {compress.Zstd, text(100), nil, false, format.ErrWrongFormat},
	} {
		for _, wrap := range []func(io.Reader) io.Reader{iotest.DataErrReader, iotest.OneByteReader} {
			got, trailing, err := read(t, wrap(bytes.NewReader(tt.in)), tt.k, nil)
			if !bytes.Equal(got, tt.want) || trailing != tt.trailing || !errors.Is(err, tt.err) {
				t.Errorf("%s: read %d of %d bytes, trailing %v, error %v", name, len(got), len(tt.want), trailing, err)
			}
		}
	}
	for _, v := range vectors {
		got, trailing, err := read(t, bytes.NewReader(unbase64(v.in)), v.kind, nil)
		if string(got) != v.want || trailing || err != nil {
			t.Errorf("%s vector: %q, %v, %v", v.kind, got, trailing, err)
		}
	}
}

// TestEveryPrefix cuts streams everywhere: the data is a prefix of the whole,
// and only the whole, or a cut between two members, ends well.
func TestEveryPrefix(t *testing.T) {
	a, b := text(3000), text(50)
	both := append(bytes.Clone(a), b...)
	for _, k := range []compress.Kind{compress.Gzip, compress.Zlib, compress.Zstd} {
		in, want, border := compressed(t, k, a), a, -1
		if k != compress.Zlib {
			border = len(in)
			in, want = append(in, compressed(t, k, b)...), both
		}
		last := 0
		for n := range len(in) {
			got, trailing, err := read(t, bytes.NewReader(in[:n]), k, &compress.Options{Shard: "s"})
			if n == border {
				if len(got) != len(a) || err != nil {
					t.Errorf("%s cut between members: %d bytes, %v", k, len(got), err)
				}
				continue
			}
			var e *format.Error
			if !errors.As(err, &e) || e.Err != format.ErrTruncated || e.Offset != int64(len(got)) || e.Shard != "s" || trailing {
				t.Fatalf("%s cut at %d: %d bytes, trailing %v, error %v", k, n, len(got), trailing, err)
			}
			if !bytes.Equal(got, want[:len(got)]) || len(got) < last {
				t.Fatalf("%s cut at %d: the %d bytes are wrong", k, n, len(got))
			}
			last = len(got)
		}
		if last < len(want)/2 {
			t.Errorf("%s: of a stream short of one byte only %d bytes of %d are delivered", k, last, len(want))
		}
	}
}

// TestTruncationDelivers holds a cut stream against the case whose end is
// known.
func TestTruncationDelivers(t *testing.T) {
	for name, want := range map[string]int{"tfrecord/c1_cut.tfrecord.gz": 68, "tfrecord/c1_cut_at_boundary.tfrecord.gz": 48} {
		got, _, err := read(t, bytes.NewReader(file(t, name)), compress.Gzip, nil)
		if len(got) != want || !errors.Is(err, format.ErrTruncated) {
			t.Errorf("%s: %d bytes, %v, want %d and truncated", name, len(got), err, want)
		}
	}
}

func TestCorruption(t *testing.T) {
	data := text(5000)
	last := func(b []byte, i int) []byte { b = bytes.Clone(b); b[len(b)-i] ^= 1; return b }
	for name, tt := range map[string]struct {
		k    compress.Kind
		in   []byte
		want int
	}{
		"gzip, checksum":         {compress.Gzip, last(gz(t, data), 8), 5000},
		"gzip, size":             {compress.Gzip, last(gz(t, data), 4), 5000},
		"zlib, checksum":         {compress.Zlib, last(zz(t, data), 1), 5000},
		"zstd, checksum":         {compress.Zstd, last(compressed(t, compress.Zstd, data), 1), 5000},
		"gzip, header checksum":  {compress.Gzip, append([]byte("\x1f\x8b\x08\x02\x00\x00\x00\x00\x00\x03\x00\x00"), gz(t, data)[10:]...), 0},
		"gzip, reserved block":   {compress.Gzip, []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x07\x00\x00\x00"), 0},
		"case, trailer checksum": {compress.Gzip, file(t, "container/b13_trailer_crc.tar.gz"), 10240},
		"case, trailer size":     {compress.Gzip, file(t, "container/b13_trailer_size.tar.gz"), 10240},
	} {
		got, _, err := read(t, iotest.HalfReader(bytes.NewReader(tt.in)), tt.k, nil)
		var e *format.Error
		if len(got) < min(tt.want, 5000) || !errors.As(err, &e) || e.Err != format.ErrCorrupt || e.Offset != int64(len(got)) {
			t.Errorf("%s: %d bytes, error %v, want %d and corrupt", name, len(got), err, tt.want)
		}
	}
	if _, trailing, err := read(t, bytes.NewReader(file(t, "container/b13_garbage_tail.tar.gz")), compress.Gzip, nil); !trailing || err != nil {
		t.Errorf("garbage tail: %v, %v", trailing, err)
	}
	if _, trailing, err := read(t, bytes.NewReader(file(t, "container/b13_nul_tail.tar.gz")), compress.Gzip, nil); trailing || err != nil {
		t.Errorf("NUL tail: %v, %v", trailing, err)
	}
}

func TestReadErrors(t *testing.T) {
	data := text(300_000)
	broken := errors.New("bad sector")
	for _, k := range allKinds {
		in := compressed(t, k, data)
		for _, tt := range []struct{ err, want error }{
			{broken, format.ErrIO}, {context.Canceled, context.Canceled}, {io.ErrUnexpectedEOF, format.ErrIO}, {os.ErrPermission, format.ErrDenied},
		} {
			for _, n := range []int{0, 1, 3, 20, len(in) / 2, len(in) - 1, len(in)} {
				got, _, err := read(t, io.MultiReader(bytes.NewReader(in[:n]), iotest.ErrReader(tt.err)), k, nil)
				if !errors.Is(err, tt.want) || !bytes.Equal(got, data[:len(got)]) {
					t.Errorf("%s failing after %d bytes: %d bytes, error %v, want %v", k, n, len(got), err, tt.want)
				}
			}
		}
	}
	z, err := compress.NewReader(stuck{}, compress.Gzip, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Read(make([]byte, 1)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
	z.Close()
	if _, err := z.Read(make([]byte, 1)); err == nil {
		t.Error("reading after Close gives no error")
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestLimits reads bombs: what comes out, and windows, are bounded.
func TestLimits(t *testing.T) {
	zeros := make([]byte, 1<<20)
	for _, k := range []compress.Kind{compress.Gzip, compress.Zlib, compress.Zstd} {
		in := compressed(t, k, zeros)
		for _, limit := range []int64{1, 1000, 1<<20 - 1} {
			got, _, err := read(t, bytes.NewReader(in), k, &compress.Options{Limits: &format.Limits{Decompressed: limit}})
			var e *format.Error
			if int64(len(got)) != limit || !errors.As(err, &e) || e.Err != format.ErrLimit || e.Offset != limit {
				t.Errorf("%s with a limit of %d: %d bytes, %v", k, limit, len(got), err)
			}
		}
		got, _, err := read(t, bytes.NewReader(in), k, &compress.Options{Limits: &format.Limits{Decompressed: 1 << 20}})
		if len(got) != 1<<20 || err != nil {
			t.Errorf("%s at its limit: %d bytes, %v", k, len(got), err)
		}
	}
	// A frame whose window descriptor says 2 GiB, and one whose only segment
	// says 1 TiB.
	wide := []byte("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00")
	single := binary.LittleEndian.AppendUint64([]byte("\x28\xb5\x2f\xfd\xe0"), 1<<40)
	for _, in := range [][]byte{wide, append(single, 1, 0, 0)} {
		if _, _, err := read(t, bytes.NewReader(in), compress.Zstd, nil); !errors.Is(err, format.ErrLimit) {
			t.Errorf("a huge window: %v", err)
		}
	}
	// A window of 16 MiB, under the default and over another bound.
	fair := []byte("\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00")
	if got, _, err := read(t, bytes.NewReader(fair), compress.Zstd, nil); len(got) != 0 || err != nil {
		t.Errorf("a window of 16 MiB: %v", err)
	}
	if _, _, err := read(t, bytes.NewReader(fair), compress.Zstd, &compress.Options{Limits: &format.Limits{Window: 8 << 20}}); !errors.Is(err, format.ErrLimit) {
		t.Errorf("a window of 16 MiB where 8 are allowed: %v", err)
	}
}

// TestReset opens streams again and again, which allocates nothing that grows.
func TestReset(t *testing.T) {
	data := text(10_000)
	out := make([]byte, 4096)
	for _, k := range []compress.Kind{compress.Gzip, compress.Zlib, compress.Zstd} {
		in := compressed(t, k, data)
		src := bytes.NewReader(in)
		z := new(compress.Reader)
		n := testing.AllocsPerRun(50, func() {
			src.Reset(in)
			if err := z.Reset(src, k, nil); err != nil {
				t.Fatal(err)
			}
			for {
				if _, err := z.Read(out); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			z.Close()
		})
		if n > 2 && !raceDetector { // which makes sync.Pool forget at random
			t.Errorf("%s: a stream allocates %v times", k, n)
		}
	}
}

func TestWriter(t *testing.T) {
	data := text(100_000)
	for _, k := range allKinds {
		sizes := make(map[int]int)
		for _, level := range []int{0, 1, 6, 9, 10, 22, 23} {
			var twice [2]bytes.Buffer
			var err error
			for i := range twice {
				var w io.WriteCloser
				if w, err = compress.NewWriter(&twice[i], k, level); err != nil {
					break
				}
				if _, err := w.Write(data); err != nil || w.Close() != nil {
					t.Fatal(err)
				}
			}
			if allowed := level <= 9 || k == compress.Zstd && level <= 22; !allowed {
				if !errors.Is(err, format.ErrUsage) {
					t.Errorf("%s at level %d: %v", k, level, err)
				}
				continue
			}
			if err != nil || !bytes.Equal(twice[0].Bytes(), twice[1].Bytes()) {
				t.Fatalf("%s at level %d: %v, or two writings differ", k, level, err)
			}
			sizes[level] = twice[0].Len()
			if k != compress.None && compress.Sniff(twice[0].Bytes()) != k {
				t.Errorf("%s at level %d is not told as such", k, level)
			}
			if got, _, err := read(t, &twice[0], k, nil); !bytes.Equal(got, data) || err != nil {
				t.Errorf("%s at level %d: %v", k, level, err)
			}
		}
		if k != compress.None && sizes[9] >= sizes[1] {
			t.Errorf("%s: level 9 gives %d bytes, level 1 %d", k, sizes[9], sizes[1])
		}
	}
	// The standard library reads what is written.
	var b bytes.Buffer
	w, _ := compress.NewWriter(&b, compress.Gzip, 6)
	w.Write(data)
	w.Close()
	r, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); !bytes.Equal(got, data) || err != nil || r.Name != "" || !r.ModTime.IsZero() {
		t.Errorf("compress/gzip reads %d bytes, %v, name %q, time %v", len(got), err, r.Name, r.ModTime)
	}
	b.Reset()
	w, _ = compress.NewWriter(&b, compress.Zlib, 6)
	w.Write(data)
	w.Close()
	if got := binary.BigEndian.Uint32(b.Bytes()[b.Len()-4:]); got != adler32.Checksum(data) {
		t.Errorf("the zlib trailer is %08x", got)
	}
}
