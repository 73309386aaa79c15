//go:build debugpool

package tensor_test

import (
	"strings"
	"testing"

	"shardtool/tensor"
)

func TestReleasedMemoryIsPoisoned(t *testing.T) {
	var p tensor.Pool
	b := p.Get(100)
	stale := b.Bytes()
	stale[7] = 1
	b.Release()
	for i, v := range stale {
		if v != 0xDB {
			t.Fatalf("byte %d is %#x", i, v)
		}
	}
	stale[7] = 1
	if got := panicOf(func() { p.Get(100) }); !strings.Contains(got, "byte 7") || !strings.Contains(got, "debug_on_test.go:") {
		t.Errorf("a write after release: %q", got)
	}
}

func TestStaleBufferPanicsAfterReuse(t *testing.T) {
	var p tensor.Pool
	b := p.Get(100)
	b.Release()
	again := p.Get(100)
	if panicOf(b.Release) == "" || panicOf(b.Retain) == "" {
		t.Error("a stale buffer could be released or retained")
	}
	again.Release()
}

func TestLeaksNameTheirPlace(t *testing.T) {
	var p tensor.Pool
	p.Get(1).Release()
	if got := p.Leaks(); len(got) != 0 {
		t.Errorf("leaks %q", got)
	}
	p.Get(123)
	if got := p.Leaks(); len(got) != 1 || !strings.Contains(got[0], "123 bytes") || !strings.Contains(got[0], "TestLeaksNameTheirPlace") {
		t.Errorf("leaks %q", got)
	}
}
