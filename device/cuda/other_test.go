//go:build !(linux && (amd64 || arm64))

package cuda_test

import (
	"errors"
	"testing"

	"shardtool/device/cuda"
)

func TestUnsupported(t *testing.T) {
	if _, err := cuda.Open(t.Context(), 0, nil); !errors.Is(err, cuda.ErrUnsupported) {
		t.Errorf("Open: %v", err)
	}
	if _, err := cuda.Count(nil); !errors.Is(err, cuda.ErrUnsupported) {
		t.Errorf("Count: %v", err)
	}
}
