package remote

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"net/http"
	"strings"

	"github.com/minio/crc64nvme"
)

// Algorithm of a Checksum.
type Algorithm uint8

// The algorithms of S3's full-object checksums; see "Checking object
// integrity" in its user guide. CRC64NVME is the NVM Express polynomial.
const (
	NoChecksum Algorithm = iota
	CRC32
	CRC32C
	CRC64NVME
	SHA1
	SHA256
)

// String returns the name as S3 spells it.
func (a Algorithm) String() string { return algorithms[a].name }

var algorithms = [...]struct {
	name   string
	header string
	hash   func() hash.Hash
}{
	NoChecksum: {name: "none"},
	CRC32:      {"CRC32", "X-Amz-Checksum-Crc32", func() hash.Hash { return crc32.NewIEEE() }},
	CRC32C:     {"CRC32C", "X-Amz-Checksum-Crc32c", func() hash.Hash { return crc32.New(castagnoli) }},
	CRC64NVME:  {"CRC64NVME", "X-Amz-Checksum-Crc64nvme", func() hash.Hash { return crc64nvme.New() }},
	SHA1:       {"SHA1", "X-Amz-Checksum-Sha1", sha1.New},
	SHA256:     {"SHA256", "X-Amz-Checksum-Sha256", sha256.New},
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is that of a full object. The zero value is none.
type Checksum struct {
	Algorithm Algorithm
	Value     string // base64 of the big-endian sum
}

// NewChecksum returns the checksum that a server sent, or none where it cannot
// be held against the bytes: kind, the value of x-amz-checksum-type, is
// COMPOSITE, or the value ends in "-N", which says the same: it is a checksum
// of the parts' checksums.
func NewChecksum(a Algorithm, value, kind string) Checksum {
	sum, err := base64.StdEncoding.DecodeString(value)
	if strings.EqualFold(kind, "COMPOSITE") || err != nil || len(sum) == 0 || a == NoChecksum {
		return Checksum{}
	}
	return Checksum{a, value}
}

// ChecksumOf returns the checksum that the headers of an answer tell.
func ChecksumOf(h http.Header) Checksum {
	kind := h.Get("X-Amz-Checksum-Type")
	for _, a := range [...]Algorithm{CRC32C, CRC32, CRC64NVME, SHA256, SHA1} { // the cheapest first
		if c := NewChecksum(a, h.Get(algorithms[a].header), kind); c.Algorithm != NoChecksum {
			return c
		}
	}
	return Checksum{}
}

// verifier returns a running sum to hold against c, nil for none.
func (c Checksum) verifier() hash.Hash {
	if c.Algorithm == NoChecksum {
		return nil
	}
	return algorithms[c.Algorithm].hash()
}

func encodeSum(h hash.Hash) string { return base64.StdEncoding.EncodeToString(h.Sum(nil)) }
