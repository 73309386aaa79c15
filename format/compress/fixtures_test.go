package compress_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"shardtool/format"
	"shardtool/format/compress"
)

// TestFixtures reads what gzip, pigz, zstd and Python have compressed, and
// compares with what those tools give back; see fixtures/README.md.
func TestFixtures(t *testing.T) {
	const tars = "../../fixtures/tars"
	b, err := os.ReadFile(filepath.Join(tars, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []struct {
		File        string   `json:"file"`
		Compression string   `json:"compression"`
		Bytes       int      `json:"bytes"`
		SHA256      string   `json:"sha256"`
		Differs     []string `json:"differs"`
	}
	if err := json.Unmarshal(b, &files); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, f := range files {
		in, err := os.ReadFile(filepath.Join(tars, f.File))
		if err != nil {
			t.Fatal(err)
		}
		k, known := compress.ParseKind(f.Compression)
		if got := compress.Sniff(in[:min(len(in), compress.PeekSize)]); got != k {
			t.Errorf("%s is told as %s, want %s", f.File, got, k)
		}
		if !known {
			continue
		}
		ran++
		out, trailing, err := read(t, bytes.NewReader(in), k, nil)
		if slices.Contains(f.Differs, "window") {
			if !errors.Is(err, format.ErrLimit) {
				t.Errorf("%s: %v, want a limit", f.File, err)
			}
			continue
		}
		sum := sha256.Sum256(out)
		if err != nil || trailing || len(out) != f.Bytes || hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s: %d bytes, trailing %v, error %v, want %d", f.File, len(out), trailing, err, f.Bytes)
		}
	}
	if ran < 8 {
		t.Errorf("only %d files were read", ran)
	}
}
