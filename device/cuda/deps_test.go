package cuda_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The command has no driver in it, so that it stays a static binary; with -tags
// cuda it has.
func TestCommandIsWithoutUnlessAsked(t *testing.T) {
	for _, tt := range []struct {
		tags string
		want bool
	}{{"", false}, {"cuda", true}} {
		list := exec.Command("go", "list", "-deps", "-tags", tt.tags, "shardtool/cmd/shardtool")
		list.Env = append(list.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("%v: %v", list, err)
		}
		deps := strings.Fields(string(out))
		for _, dep := range []string{"shardtool/device/cuda", "github.com/ebitengine/purego"} {
			if got := slices.Contains(deps, dep); got != tt.want {
				t.Errorf("with tags %q the command depends on %s: %v", tt.tags, dep, got)
			}
		}
	}
}
