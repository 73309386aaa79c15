//go:build debugpool

package tensor

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

const poison = 0xDB

// trace remembers where a buffer was taken and given back.
type trace struct{ taken, released string }

func (t trace) history() string {
	return fmt.Sprintf(" (taken at %s, released at %s)", t.taken, t.released)
}

type ledger struct {
	mu   sync.Mutex
	held map[*Buffer]struct{}
}

func (l *ledger) taken(b *Buffer) {
	b.trace = trace{taken: caller()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[*Buffer]struct{})
	}
	l.held[b] = struct{}{}
}

func (l *ledger) released(b *Buffer) {
	b.trace.released = caller()
	for i := range b.mem {
		b.mem[i] = poison
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, b)
}

func (l *ledger) leaks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for b := range l.held {
		lines = append(lines, fmt.Sprintf("%d bytes taken at %s", b.n, b.trace.taken))
	}
	slices.Sort(lines)
	return lines
}

// revive checks that nobody wrote to the memory while it was free, and returns
// a new Buffer over it: a stale one then still knows that it was released.
func (b *Buffer) revive() *Buffer {
	for i, v := range b.mem {
		if v != poison {
			panic(fmt.Sprintf("tensor: byte %d of a buffer was written after its release%s", i, b.trace.history()))
		}
	}
	return &Buffer{pool: b.pool, mem: b.mem}
}

// caller returns the place outside this package's pool that got us here.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasSuffix(f.File, "tensor/pool.go") && !strings.HasSuffix(f.File, "tensor/debug_on.go") {
			return fmt.Sprintf("%s:%d (%s)", f.File, f.Line, f.Function)
		}
		if !more {
			return "an unknown place"
		}
	}
}
