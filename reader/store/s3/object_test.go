package s3

import (
	"fmt"
	"testing"

	"shardtool/format"
)

func TestContentRange(t *testing.T) {
	for s, want := range map[string][2]int64{
		"bytes 0-99/1234": {0, 1234}, "bytes 100-100/101": {100, 101}, "bytes 5-9/*": {5, format.Unknown},
	} {
		if off, size, err := contentRange(s); off != want[0] || size != want[1] || err != nil {
			t.Errorf("%s: %d, %d, %v", s, off, size, err)
		}
	}
	for _, s := range []string{"", "bytes", "bytes 0-1", "bytes */5", "bytes -1-5/9", "items 0-1/2", "bytes 0/5", "bytes 0-1/-5", "bytes 99999999999999999999-1/2"} {
		if _, _, err := contentRange(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-99/1234", "bytes 5-9/*", "bytes */5", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		off, size, err := contentRange(s)
		if err == nil && (off < 0 || size < format.Unknown) {
			t.Errorf("%q: %d, %d", s, off, size)
		}
		if again := fmt.Sprintf("bytes %d-%d/%d", off, off, size); err == nil && size >= 0 {
			if o, n, err := contentRange(again); o != off || n != size || err != nil {
				t.Errorf("%s: %d, %d, %v", again, o, n, err)
			}
		}
	})
}
