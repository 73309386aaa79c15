package jpeg

import (
	"testing"
	"unsafe"
)

// The assembly has these numbers in it (asm/entropy.go).
func TestLayoutIsThatOfTheAssembly(t *testing.T) {
	var c cursor
	var s step
	var tb table
	for name, f := range map[string][2]uintptr{
		"cursor.buf": {unsafe.Offsetof(c.buf), 0}, "cursor.bits": {unsafe.Offsetof(c.bits), 8}, "cursor.pos": {unsafe.Offsetof(c.pos), 16},
		"cursor.end": {unsafe.Offsetof(c.end), 24}, "cursor.pred": {unsafe.Offsetof(c.pred), 32}, "cursor.bad": {unsafe.Offsetof(c.bad), 48},
		"step.dc": {unsafe.Offsetof(s.dc), 0}, "step.ac": {unsafe.Offsetof(s.ac), 8}, "step.skip": {unsafe.Offsetof(s.skip), 16},
		"step.out": {unsafe.Offsetof(s.out), 24}, "step.advance": {unsafe.Offsetof(s.advance), 32}, "step.comp": {unsafe.Offsetof(s.comp), 40},
		"step": {unsafe.Sizeof(s), 48}, "table.look": {unsafe.Offsetof(tb.look), 0}, "table.limit": {unsafe.Offsetof(tb.limit), 8192},
		"table.first": {unsafe.Offsetof(tb.first), 8264}, "table.symbol": {unsafe.Offsetof(tb.symbol), 8332},
		"lookBits": {lookBits, 11}, "skipBits": {skipBits, 11},
	} {
		if unsafe.Sizeof(uintptr(0)) == 8 && f[0] != f[1] {
			t.Errorf("%s is at %d, the assembly has %d", name, f[0], f[1])
		}
	}
}
