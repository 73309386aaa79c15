package main

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tarOf is a tar archive of members of one byte each.
func tarOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// found is all that is in a folder, hidden or not.
func found(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// No name in a shard leads out of the folder; then nothing is extracted at all.
func TestExtractStaysInside(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int
		want string
	}{
		{"a/0001.txt", 0, "in/a/0001.txt"},
		{"/abs.txt", 0, "in/abs.txt"},
		{"./a.txt", 0, "in/a.txt"},
		{"../up.txt", 1, ""},
		{"a/../../up.txt", 1, ""},
		{"a/../b.txt", 1, ""},
		{"a//b.txt", 1, ""},
	} {
		dir := t.TempDir()
		code, _, stderr := runCommand(t, string(tarOf(t, tt.name)), "extract", "--format", "tar", "-", filepath.Join(dir, "in"))
		if got := found(t, dir); code != tt.code || got != tt.want {
			t.Errorf("%s: exit %d, %q; want %d, %q\n%s", tt.name, code, got, tt.code, tt.want, stderr)
		}
	}
}

// A link in the folder is not followed out of it.
func TestExtractFollowsNoLinkOut(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{in, out} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, filepath.Join(in, "link")); err != nil {
		t.Skip(err)
	}
	code, _, stderr := runCommand(t, string(tarOf(t, "link/x.txt")), "extract", "--format", "tar", "-", in)
	if got := found(t, out); code == 0 || got != "" {
		t.Errorf("exit %d, %q outside\n%s", code, got, stderr)
	}
}

// An interrupted run leaves nothing, whatever it was in the middle of.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	shard := tarOf(t, "0001.txt", "0002.txt", "0003.txt")
	for _, args := range [][]string{
		{"convert", "--format", "tar", "-", "OUT/x-%d.tar", "--count", "1"},
		{"convert", "--format", "tar", "-", "OUT/x.tfrecord.gz"},
		{"convert", "--format", "tar", "-", "OUT/x.tar", "--shuffle"},
		{"repair", "--format", "tar", "-", "OUT/x.tar"},
		{"extract", "--format", "tar", "-", "OUT/files"},
	} {
		dir := t.TempDir()
		for i := range args {
			args[i] = strings.Replace(args[i], "OUT", dir, 1)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		in, feed := io.Pipe()
		go func() {
			_, _ = feed.Write(shard[:2*1024+512]) // two members and a header
			cancel(interrupted{syscall.SIGINT})
		}()
		var out, stderr bytes.Buffer
		code := run(ctx, append([]string{"shardtool"}, args...), in, &out, &stderr)
		if got := found(t, dir); code != 130 || got != "" || out.Len() > 0 {
			t.Errorf("%v: exit %d, left %q\n%s%s", args, code, got, out.String(), stderr.String())
		}
		in.Close()
	}
}
