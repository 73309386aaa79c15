package asmtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFaultsAreFound(t *testing.T) {
	for _, tt := range []struct {
		n    notation
		code string
		want string
	}{
		{goNotation, "VPADDD Y1, Y2, Y3\nVZEROUPPER\nRET", ""},
		{goNotation, "loop:\n\tMOVUPS X0, (AX)\n\tRET", "not VEX"},
		{goNotation, "\tMOVQ X0, AX\n\tRET", "not VEX"},
		{goNotation, "\tMOVQ AX, BX\n\tRET", ""},
		{goNotation, "VPADDD Y1, Y2, Y3\nRET", "still in use"},
		{goNotation, "VPADDD Y1, Y2, Y3\nVZEROUPPER\nADDQ $8, SP\nRET", ""},
		{goNotation, "VZEROUPPER\nRET\nrare:\nVPADDD Y1, Y2, Y3\nRET", "still in use"},
		{goNotation, "VPADDD X1, X2, X3\nRET", ""},
		{goNotation, "VPADDD Y1, Y2, Y16\nVZEROUPPER\nRET", "not of AVX2"},
		{goNotation, "KMOVW K1, AX\nRET", "not of AVX2"},
		{gnuNotation, "   0:\tc5 ed fe c9   \tvpaddd %ymm1,%ymm2,%ymm3\n   4:\tc5 f8 77    \tvzeroupper\n   7:\tc3    \tret", ""},
		{gnuNotation, "   0:\t0f 11 00   \tmovups %xmm0,(%rax)\n   3:\tc3    \tret", "not VEX"},
		{gnuNotation, "   0:\tc5 ed fe c9   \tvpaddd %ymm1,%ymm2,%ymm3\n   4:\tc3    \tret", "still in use"},
		{gnuNotation, "   0:\t62 f3 6d 08 25 d9 55 \tvpternlogd $0x55,%xmm1,%xmm2,%xmm3\n   7:\tc3   \tret", "not of AVX2"},
	} {
		got := strings.Join(tt.n.faults("f", strings.Split(tt.code, "\n")), "\n")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%q: faults %q, want %q", tt.code, got, tt.want)
		}
	}
}

// TestEveryFolder: where there is assembly of images and tensors, a test calls
// Check.
func TestEveryFolder(t *testing.T) {
	folders := map[string]bool{}
	look := func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_amd64.s") {
			folders[filepath.Dir(path)] = true
		}
		return err
	}
	for _, root := range []string{"../../augment", "../../internal"} {
		if err := filepath.WalkDir(root, look); err != nil {
			t.Fatal(err)
		}
	}
	if len(folders) < 4 {
		t.Errorf("only %d folders have assembly", len(folders))
	}
	for folder := range folders {
		tests, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		checked := false
		for _, file := range tests {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checked = checked || strings.Contains(string(text), "asmtest.Check(t)")
		}
		if !checked {
			t.Errorf("no test in %s calls Check", folder)
		}
	}
}
