package tfrecord

import (
	"hash/crc32"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestCastagnoli holds the kernel against hash/crc32 for every length up to
// past its blocks and at every alignment; the bytes around are not zero, so
// that reading past either end shows.
func TestCastagnoli(t *testing.T) {
	buf := make([]byte, 9000)
	rand.NewChaCha8([32]byte{3}).Read(buf)
	for n := range 8500 {
		at := n % 17
		p := buf[at : at+n : at+n]
		if got, want := castagnoli(p), crc32.Checksum(p, table); got != want {
			t.Fatalf("CRC of %d bytes at %d is %08x, want %08x", n, at, got, want)
		}
	}
}

// TestLengthSum holds the table against hash/crc32.
func TestLengthSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		n := r.Uint64() >> (i % 64)
		var p [8]byte
		for k := range p {
			p[k] = byte(n >> (8 * k))
		}
		if got, want := lengthSum(n), mask(crc32.Checksum(p[:], table)); got != want {
			t.Fatalf("checksum of length %d is %08x, want %08x", n, got, want)
		}
	}
}

var sink uint32

func BenchmarkCastagnoli(b *testing.B) {
	buf := make([]byte, 1<<20)
	for _, n := range []int{10, 100, 500, 1000, 1024, 4000, 100_000} {
		for name, f := range map[string]func([]byte) uint32{
			"here": castagnoli,
			"std":  func(p []byte) uint32 { return crc32.Update(0, table, p) },
		} {
			b.Run(strconv.Itoa(n)+"B/"+name, func(b *testing.B) {
				b.SetBytes(int64(n))
				at := 0
				for b.Loop() {
					sink ^= f(buf[at : at+n])
					if at += n + Overhead; at+n > len(buf)/4 {
						at = 0
					}
				}
			})
		}
	}
}

func BenchmarkLengthSum(b *testing.B) {
	b.Run("table", func(b *testing.B) {
		n := uint64(0)
		for b.Loop() {
			sink ^= lengthSum(n & 0xffff)
			n++
		}
	})
	b.Run("std", func(b *testing.B) {
		var p [8]byte
		for b.Loop() {
			p[0]++
			sink ^= mask(crc32.Update(0, table, p[:]))
		}
	})
}
