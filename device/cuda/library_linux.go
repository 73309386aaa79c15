//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"

	"github.com/ebitengine/purego"
)

// open opens a library and finds its functions.
func open(library string) (functions [numCalls]uintptr, err error) {
	runtime.LockOSThread() // the reason of a failure is kept for each thread
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return functions, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	for c, name := range symbols {
		if functions[c], err = purego.Dlsym(handle, name); err != nil {
			return functions, fmt.Errorf("%w: it is older than that of CUDA 11.0: %w", ErrUnsupported, err)
		}
	}
	return functions, nil
}

// invoke calls a function that returns a CUresult.
//
//go:uintptrescapes
func invoke(function uintptr, args ...uintptr) uint32 {
	r, _, _ := purego.SyscallN(function, args...)
	return uint32(r)
}
