package kernel

import (
	"testing"

	"shardtool/internal/asmtest"
)

func TestAssembly(t *testing.T) { asmtest.Check(t) }
