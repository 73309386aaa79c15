package cuda

import (
	"fmt"
	"sync"
	"unsafe"
)

// call is one of the driver's functions.
type call int

const (
	cuInit call = iota
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceTotalMem
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuMemHostRegister
	cuMemHostUnregister
	cuMemAlloc
	cuMemFree
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuStreamCreate
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamWaitEvent
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventSynchronize
	cuGetErrorName
	cuGetErrorString
	numCalls
)

// symbols are the names of the functions in the library.
var symbols = [numCalls]string{
	cuInit:                    "cuInit",
	cuDeviceGetCount:          "cuDeviceGetCount",
	cuDeviceGet:               "cuDeviceGet",
	cuDeviceGetName:           "cuDeviceGetName",
	cuDeviceTotalMem:          "cuDeviceTotalMem_v2",
	cuDevicePrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
	cuDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
	cuCtxSetCurrent:           "cuCtxSetCurrent",
	cuMemHostRegister:         "cuMemHostRegister_v2",
	cuMemHostUnregister:       "cuMemHostUnregister",
	cuMemAlloc:                "cuMemAlloc_v2",
	cuMemFree:                 "cuMemFree_v2",
	cuMemcpyHtoDAsync:         "cuMemcpyHtoDAsync_v2",
	cuMemcpyDtoHAsync:         "cuMemcpyDtoHAsync_v2",
	cuStreamCreate:            "cuStreamCreate",
	cuStreamDestroy:           "cuStreamDestroy_v2",
	cuStreamSynchronize:       "cuStreamSynchronize",
	cuStreamWaitEvent:         "cuStreamWaitEvent",
	cuEventCreate:             "cuEventCreate",
	cuEventDestroy:            "cuEventDestroy_v2",
	cuEventRecord:             "cuEventRecord",
	cuEventSynchronize:        "cuEventSynchronize",
	cuGetErrorName:            "cuGetErrorName",
	cuGetErrorString:          "cuGetErrorString",
}

// Constants of cuda.h.
const (
	registerPortable   = 0x1 // CU_MEMHOSTREGISTER_PORTABLE: pinned for all contexts
	streamNonBlocking  = 0x1 // CU_STREAM_NON_BLOCKING: not held up by the default stream
	eventBlockingSync  = 0x1 // CU_EVENT_BLOCKING_SYNC: who waits sleeps
	eventDisableTiming = 0x2 // CU_EVENT_DISABLE_TIMING
	codeOutOfMemory    = 2   // CUDA_ERROR_OUT_OF_MEMORY
)

// Error is a call of the driver that failed. The driver may report with one
// call what went wrong in copies or kernels that were begun before.
type Error struct {
	Call string // the function, such as "cuMemAlloc_v2"
	Code int    // CUresult
	Name string // such as "CUDA_ERROR_OUT_OF_MEMORY"; "" where the driver knows none
	Text string // the driver's words for it; "" where it has none
}

// Error returns one line.
func (e *Error) Error() string {
	switch {
	case e.Name == "":
		return fmt.Sprintf("cuda: %s: error %d", e.Call, e.Code)
	case e.Text == "":
		return fmt.Sprintf("cuda: %s: %s (%d)", e.Call, e.Name, e.Code)
	}
	return fmt.Sprintf("cuda: %s: %s (%s, %d)", e.Call, e.Text, e.Name, e.Code)
}

// driver is a library that has been opened; it stays open.
type driver struct {
	functions [numCalls]uintptr
	pinned    pinned
}

var drivers struct {
	mu   sync.Mutex
	open map[string]*driver // by the library's name
}

// load opens a library, or finds it open: what is pinned belongs to all devices.
func load(library string) (*driver, error) {
	drivers.mu.Lock()
	defer drivers.mu.Unlock()
	drv := drivers.open[library]
	if drv == nil {
		functions, err := open(library)
		if err != nil {
			return nil, err
		}
		drv = &driver{functions: functions}
		if drivers.open == nil {
			drivers.open = make(map[string]*driver)
		}
		drivers.open[library] = drv
	}
	return drv, drv.do(cuInit, 0)
}

// do calls a function. Memory that arguments point to stays where it is, and
// reachable, until do returns.
//
//go:uintptrescapes
func (drv *driver) do(c call, args ...uintptr) error {
	code := invoke(drv.functions[c], args...)
	if code == 0 {
		return nil
	}
	e := &Error{Call: symbols[c], Code: int(code)}
	e.Name, e.Text = drv.words(cuGetErrorName, code), drv.words(cuGetErrorString, code)
	return e
}

// words returns what cuGetErrorName or cuGetErrorString say. The string is the
// driver's and stays.
func (drv *driver) words(c call, code uint32) string {
	text := new(*byte)
	if invoke(drv.functions[c], uintptr(code), uintptr(unsafe.Pointer(text))) != 0 || *text == nil {
		return ""
	}
	const most = 1 << 10
	var s []byte
	for p := *text; *p != 0 && len(s) < most; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		s = append(s, *p)
	}
	return string(s)
}

func (drv *driver) count() (int, error) {
	var n int32
	err := drv.do(cuDeviceGetCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// retain returns the primary context of a device, which counts its holders.
func (drv *driver) retain(device int32) (uintptr, error) {
	var ctx uintptr
	err := drv.do(cuDevicePrimaryCtxRetain, uintptr(unsafe.Pointer(&ctx)), uintptr(device))
	return ctx, err
}

// address returns where memory is. What it is an address of must be kept
// reachable by the caller.
func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
