//go:build !unix && !windows

package bench

import "time"

func cpuTime() time.Duration { return 0 }
func peakMemory() int64      { return mapped() }
