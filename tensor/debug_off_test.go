//go:build !debugpool

package tensor_test

import (
	"testing"

	"shardtool/tensor"
)

func TestGetAllocatesNothingInSteadyState(t *testing.T) {
	var p tensor.Pool
	p.Get(5000).Release()
	if n := testing.AllocsPerRun(100, func() { p.Get(5000).Release() }); n != 0 {
		t.Errorf("Get and Release allocate %v times", n)
	}
}
