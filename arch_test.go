package shardtool_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// may is who may import whom, of this module's packages. A name that ends in
// /... stands for a folder and what is below it. A package may always import
// its own internal packages. Tests are held to the same table, and may import
// what testOnly names besides.
var may = map[string][]string{
	"format":           {},
	"format/compress":  {"format"},
	"format/tfrecord":  {"format", "format/compress"},
	"format/tfexample": {"format", "format/compress", "internal/..."},
	"format/tarshard":  {"format", "format/compress"},
	"format/index":     {"format", "format/compress", "format/tfrecord", "format/tarshard"},
	"format/codec":     {"format", "format/compress", "format/tfexample", "tensor"},
	"reader":           {"format/...", "reader/store/..."},
	"reader/store":     {"format/..."},
	"reader/store/...": {"format/...", "reader/store/..."},
	"reader/order":     {"format/..."},
	"echo":             {"format", "reader/order", "tensor"},
	"augment":          {"format", "tensor", "augment/...", "internal/..."},
	"augment/...":      {"format", "tensor", "augment", "augment/internal/...", "internal/..."},
	"tensor":           {"internal/..."},
	"internal/...":     {"internal/..."},
	"shard":            {"format/...", "reader/...", "augment/..."},
	"loader":           {"format/...", "reader/...", "echo", "augment/...", "tensor", "shard"},
	"loader/...":       {"format/...", "augment/...", "tensor", "internal/..."},
	"device":           {"tensor"},
	"device/...":       {"tensor", "device"},
	"bench":            {"format/...", "reader/...", "echo", "augment/...", "tensor", "loader", "device", "fixtures", "internal/plot"},
	"cmd/shardtool":    {"..."},
	"fixtures":         {},
	"fixtures/...":     {},
	"benchmarks/...":   {"..."},
	".":                {},
}

// testOnly is what only tests import.
var testOnly = []string{"fixtures", "reader/store/faultstore", "reader/store/faultserver", "reader/store/storetest", "internal/asmtest"}

const module = "shardtool"

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" || nested(file)):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(file, ".go"):
			pkg := path.Dir(filepath.ToSlash(file))
			seen[pkg] = true
			checkImports(t, pkg, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 5 {
		t.Errorf("only %d packages were found", len(seen))
	}
}

// nested reports whether a folder holds a module of its own.
func nested(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(found) > 0
}

func checkImports(t *testing.T, pkg, file string) {
	t.Helper()
	allowed, known := rule(pkg)
	if !known {
		t.Errorf("%s: the table of imports does not know the package %s", file, pkg)
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	test := strings.HasSuffix(file, "_test.go")
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if name == "C" {
			t.Errorf("%s: cgo", file)
		}
		ours, ok := strings.CutPrefix(name, module+"/")
		switch {
		case !ok && name != module:
			continue
		case test && (ours == pkg || matchesAny(testOnly, ours)):
		case !test && matchesAny(testOnly[1:], ours):
			t.Errorf("%s imports %s, which is for tests", file, name)
		case matchesAny(allowed, ours) || strings.HasPrefix(ours, pkg+"/internal/"):
		default:
			t.Errorf("%s imports %s; %s may import %v", file, name, pkg, allowed)
		}
	}
}

// rule returns the line of the table for a package: its own, or that of the
// closest folder above it.
func rule(pkg string) ([]string, bool) {
	if allowed, ok := may[pkg]; ok {
		return allowed, true
	}
	for dir := path.Dir(pkg); dir != "."; dir = path.Dir(dir) {
		if allowed, ok := may[dir+"/..."]; ok {
			return allowed, true
		}
	}
	return nil, false
}

func matchesAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		folder, wild := strings.CutSuffix(p, "...")
		folder = strings.TrimSuffix(folder, "/")
		if pkg == folder || wild && (folder == "" || strings.HasPrefix(pkg, folder+"/")) {
			return true
		}
	}
	return false
}

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		pkg, imports string
		want         bool
	}{
		{"format", "tensor", false},
		{"format", "internal/half", false},
		{"tensor", "internal/half", true},
		{"internal/simd", "tensor", false},
		{"format/tarshard", "format/tfrecord", false},
		{"format/index", "format/tfrecord", true},
		{"format/codec", "tensor", true},
		{"reader", "format/tarshard", true},
		{"reader", "shard", false},
		{"reader/store/faultstore", "reader/store", true},
		{"shard", "reader/store", true},
		{"shard", "tensor", false},
		{"device/cuda", "device", true},
		{"device/cuda", "loader", false},
		{"cmd/shardtool", "bench", true},
		{"loader", "bench", false},
		{"echo", "loader", false},
	} {
		allowed, known := rule(tt.pkg)
		if got := matchesAny(allowed, tt.imports); got != tt.want || !known {
			t.Errorf("%s may import %s: %v (known %v)", tt.pkg, tt.imports, got, known)
		}
	}
	if _, known := rule("newroom"); known {
		t.Error("a package that is not in the table is known")
	}
}
