//go:build !(linux && (amd64 || arm64))

package cuda

import (
	"fmt"
	"runtime"
)

func open(string) (functions [numCalls]uintptr, err error) {
	return functions, fmt.Errorf("%w on %s/%s", ErrUnsupported, runtime.GOOS, runtime.GOARCH)
}

func invoke(uintptr, ...uintptr) uint32 { return 0 }
