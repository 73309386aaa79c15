// Package storetest is the conformance suite that every store and every
// decorator of one runs:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Fixture {
//			srv := newServer(t) // ends with t.Cleanup
//			return storetest.Fixture{Store: srv.Store(), Prefix: "s3://bucket/"}
//		})
//	}
//
// Each test of the suite asks for a Fixture of its own, which holds no objects
// yet, and must leave no goroutine behind once the cleanups have run.
package storetest

import (
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"shardtool/reader/store"
)

// Ability is something that most stores can do.
type Ability uint

const (
	Create   Ability = 1 << iota // Store.Create
	List                         // Store.List
	Offsets                      // Object.ReadAt, and Stream at an offset other than 0
	Sizes                        // Entry.Size is known when an object is opened
	Versions                     // Entry.Version is given, and an object that replaces another has another one
)

// Fixture is a store under test.
type Fixture struct {
	Store  store.Store
	Prefix string // of the names of all objects of this fixture; ends with a slash
	// Name makes the name of an object from a key such as "a/b c.tar"; nil:
	// Prefix + key. A store whose names are addresses escapes here.
	Name func(key string) string
	// Put places an object behind the store's back, or replaces one as its
	// users do; nil: Store.Create and Commit. Without Create it is needed.
	Put func(t testing.TB, key string, data []byte)
	// Without is what this store cannot do: the tests of it are left out, and
	// what it does instead must be ErrUnsupported.
	Without Ability
	// Large is the size in bytes of the largest object, which should be larger
	// than any buffer, block or range of the store, and at least 1000; 0: 20 MiB
	// and some.
	Large int64
	// Odd are the keys that the test of odd names uses; nil: OddKeys().
	Odd []string
}

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for _, tt := range suite {
		t.Run(tt.name, func(t *testing.T) {
			current := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, current) }) // after all that open registers
			f := open(t)
			if missing := tt.needs & f.Without; missing != 0 {
				t.Skip("the store cannot do that")
			}
			tt.run(t, &f)
		})
	}
}

var suite = []struct {
	name  string
	needs Ability
	run   func(t *testing.T, f *Fixture)
}{
	{"ReadAt", Offsets, testReadAt},
	{"ReadAtTogether", Offsets, testReadAtTogether},
	{"NoOffsets", 0, testNoOffsets},
	{"Stream", 0, testStream},
	{"StreamAtOffsets", Offsets, testStreamAtOffsets},
	{"StreamsTogether", Offsets, testStreamsTogether},
	{"StreamClosedEarly", 0, testStreamClosedEarly},
	{"Large", 0, testLarge},
	{"LargeInPieces", Offsets, testLargeInPieces},
	{"Stat", 0, testStat},
	{"List", List, testList},
	{"ListStops", List, testListStops},
	{"Missing", 0, testMissing},
	{"Cancelled", 0, testCancelled},
	{"CancelledStream", 0, testCancelledStream},
	{"CancelledReads", Offsets, testCancelledReads},
	{"Create", Create, testCreate},
	{"CreateLarge", Create, testCreateLarge},
	{"CreateCancelled", Create, testCreateCancelled},
	{"CreateTogether", Create, testCreateTogether},
	{"OddNames", 0, testOddNames},
	{"OpenEntry", 0, testOpenEntry},
	{"Replaced", Versions, testReplaced},
	{"ReplacedWhileOpen", Versions | Offsets, testReplacedWhileOpen},
}

// OddKeys are keys that need care somewhere: in addresses, in XML, in patterns,
// in shells. Those that this system cannot have as files are left out.
func OddKeys() []string {
	keys := []string{
		"sp ace.tar", "per%cent.tar", "per%20cent.tar", "plus+plus.tar", "hash#frag.tar", "amp&amp;.tar", "semi;colon.tar", "a=b,c.tar",
		"quote'.tar", "br[ack]et.tar", "{0..9}.tar", "tilde~.tar", "$HOME.tar", "at@.tar", "grüße-名.tar", "e\u0301-decomposed.tar", "-dash.tar", "sub dir/d+e/f.tar",
	}
	if runtime.GOOS != "windows" {
		keys = append(keys, `back\slash.tar`, `dou"ble.tar`, "star*.tar", "what?.tar", "a<b>c.tar", "co:lon.tar", "x::y.tar", "tab\t.tar", "pipe|.tar")
	}
	return keys
}

// Content returns n bytes that differ with the seed and that no shift by a
// block makes equal to themselves.
func Content(seed uint64, n int) []byte {
	p := make([]byte, 0, n+8)
	for i := uint64(0); len(p) < n; i++ {
		x := (i + seed<<40 + 1) * 0x9e3779b97f4a7c15 // splitmix64
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		p = binary.LittleEndian.AppendUint64(p, x^x>>31)
	}
	return p[:n:n]
}

func (f *Fixture) name(key string) string {
	if f.Name != nil {
		return f.Name(key)
	}
	return f.Prefix + key
}

func (f *Fixture) can(a Ability) bool { return f.Without&a == 0 }

func (f *Fixture) large() int {
	if f.Large > 0 {
		return int(f.Large)
	}
	return 20<<20 + 4567
}

func (f *Fixture) put(t testing.TB, key string, data []byte) {
	t.Helper()
	if f.Put != nil {
		f.Put(t, key, data)
		return
	}
	f.write(t, key, data)
}

// write creates and commits.
func (f *Fixture) write(t testing.TB, key string, data []byte) {
	t.Helper()
	k, err := f.Store.Create(t.Context(), f.name(key))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := k.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (f *Fixture) open(t testing.TB, key string) store.Object {
	t.Helper()
	o, err := f.Store.Open(t.Context(), f.name(key))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// read returns the whole object, or nil and the error that opening or reading
// it ended with.
func (f *Fixture) read(ctx context.Context, key string) ([]byte, error) {
	r, err := store.OpenStream(ctx, f.Store, f.name(key))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if e := r.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
