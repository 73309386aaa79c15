package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

var tables = map[string]Mem{}

// table is 32 bytes of constants, which an instruction may take from memory.
// What a name stands for is written once.
func table(name string, at func(i int) Constant) Mem {
	if m, ok := tables[name]; ok {
		return m
	}
	m := GLOBL(name, attr.RODATA|attr.NOPTR)
	tables[name] = m
	for i := 0; i < 32; {
		c := at(i)
		DATA(i, c)
		i += c.Bytes()
	}
	return m
}

// pairs is a and b in turn, as words.
func pairs(name string, a, b int) Mem {
	return table(name, func(i int) Constant { return I16(int16([]int{a, b}[i/2%2])) })
}

func words(name string, v int) Mem { return pairs(name, v, v) }

// dwords is v throughout, as words of 32 bits.
func dwords(name string, v uint32) Mem {
	return table(name, func(int) Constant { return U32(v) })
}

func bytesOf(name string, v uint8) Mem {
	return table(name, func(int) Constant { return U8(v) })
}
