package kernel

import (
	"debug/elf"
	"debug/gosym"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// An instruction of SSE between those of AVX costs a third of a kernel's speed
// on newer Intel cores, and so does leaving the upper halves of registers in
// use. Nothing but a look at the instructions finds either.

// notation is a way to write assembly.
type notation struct {
	vector      *regexp.Regexp // an operand that is a vector register
	wide        *regexp.Regexp // one of more than 128 bits
	avx512      *regexp.Regexp // what AVX2 does not have
	vex         string         // how VEX and EVEX instructions begin
	ret         string
	zeroUpper   string
	instruction func(line string) (mnemonic, operands string)
}

var goNotation = notation{
	vector:    regexp.MustCompile(`\b[XYZ]\d+\b`),
	wide:      regexp.MustCompile(`\b[YZ]\d+\b`),
	avx512:    regexp.MustCompile(`\b(Z\d+|K[0-7]|[XY](1[6-9]|[23]\d))\b`),
	vex:       "V",
	ret:       "RET",
	zeroUpper: "VZEROUPPER",
	instruction: func(line string) (string, string) {
		line, _, _ = strings.Cut(line, "//")
		if strings.HasSuffix(strings.TrimSpace(line), ":") {
			return "", ""
		}
		mnemonic, operands, _ := strings.Cut(strings.TrimSpace(line), " ")
		return strings.TrimSuffix(mnemonic, ";"), operands
	},
}

var gnuNotation = notation{
	vector:    regexp.MustCompile(`%[xyz]mm\d+`),
	wide:      regexp.MustCompile(`%[yz]mm\d+`),
	avx512:    regexp.MustCompile(`%(zmm\d+|k[0-7]|[xy]mm(1[6-9]|[23]\d))`),
	vex:       "v",
	ret:       "ret",
	zeroUpper: "vzeroupper",
	instruction: func(line string) (string, string) {
		_, code, ok := strings.Cut(line, ":\t")
		if !ok {
			return "", ""
		}
		mnemonic, operands, _ := strings.Cut(strings.TrimSpace(code), " ")
		return mnemonic, operands
	},
}

// faults names what is wrong with a function.
func (n notation) faults(name string, lines []string) (found []string) {
	wide, clean := false, false // clean: since VZEROUPPER there were only scalar instructions
	for i, line := range lines {
		mnemonic, operands := n.instruction(line)
		if mnemonic == "" {
			continue
		}
		where := fmt.Sprintf("%s, line %d: %s: ", name, i+1, strings.TrimSpace(line))
		isMask := strings.HasPrefix(strings.ToLower(mnemonic), "k")
		if n.vector.MatchString(operands) && !strings.HasPrefix(mnemonic, n.vex) && !isMask {
			found = append(found, where+"neither VEX nor EVEX")
		}
		if strings.HasSuffix(name, "AVX2") && n.avx512.MatchString(operands) {
			found = append(found, where+"not of AVX2")
		}
		wide = wide || n.wide.MatchString(operands)
		switch {
		case mnemonic == n.ret:
			if wide && !clean {
				found = append(found, where+"the upper halves of registers are still in use")
			}
			clean = false
		case mnemonic == n.zeroUpper:
			clean = true
		case n.vector.MatchString(operands):
			clean = false
		}
	}
	return found
}

func TestFaultsOfAssemblyAreFound(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    notation
		code string
		want string
	}{
		{"fAVX2", goNotation, "VPADDD Y1, Y2, Y3\nVZEROUPPER\nRET", ""},
		{"fAVX2", goNotation, "loop:\n\tMOVUPS X0, (AX)\n\tRET", "neither VEX nor EVEX"},
		{"fAVX2", goNotation, "\tMOVQ X0, AX\n\tRET", "neither VEX nor EVEX"},
		{"fAVX2", goNotation, "\tMOVQ AX, BX\n\tRET", ""},
		{"fAVX2", goNotation, "VPADDD Y1, Y2, Y3\nRET", "still in use"},
		{"fAVX2", goNotation, "VPADDD Y1, Y2, Y3\nVZEROUPPER\nADDQ $8, SP\nRET", ""},
		{"fAVX2", goNotation, "VZEROUPPER\nRET\nrare:\nVPADDD Y1, Y2, Y3\nRET", "still in use"},
		{"fAVX2", goNotation, "VPADDD X1, X2, X3\nRET", ""},
		{"fAVX2", goNotation, "VPADDD Y1, Y2, Y16\nVZEROUPPER\nRET", "not of AVX2"},
		{"fAVX512", goNotation, "VPADDD Y1, Y2, K1, Y16\nKMOVW K1, AX\nVZEROUPPER\nRET", ""},
		{"fAVX2", gnuNotation, "   0:\tvpaddd %ymm1,%ymm2,%ymm3\n   4:\tvzeroupper\n   7:\tret", ""},
		{"fAVX2", gnuNotation, "   0:\tmovups %xmm0,(%rax)\n   3:\tret", "neither VEX nor EVEX"},
		{"fAVX2", gnuNotation, "   0:\tvpaddd %ymm1,%ymm2,%ymm3\n   4:\tret", "still in use"},
	} {
		got := strings.Join(tt.n.faults(tt.name, strings.Split(tt.code, "\n")), "\n")
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%q: faults %q, want %q", tt.code, got, tt.want)
		}
	}
}

