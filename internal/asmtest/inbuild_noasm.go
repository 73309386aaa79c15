//go:build !amd64 || noasm

package asmtest

// InBuild tells whether this build has assembly, whatever the CPU.
const InBuild = false
