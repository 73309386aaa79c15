package jpeg

import (
	"testing"

	"shardtool/internal/asmtest"
)

func TestAssembly(t *testing.T) { asmtest.Check(t) }