// TestAssemblyAsWritten looks at the assembly of images and tensors.
func TestAssemblyAsWritten(t *testing.T) {
	functions := 0
	look := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_amd64.s") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parts := strings.Split(string(text), "\nTEXT ·")
		for _, part := range parts[1:] {
			name, _, _ := strings.Cut(part, "(")
			_, body, _ := strings.Cut(part, "\n")
			functions++
			for _, fault := range goNotation.faults(name, strings.Split(body, "\n")) {
				t.Errorf("%s: %s", path, fault)
			}
		}
		return nil
	}
	for _, folder := range []string{"../..", "../../../tensor"} {
		if err := filepath.WalkDir(folder, look); err != nil {
			t.Fatal(err)
		}
	}
	if functions < 8 {
		t.Errorf("only %d functions were found", functions)
	}
}

// TestAssemblyAsBuilt disassembles the functions of this package in the running
// program. It needs objdump of GNU binutils: Go's own does not know AVX.
func TestAssemblyAsBuilt(t *testing.T) {
	if supported() == Generic || runtime.GOOS != "linux" {
		t.Skip("no assembly in this build, or not an ELF file")
	}
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		t.Skip("no objdump at hand")
	}
	functions := 0
	for name, code := range machineCode(t) {
		file := filepath.Join(t.TempDir(), "code")
		if err := os.WriteFile(file, code, 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(objdump, "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		functions++
		if lines := strings.Split(string(out), "\n"); len(lines) < 10 {
			t.Errorf("%s has no code:\n%s", name, out)
		} else {
			for _, fault := range gnuNotation.faults(name, lines) {
				t.Error(fault)
			}
		}
	}
	if functions < 4 {
		t.Errorf("only %d functions were found", functions)
	}
}

// machineCode returns the code of the functions of this package that are
// written in assembly, from the running program.
func machineCode(t *testing.T) map[string][]byte {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	lines, err := f.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, text.Addr))
	if err != nil {
		t.Fatal(err)
	}
	const in = "shardtool/augment/internal/kernel."
	found := map[string][]byte{}
	for _, fn := range table.Funcs {
		if file, _, _ := table.PCToLine(fn.Entry); !strings.HasPrefix(fn.Name, in) || !strings.HasSuffix(file, "_amd64.s") {
			continue
		}
		code := make([]byte, fn.End-fn.Entry)
		if _, err := text.ReadAt(code, int64(fn.Entry-text.Addr)); err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(fn.Name, in)] = code
	}
	return found
}
