package tfrecord

import (
	"bytes"
	"io"
	"testing"

	"shardtool/format"
)

// TestWorkIsBounded reads streams in which every few bytes claim a long
// payload. Were each claim hashed, it would take 4 GB and more.
func TestWorkIsBounded(t *testing.T) {
	claims := func(n, step int) []byte {
		var b []byte
		for range 20_000 {
			b = appendHeader(b, n)
			b = append(b, make([]byte, step-headerSize)...)
		}
		return b
	}
	nested := claims(200_000, 40)
	for i := 0; i+40 <= len(nested); i += 40 { // a sound empty record behind each claim
		copy(nested[i+headerSize:], AppendFrame(nil, nil))
	}
	for name, in := range map[string][]byte{
		"headers": claims(200_000, headerSize),
		"sparse":  claims(200_000, 40),
		"nested":  nested,
	} {
		r := NewReader(bytes.NewReader(in), &Options{OnError: format.Resync, Limits: &format.Limits{Record: 1 << 20}})
		for {
			if _, err := r.Next(); err != nil {
				if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
		}
		if most := int64(1<<20 + 64<<20 + 5*len(in)); r.spent > most {
			t.Errorf("%s: hashed %d bytes in vain for %d", name, r.spent, len(in))
		}
	}
}
