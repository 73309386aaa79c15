// Package asmtest is for tests of assembly: it looks at the instructions
// (Check), and lends memory beside which nothing may be touched (Walled).
package asmtest

import (
	"debug/elf"
	"debug/gosym"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Check fails t if an instruction in the assembly of the package under test is
// one of SSE, which between those of AVX costs a third of a kernel's speed on
// newer Intel cores, or one that AVX2 does not have; and if a function leaves
// the upper halves of registers in use, which costs as much. Nothing but a look
// at the instructions finds these.
//
// It looks at the files *_amd64.s in the test's folder and, on Linux, at the
// functions in the running program, which it disassembles: the assembler may
// choose another encoding than meant. That needs objdump of GNU binutils, for
// Go's own does not know AVX; without it the second look is skipped, unless the
// environment variable CI is "true".
func Check(t *testing.T) {
	t.Helper()
	written := asWritten(t, ".")
	if len(written) == 0 {
		t.Fatal("no assembly in this folder")
	}
	t.Run("as built", func(t *testing.T) { asBuilt(t, written) })
}

// asWritten looks at the source in a folder and returns the functions' names.
func asWritten(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_amd64.s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\nTEXT ·")[1:] {
			name, _, _ := strings.Cut(part, "(")
			_, body, _ := strings.Cut(part, "\n")
			names = append(names, name)
			for _, fault := range goNotation.faults(name, strings.Split(body, "\n")) {
				t.Errorf("%s: %s", file, fault)
			}
		}
	}
	return names
}

// asBuilt looks at the functions of those names in the running program.
func asBuilt(t *testing.T, names []string) {
	if !InBuild || runtime.GOOS != "linux" {
		t.Skip("no assembly in this build, or not an ELF file")
	}
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	code := machineCode(t)
	for _, name := range names {
		if len(code[name]) == 0 {
			t.Errorf("%s is not in this program: no test uses it", name)
			continue
		}
		file := filepath.Join(t.TempDir(), "code")
		if err := os.WriteFile(file, code[name], 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(objdump, "-D", "-w", "-b", "binary", "-m", "i386:x86-64", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(out), "\n")
		if !strings.Contains(string(out), "\tret") {
			t.Errorf("%s has no code:\n%s", name, out)
		}
		for _, fault := range gnuNotation.faults(name, lines) {
			t.Error(fault)
		}
	}
}

// machineCode returns the code of the functions of this module that are
// written in assembly, by their names without the package's.
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
	found := map[string][]byte{}
	for _, fn := range table.Funcs {
		if file, _, _ := table.PCToLine(fn.Entry); !strings.HasPrefix(fn.Name, "shardtool/") || !strings.HasSuffix(file, "_amd64.s") {
			continue
		}
		code := make([]byte, fn.End-fn.Entry)
		if _, err := text.ReadAt(code, int64(fn.Entry-text.Addr)); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(fn.Name[strings.LastIndex(fn.Name, "/"):], ".")
		found[strings.TrimSuffix(name, ".abi0")] = code
	}
	return found
}
