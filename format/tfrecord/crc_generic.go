//go:build !amd64 || noasm

package tfrecord

import "hash/crc32"

// castagnoli returns the CRC-32C of p.
func castagnoli(p []byte) uint32 { return crc32.Update(0, table, p) }
