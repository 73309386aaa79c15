package simd

import (
	"bufio"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"shardtool/internal/asmtest"
)

func TestAssembly(t *testing.T) { asmtest.Check(t) }

func TestAllowed(t *testing.T) {
	for value, want := range map[string]Level{"": AVX2, "off": Generic, "OFF": AVX2, "0": AVX2, "avx2": AVX2} {
		if got := allowed(value); got != want {
			t.Errorf("SHARDTOOL_SIMD=%q allows %v, want %v", value, got, want)
		}
	}
}

func TestSetLevel(t *testing.T) {
	before := Active()
	undo := SetLevel(Generic)
	if Active() != Generic {
		t.Error("assembly is used at the level generic")
	}
	undo()
	if Active() != before {
		t.Error("the level was not restored")
	}
	undo = SetLevel(AVX2)
	if Active() != supported() {
		t.Errorf("%v is in use, %v is supported", Active(), supported())
	}
	undo()
}

// TestSupported compares with what Linux says of the CPU.
func TestSupported(t *testing.T) {
	if !asmtest.InBuild || runtime.GOOS != "linux" {
		t.Skip("no assembly in this build, or not Linux")
	}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(name) != "flags" {
			continue
		}
		flags, want := strings.Fields(value), AVX2
		for _, flag := range []string{"avx2", "bmi1", "bmi2", "popcnt", "fma", "f16c"} {
			if !slices.Contains(flags, flag) {
				want = Generic
			}
		}
		if got := supported(); got != want {
			t.Errorf("supported: %v, by its flags it is %v", got, want)
		}
		return
	}
	t.Skip("no flags in /proc/cpuinfo")
}
