//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"time"
)

// cpuTime is what all cores have spent on the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the largest resident size so far, in bytes.
func peakMemory() int64 {
	var u syscall.Rusage
	switch {
	case syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil:
		return mapped()
	case runtime.GOOS == "darwin" || runtime.GOOS == "ios":
		return int64(u.Maxrss)
	default:
		return int64(u.Maxrss) << 10
	}
}
