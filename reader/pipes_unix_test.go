//go:build unix

package reader_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

// TestNamedPipesAreLeftAlone: to open one would wait for its other end.
func TestNamedPipesAreLeftAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.tar")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	m, err := reader.New(&store.Local{}, []string{name}, &reader.Options{CacheDir: "-", Scan: reader.ScanAlways}).Manifest(t.Context())
	if err != nil || m.Shards[0].Samples != format.Unknown || m.Shards[0].Size != format.Unknown {
		t.Errorf("%+v, %v", m, err)
	}
}
