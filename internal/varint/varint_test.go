package varint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"shardtool/internal/asmtest"
	"shardtool/internal/simd"
)

func TestAssembly(t *testing.T) { asmtest.Check(t) }

// forms runs a test with and without the assembly.
func forms(t *testing.T, f func(t *testing.T)) {
	for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
		t.Run(l.String(), func(t *testing.T) {
			defer simd.SetLevel(l)()
			if simd.Active() != l {
				t.Skip("not on this CPU")
			}
			f(t)
		})
	}
}

// reference decodes with protowire, which refuses a tenth byte that holds more
// than one bit: it is cut to what counts.
func reference(src []byte) (values []int64, used int, err error) {
	for used < len(src) {
		p := slices.Clone(src[used:min(len(src), used+MaxLen)])
		if len(p) == MaxLen {
			p[MaxLen-1] &= 0x81
		}
		v, n := protowire.ConsumeVarint(p)
		switch {
		case n > 0:
			values = append(values, int64(v))
			used += n
		case len(src)-used >= MaxLen:
			return values, used, ErrLong
		default:
			return values, used, ErrTruncated
		}
	}
	return values, used, nil
}

// TestKnown: encodings by hand, and of the protocol buffers documentation (300).
func TestKnown(t *testing.T) {
	forms(t, func(t *testing.T) {
		for _, tt := range []struct {
			name string
			src  string
			want []int64
			used int
			err  error
		}{
			{"nothing", "", nil, 0, nil},
			{"zero", "\x00", []int64{0}, 1, nil},
			{"300", "\xac\x02", []int64{300}, 2, nil},
			{"the largest of each length", "\x7f\xff\x7f\xff\xff\x7f\xff\xff\xff\x7f", []int64{127, 16383, 2097151, 268435455}, 10, nil},
			{"minus one", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", []int64{-1}, 10, nil},
			{"minus one, and more in its last byte", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x05", []int64{-1, 5}, 11, nil},
			{"the least", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", []int64{math.MinInt64}, 10, nil},
			{"the largest", "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", []int64{math.MaxInt64}, 9, nil},
			{"zero in two bytes", "\x80\x00\x01", []int64{0, 1}, 3, nil},
			{"zero in ten bytes", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01", []int64{0, 1}, 11, nil},
			{"eleven bytes", "\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", []int64{1}, 1, ErrLong},
			{"cut after one byte", "\x01\x80", []int64{1}, 1, ErrTruncated},
			{"cut after nine", "\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80", []int64{1}, 1, ErrTruncated},
			{"cut after ten", "\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", []int64{1}, 1, ErrLong},
		} {
			for _, before := range []int{0, 1, 7, 40, 61, 62, 63, 64, 120, 124, 500} { // ones
				for _, after := range []int{0, 100} {
					if tt.err != nil && tt.err != ErrLong && after > 0 {
						continue // it is no longer cut
					}
					src := append(bytesOf(1, before), tt.src...)
					src = append(src, bytesOf(1, after)...)
					want := append(slices.Repeat([]int64{1}, before), tt.want...)
					used := before + tt.used
					if tt.err == nil {
						want = append(want, slices.Repeat([]int64{1}, after)...)
						used += after
					}
					got, n, err := Append([]int64(nil), src)
					if !slices.Equal(got, want) || n != used || err != tt.err {
						t.Errorf("%d, %s, %d: %v, %d, %v, want %v, %d, %v", before, tt.name, after, got, n, err, want, used, tt.err)
					}
					count, ok := Count(src)
					if ok != (tt.err == nil) || ok && count != len(want) {
						t.Errorf("%d, %s, %d: counted %d, %v", before, tt.name, after, count, ok)
					}
				}
			}
		}
	})
}

func bytesOf(v byte, n int) []byte { return slices.Repeat([]byte{v}, n) }

// lists draws lists of numbers mostly of some lengths, some of them longer than
// they need to be, and damages few of them.
var lists = rapid.Custom(func(t *rapid.T) []byte {
	var src []byte
	seed := rapid.Uint64().Draw(t, "seed")
	r := rand.New(rand.NewPCG(seed, 1))
	most := rapid.SampledFrom([]int{1, 2, 3, 3, 3, 4, 5, 8, 9, 10}).Draw(t, "bytes of most numbers")
	rare := rapid.SampledFrom([]int{0, 0, 200, 20}).Draw(t, "one in so many is longer")
	for range rapid.IntRange(0, 700).Draw(t, "numbers") {
		n := 1 + r.IntN(most)
		if rare > 0 && r.IntN(rare) == 0 {
			n = 1 + r.IntN(MaxLen)
		}
		for range n - 1 {
			src = append(src, byte(r.Uint32())|0x80)
		}
		src = append(src, byte(r.Uint32())&0x7F)
	}
	if len(src) > 0 {
		for range rapid.SampledFrom([]int{0, 0, 0, 1, 10, 40}).Draw(t, "damages") {
			src[r.IntN(len(src))] |= 0x80
		}
	}
	return src
})

// walled copies b to memory that ends where nothing may be read any more, or
// begins where nothing before may be.
func walled(t asmtest.TB, b []byte, after bool) []byte {
	w := asmtest.Walled(t, len(b), after)
	copy(w, b)
	return w
}

// TestPropertyDecode: both forms are as protowire, for any room, and touch
// nothing else.
func TestPropertyDecode(t *testing.T) {
	forms(t, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			b := lists.Draw(rt, "list")
			want, used, fault := reference(b)
			src := walled(rt, b, rapid.Bool().Draw(rt, "at the end of memory"))
			count, ok := Count(src)
			if ok != (fault == nil) || ok && count != len(want) {
				rt.Fatalf("counted %d, %v, want %d, %v", count, ok, len(want), fault)
			}
			checkAppend[int64](rt, src, want, used, fault)
			room := rapid.OneOf(rapid.IntRange(0, 800), rapid.Just(len(want)), rapid.Just(len(want)+1)).Draw(rt, "room")
			checkDecode[int64](rt, src, want, fault, room)
			narrow, fault32 := slices.Clone(want), fault
			if i := slices.IndexFunc(want, func(v int64) bool { return v != int64(int32(v)) }); i >= 0 {
				narrow, fault32 = want[:i], ErrRange
			}
			checkDecode[int32](rt, src, narrow, fault32, room)
		})
	})
}

func checkAppend[T Int](t *rapid.T, src []byte, want []T, used int, fault error) {
	got, n, err := Append([]T{7, 8}, src)
	if !slices.Equal(got[:2], []T{7, 8}) || !slices.Equal(got[2:], want) || err != fault || n != used {
		t.Fatalf("appended %d of %d bytes, %v, want %d of %d, %v", len(got)-2, n, err, len(want), used, fault)
	}
}

// checkDecode decodes into room places between canaries.
func checkDecode[T Int](t *rapid.T, src []byte, want []int64, fault error, room int) {
	const canary = 0x5A5A5A5A
	mem := slices.Repeat([]T{canary}, room+64)
	n, used, err := Decode(mem[32:32+room:32+room], src)
	full := room < len(want)
	want = want[:min(room, len(want))]
	if room == len(want) && err == nil && fault != nil && fault != ErrTruncated {
		fault = nil // behind what was asked for
	}
	if full {
		fault = nil
	}
	if err != fault && !(err == ErrLong && fault == nil && !full) || n != len(want) {
		t.Fatalf("room %d: decoded %d, %v, want %d, %v", room, n, err, len(want), fault)
	}
	for i, v := range want {
		if int64(mem[32+i]) != v {
			t.Fatalf("room %d: number %d is %d, want %d", room, i, mem[32+i], v)
		}
	}
	bytes := 0
	for range n {
		_, k := protowire.ConsumeVarint(src[bytes:])
		if k < 0 {
			k = MaxLen // excess in the tenth byte
		}
		bytes += k
	}
	if used != bytes {
		t.Fatalf("room %d: used %d bytes for %d numbers, want %d", room, used, n, bytes)
	}
	for i, v := range mem {
		if (i < 32 || i >= 32+room) && v != canary {
			t.Fatalf("room %d: wrote at %d", room, i-32)
		}
	}
}

// TestLengths: lists of each number of tokens, at the walls of memory on both
// sides, with exactly the room.
func TestLengths(t *testing.T) {
	forms(t, func(t *testing.T) {
		for n := range 260 {
			b, want := tokens(n, uint64(n))
			for _, after := range []bool{false, true} {
				src := walled(t, b, after)
				dst := asmtest.Walled(t, 4*n, after)
				got := make([]int64, n)
				if k, used, err := Decode(got, src); k != n || used != len(b) || err != nil || !slices.Equal(got, want) {
					t.Fatalf("%d tokens: %v, %d, %d, %v", n, got, k, used, err)
				}
				narrow := words(dst)
				if k, _, err := Decode(narrow, src); k != n || err != nil || !slices.EqualFunc(narrow, want, func(a int32, b int64) bool { return int64(a) == b }) {
					t.Fatalf("%d tokens as int32: %v, %v", n, narrow, err)
				}
			}
		}
	})
}

// tokens is a list of n numbers uniform below 50257.
func tokens(n int, seed uint64) (list []byte, values []int64) {
	r := rand.New(rand.NewPCG(seed, 50257))
	for range n {
		v := r.Uint64N(50257)
		list = binary.AppendUvarint(list, v)
		values = append(values, int64(v))
	}
	return list, values
}

func TestNoAllocations(t *testing.T) {
	forms(t, func(t *testing.T) {
		src, _ := tokens(375, 1)
		long := make([]int64, 512)
		exact := make([]int32, 375)
		if n := testing.AllocsPerRun(10, func() {
			Count(src)
			Decode(long, src)
			Decode(exact, src)
			long, _, _ = Append(long[:0], src)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// FuzzDecode: both forms are as protowire.
func FuzzDecode(f *testing.F) {
	for _, n := range []int{0, 1, 30, 375} {
		src, _ := tokens(n, uint64(n))
		f.Add(src, uint16(n))
		f.Add(append(src, 0x80), uint16(512))
	}
	f.Add(slices.Repeat([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 50), uint16(50))
	f.Add(bytesOf(0x80, 300), uint16(2))
	f.Fuzz(func(t *testing.T, src []byte, room uint16) {
		want, used, fault := reference(src)
		for _, l := range []simd.Level{simd.Generic, simd.AVX2} {
			undo := simd.SetLevel(l)
			got, n, err := Append([]int64(nil), src)
			dst := make([]int64, room)
			k, _, _ := Decode(dst, src)
			count, ok := Count(src)
			undo()
			if !slices.Equal(got, want) || n != used || !errors.Is(err, fault) {
				t.Fatalf("%v: %d numbers of %d bytes, %v, want %d of %d, %v", l, len(got), n, err, len(want), used, fault)
			}
			if m := min(len(want), int(room)); k != m || !slices.Equal(dst[:k], want[:m]) {
				t.Fatalf("%v: %d numbers into %d, want %d", l, k, room, len(want))
			}
			if ok != (fault == nil) || ok && count != len(want) {
				t.Fatalf("%v: counted %d, %v", l, count, ok)
			}
		}
	})
}

// BenchmarkDecode is of lists as records of 1 KB hold them: tokens below 50257
// (2 and 3 bytes), labels of one byte, and numbers of any length; ns/value is
// what to compare. The lists are many, for a branch predictor learns one by
// heart. "scalar" is a loop over protowire.
func BenchmarkDecode(b *testing.B) {
	const many = 64
	r := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name string
		n    int
		draw func() uint64
	}{
		{"tokens", 375, func() uint64 { return r.Uint64N(50257) }},
		{"large vocabulary", 375, func() uint64 { return r.Uint64N(200_000) }},
		{"one byte", 1000, func() uint64 { return r.Uint64N(128) }},
		{"any length", 200, func() uint64 { return r.Uint64() >> r.UintN(64) }},
		{"negative", 100, func() uint64 { return math.MaxUint64 - 99 }},
	} {
		var lists [many][]byte
		for i := range lists {
			for range tt.n {
				lists[i] = binary.AppendUvarint(lists[i], tt.draw())
			}
		}
		each := func(name string, l simd.Level, f func(list []byte)) {
			b.Run(fmt.Sprintf("%s/%s", tt.name, name), func(b *testing.B) {
				defer simd.SetLevel(l)()
				b.ReportAllocs()
				b.SetBytes(int64(len(lists[0])))
				for i := 0; b.Loop(); i++ {
					f(lists[i%many])
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tt.n), "ns/value")
			})
		}
		slot, exact, narrow := make([]int64, tt.n+137), make([]int64, tt.n), make([]int32, tt.n+137)
		each("avx2", simd.AVX2, func(list []byte) { Decode(slot, list) })
		each("avx2 exact", simd.AVX2, func(list []byte) { Decode(exact, list) })
		if tt.name != "any length" {
			each("avx2 int32", simd.AVX2, func(list []byte) { Decode(narrow, list) })
		}
		each("generic", simd.Generic, func(list []byte) { Decode(slot, list) })
		each("scalar", simd.Generic, func(list []byte) {
			for i := 0; len(list) > 0; i++ {
				v, n := protowire.ConsumeVarint(list)
				slot[i] = int64(v)
				list = list[n:]
			}
		})
		each("count avx2", simd.AVX2, func(list []byte) { Count(list) })
		each("count generic", simd.Generic, func(list []byte) { Count(list) })
	}
}
