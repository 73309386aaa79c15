package tfrecord_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"shardtool/format/tfrecord"
)

// TestTensorFlow reads what TensorFlow's TFRecordWriter wrote, and writes it
// again, byte for byte; see fixtures/README.md.
func TestTensorFlow(t *testing.T) {
	const tf = "../../fixtures/tf"
	b, err := os.ReadFile(filepath.Join(tf, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []struct {
		File        string `json:"file"`
		Compression string `json:"compression"`
		End         int64  `json:"end"`
		Records     []struct {
			Offset int64  `json:"offset"`
			Bytes  int    `json:"bytes"`
			SHA256 string `json:"sha256"`
		} `json:"records"`
	}
	if err := json.Unmarshal(b, &files); err != nil {
		t.Fatal(err)
	}
	records := 0
	for _, f := range files {
		in, err := os.ReadFile(filepath.Join(tf, f.File))
		if err != nil {
			t.Fatal(err)
		}
		r := open(t, in, nil)
		var again bytes.Buffer
		w := tfrecord.NewWriter(&again)
		i := 0
		for p, err := range r.Records() {
			if err != nil {
				t.Fatalf("%s: %v", f.File, err)
			}
			want := f.Records[i]
			sum := sha256.Sum256(p)
			if r.Offset() != want.Offset || len(p) != want.Bytes || hex.EncodeToString(sum[:]) != want.SHA256 {
				t.Errorf("%s, record %d: %d bytes at %d, want %d at %d", f.File, i, len(p), r.Offset(), want.Bytes, want.Offset)
			}
			if err := w.Write(p); err != nil {
				t.Fatal(err)
			}
			i++
			records++
		}
		if i != len(f.Records) || r.End() != f.End {
			t.Errorf("%s: %d records up to %d, want %d up to %d", f.File, i, r.End(), len(f.Records), f.End)
		}
		if w.Flush() != nil || f.Compression == "" && !bytes.Equal(again.Bytes(), in) {
			t.Errorf("%s: what was written again differs", f.File)
		}
	}
	if records < 90 {
		t.Errorf("only %d records were read", records)
	}
}
