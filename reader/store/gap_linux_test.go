package store_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"shardtool/reader/store"
)

// gapObject has a gap of its own.
type gapObject struct {
	store.Object
	gap int64
}

func (o gapObject) Gap() int64 { return o.gap }

// BenchmarkGap reads 32 spans of 16 KiB with gaps between them, by one request
// and one by one, from a cached file and from one that the system was asked to
// forget. See localGap.
func BenchmarkGap(b *testing.B) {
	path, size := benchFile(b)
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // what is not on the disk is not forgotten
		b.Fatal(err)
	}
	for _, cached := range []bool{true, false} {
		for _, gap := range []int64{4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10} {
			for _, together := range []bool{true, false} {
				b.Run(fmt.Sprintf("cached=%v/gap=%dK/together=%v", cached, gap>>10, together), func(b *testing.B) {
					o, err := (&store.Local{Random: true}).Open(b.Context(), path)
					if err != nil {
						b.Fatal(err)
					}
					defer o.Close()
					g := gapObject{o, -1}
					if together {
						g.gap = gap
					}
					spans := make([]store.Span, 32)
					for i := range spans {
						spans[i].P = make([]byte, 16<<10)
					}
					for i := int64(0); b.Loop(); i++ {
						if !cached {
							b.StopTimer()
							_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
							b.StartTimer()
						}
						at := i * 12_345_678 % (size - 32*(16<<10+gap))
						for j := range spans {
							spans[j].Off = at + int64(j)*(16<<10+gap)
						}
						if err := store.ReadSpans(b.Context(), g, spans); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
