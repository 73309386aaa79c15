package shard_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"shardtool/format"
	"shardtool/format/compress"
	"shardtool/reader/store"
	"shardtool/reader/store/faultstore"
	"shardtool/shard"
)

// TestEveryStepMayFail lets each operation fail at each of its steps: at every
// creation, flush and naming of a file, and after more and more bytes read and
// written. What it leaves is nothing until the first file gets its name.
func TestEveryStepMayFail(t *testing.T) {
	in := writeTar(t, "in.tar", 30)
	gz := filepath.Join(t.TempDir(), "in.tar.gz")
	convert(t, []string{in}, gz, nil)
	folder := t.TempDir()
	if _, err := shard.Extract(t.Context(), []string{in}, folder, nil); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		outputs int
		run     func(o shard.Options, dir string) error
	}{
		"convert": {3, func(o shard.Options, dir string) error {
			_, err := shard.Convert(context.Background(), []string{in}, dir+"/out-%d.tfrecord", &shard.ConvertOptions{Options: o, Output: shard.OutputOptions{Count: 10}})
			return err
		}},
		"shuffle": {1, func(o shard.Options, dir string) error {
			_, err := shard.Convert(context.Background(), []string{gz}, dir+"/out.tar.zst", &shard.ConvertOptions{Options: o, Shuffle: true})
			return err
		}},
		"split": {4, func(o shard.Options, dir string) error {
			_, err := shard.Convert(context.Background(), []string{in}, dir+"/{split}-%d.tar", &shard.ConvertOptions{
				Options: o, Shards: 2, Parts: []shard.Part{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}},
			})
			return err
		}},
		"repair": {1, func(o shard.Options, dir string) error {
			_, err := shard.Repair(context.Background(), in, dir+"/out.tar", &shard.RepairOptions{Options: o})
			return err
		}},
		"pack": {1, func(o shard.Options, dir string) error {
			_, err := shard.Pack(context.Background(), folder, dir+"/out.tar", &shard.PackOptions{Options: o})
			return err
		}},
		"index": {1, func(o shard.Options, dir string) error {
			_, err := shard.Index(context.Background(), []string{in}, &shard.IndexOptions{Options: o, Output: dir + "/out.idx"})
			return err
		}},
		"index of all": {1, func(o shard.Options, dir string) error {
			_, err := shard.IndexDataset(context.Background(), []string{in, gz}, dir+"/out.json", &shard.IndexOptions{Options: o})
			return err
		}},
	} {
		for _, step := range []struct {
			op  faultstore.Op
			say string
			by  func(n int64) int64 // which step is next
		}{
			{faultstore.Open, "open", func(n int64) int64 { return n + 1 }},
			{faultstore.Read, "read", func(n int64) int64 { return n + n/3 + 1000 }},
			{faultstore.Create, "create", func(n int64) int64 { return n + 1 }},
			{faultstore.Write, "write", func(n int64) int64 { return n + n/3 + 100 }},
			{faultstore.Finish, "finish", func(n int64) int64 { return n + 1 }},
			{faultstore.Commit, "commit", func(n int64) int64 { return n + 1 }},
		} {
			failures := 0
			for after := int64(0); ; after = step.by(after) {
				dir := t.TempDir()
				st := faultstore.New(&store.Local{}, faultstore.Fault{Op: step.op, After: after, Err: syscall.ENOSPC})
				err := tt.run(shard.Options{Store: st}, dir)
				left := files(t, dir)
				if err == nil {
					if len(left) != tt.outputs {
						t.Errorf("%s: after success there is %v", name, left)
					}
					break
				}
				failures++
				if !errors.Is(err, format.ErrIO) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space left") {
					t.Errorf("%s, %s after %d: %v", name, step.say, after, err)
				}
				// The files before the one whose name was refused are in place.
				want := 0
				if step.op == faultstore.Commit {
					want = int(after)
				}
				if len(left) != want {
					t.Errorf("%s, %s after %d left %v", name, step.say, after, left)
				}
			}
			if needed := name != "pack" || step.op > faultstore.Read; needed && failures == 0 {
				t.Errorf("%s cannot fail at %s", name, step.say)
			}
		}
	}
}

// TestReadFaultsAreNoDamage: what cannot be read is an error whatever the
// policy, and never a loss of data to go on after.
func TestReadFaultsAreNoDamage(t *testing.T) {
	in := writeTar(t, "in.tar", 30)
	st := func() store.Store {
		return faultstore.New(&store.Local{}, faultstore.Fault{Op: faultstore.Read, After: 20000, Err: syscall.EIO})
	}
	dir := t.TempDir()
	o := shard.Options{Store: st()}
	o.Read.OnError = format.Resync
	if _, err := shard.Convert(t.Context(), []string{in}, dir+"/out.tar", &shard.ConvertOptions{Options: o}); !errors.Is(err, format.ErrIO) || format.AsError(err).Shard != in {
		t.Errorf("convert: %v", err)
	}
	o.Store = st()
	if _, err := shard.Repair(t.Context(), in, dir+"/out.tar", &shard.RepairOptions{Options: o}); !errors.Is(err, format.ErrIO) {
		t.Errorf("repair: %v", err)
	}
	o.Store = st()
	err := shard.Verify(t.Context(), []string{in}, &shard.VerifyOptions{Options: o}, func(v *shard.Verification) error {
		if n := len(v.Errors); n == 0 || !errors.Is(v.Errors[n-1], format.ErrIO) || v.ErrorsTotal != 1 {
			t.Errorf("verify: %v", v.Errors)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestOutputIsWhatItsNameSays writes compressed outputs and reads their first
// bytes.
func TestOutputIsWhatItsNameSays(t *testing.T) {
	in := writeTar(t, "in.tar", 3)
	want := contents(t, in)
	for name, kind := range map[string]compress.Kind{
		"a.tar": compress.None, "a.tar.gz": compress.Gzip, "a.tgz": compress.Gzip, "a.tar.zst": compress.Zstd, "a.tar.zz": compress.Zlib,
	} {
		out := filepath.Join(t.TempDir(), name)
		convert(t, []string{in}, out, nil)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if got := compress.Sniff(data); got != kind || strings.Join(contents(t, out), "\n") != strings.Join(want, "\n") {
			t.Errorf("%s is %v, want %v", name, got, kind)
		}
	}
}
