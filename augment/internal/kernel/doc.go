// Package kernel holds the inner loops of decoding and augmenting. Each has a
// generic form in Go, which is its specification, and assembly that gives the
// same bits faster. Assembly is written by the programs in the module asm;
// package simd says which form runs.
//
// There are no forms for AVX-512. One of the horizontal pass of a resize with
// VNNI was measured and taken out again: in several runs of BenchmarkCrop on an
// EPYC of the fourth generation it was no faster than that for AVX2.
package kernel
