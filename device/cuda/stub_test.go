//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"go.uber.org/goleak"
)

// stub is the driver of testdata/stub.c, as far as tests talk to it.
var stub struct {
	path   string
	reset  func()
	fail   func(name string, nth, code int32) // the nth call of it from now on
	calls  func(name string) int32
	limit  func(memory, pinned uint64)
	delay  func(us int32) // of each copy
	broken func(on int32) // copies fail
	hold   func(on int32) // streams stand still
	report func(text *byte, n int32) int32
	held   func(kind int32) int32
	now    func() int32 // the context of the calling thread
}

var folder string

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// build compiles the stub and loads it.
var build = sync.OnceValue(func() (err error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		if cc, err = exec.LookPath("gcc"); err != nil {
			return errNoCompiler
		}
	}
	if folder, err = os.MkdirTemp("", "stub"); err != nil {
		return err
	}
	stub.path = filepath.Join(folder, "libstub.so")
	command := exec.Command(cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-shared", "-fPIC", "-pthread",
		"-o", stub.path, filepath.Join("testdata", "stub.c"))
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", command, err, out)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	library, err := purego.Dlopen(stub.path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	for name, f := range map[string]any{
		"stub_reset": &stub.reset, "stub_fail": &stub.fail, "stub_calls": &stub.calls, "stub_limit": &stub.limit,
		"stub_delay": &stub.delay, "stub_fail_copies": &stub.broken, "stub_hold": &stub.hold,
		"stub_report": &stub.report, "stub_held": &stub.held, "stub_current": &stub.now,
	} {
		purego.RegisterLibFunc(f, library, name)
	}
	return nil
})

var errNoCompiler = fmt.Errorf("there is no C compiler to build the stub of the driver")

// withStub gives the test a stub as new, and checks at its end that nothing is
// left and nothing was done that must not be.
func withStub(t *testing.T) {
	t.Helper()
	switch err := build(); {
	case err == errNoCompiler && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	leaks := goleak.IgnoreCurrent()
	stub.reset()
	t.Cleanup(func() {
		checkStub(t)
		goleak.VerifyNone(t, leaks)
	})
}

func checkStub(t *testing.T) {
	t.Helper()
	text := make([]byte, 1<<16)
	if n := stub.report(&text[0], int32(len(text))); n > 0 {
		words, _, _ := strings.Cut(string(text), "\x00")
		t.Errorf("%d faults:\n%s", n, words)
	}
	for kind, name := range map[int32]string{'m': "blocks of memory", 'p': "pinned ranges", 'e': "events", 's': "streams", 'q': "copies", 'c': "holders of contexts"} {
		if n := stub.held(kind); n != 0 {
			t.Errorf("%d %s are left", n, name)
		}
	}
}
