package bench

import (
	"bufio"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
)

// allocations is the number of objects that the Go heap has handed out.
func allocations() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// mapped is the memory that the Go runtime has mapped: what is known of the
// process where the system does not say more.
func mapped() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// cpuName is the processor's name where the system tells it as Linux does,
// else its architecture.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
