package s3

import "testing"

// The limits are those of S3: "Amazon S3 multipart upload limits" in its user
// guide.
func TestPartsHoldTheLargestObject(t *testing.T) {
	const mib, gib, tib = 1 << 20, 1 << 30, 1 << 40
	var total int64
	for n := range maxParts {
		size := partSize(n)
		if size < 5*mib || size > 5*gib {
			t.Fatalf("part %d has %d bytes", n, size)
		}
		total += size
		if n == 99 && total != 800*mib {
			t.Errorf("100 parts hold %d bytes", total)
		}
	}
	if total < 5*tib {
		t.Errorf("all parts hold %d bytes", total)
	}
}
