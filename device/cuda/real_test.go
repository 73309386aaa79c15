//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"shardtool/device/cuda"
	"shardtool/tensor"
)

// TestAccelerator runs on a machine with an accelerator, on its real driver:
//
//	SHARDTOOL_CUDA=1 go test -count 1 -v -run TestAccelerator ./device/cuda
//
// or, where Go is not at hand, from a test binary that was built elsewhere with
// go test -c: SHARDTOOL_CUDA=1 ./cuda.test -test.v -test.run TestAccelerator.
// SHARDTOOL_CUDA_DEVICE is the number of the device, 0 if it is not set. It
// shows the context, pinned registration, a hundred asynchronous copies compared
// byte for byte, and how fast copies are from memory pinned and not. It takes
// about a quarter of a minute, and 1 GiB of memory on either side at most.
func TestAccelerator(t *testing.T) {
	if os.Getenv("SHARDTOOL_CUDA") != "1" {
		t.Skip("it needs an accelerator: SHARDTOOL_CUDA=1 says that there is one")
	}
	n, _ := strconv.Atoi(os.Getenv("SHARDTOOL_CUDA_DEVICE"))
	count, err := cuda.Count(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := openReal(t, n, cuda.Options{})
	t.Logf("device %d of %d: %s, %d MiB, context %#x, stream %#x", n, count, d.Name(), d.Memory()>>20, d.Context(), d.Stream())
	t.Run("copies", func(t *testing.T) { hundredCopies(t, n) })
	t.Run("bandwidth", func(t *testing.T) { bandwidth(t, n) })
	t.Run("streams", func(t *testing.T) { realStreams(t, n) })
	t.Run("all devices", func(t *testing.T) {
		for n := range count {
			d := openReal(t, n, cuda.Options{})
			mem := random(1<<20, uint64(n))
			arrive(t, put(t, d, uint8s(mem)), mem)
			t.Logf("device %d: %s", n, d.Name())
		}
	})
	t.Run("errors", func(t *testing.T) {
		if _, err := cuda.Open(t.Context(), count, nil); err == nil {
			t.Errorf("there is a device %d", count)
		}
		b := put(t, d, uint8s(random(1<<10, 1)))
		arrive(t, b)
		err := b.ReleaseAfter(d.Stream())
		t.Logf("released behind the stream: %v", err)
		huge := tensor.View(tensor.Uint8, tensor.Shape{1 << 20}, random(1<<20, 2))
		full := make([]tensor.Dense, d.Memory()>>20+1024) // the same memory, more often than the device can hold
		for i := range full {
			full[i] = huge
		}
		_, err = d.Put(t.Context(), full)
		if err == nil {
			t.Error("a batch larger than the device's memory was put")
		}
		t.Logf("too large a batch: %v", err)
		arrive(t, put(t, d, huge), huge.Bytes()) // the device is of use still
	})
}

func openReal(t *testing.T, n int, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(t.Context(), n, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// random differs at every place and for every seed, so that no byte that is
// missing or misplaced goes unnoticed.
func random(n int, seed uint64) []byte {
	mem := pages(n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(mem)
	return mem
}

// hundredCopies puts batches as a loader does, from four places that are written
// over as soon as Wait returns. Two of the places are registered, one begins
// amid a page, and all take part in Put's own pinning.
func hundredCopies(t *testing.T, n int) {
	d := openReal(t, n, cuda.Options{Room: 4})
	const places, size = 4, 19 << 20 // 32 pictures of 3x224x224 float32, about
	var memory, want [places][]byte
	for i := range places {
		memory[i] = pages(size + 1000)[i*100:][:size]
	}
	for _, mem := range memory[:2] {
		if err := d.Register(mem); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("registered: %d of %d bytes, refused: %v", d.Stats().Registered, 2*size, d.Stats().Refused)
	var waiting [places]*cuda.Buffer
	got := make([]byte, size)
	compare := func(i int) {
		b := waiting[i]
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		clear(memory[i])
		if err := b.Read(t.Context(), 0, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want[i]) {
			t.Fatal("a batch differs")
		}
		b.Release()
	}
	for k := range 100 {
		i := k % places
		if k >= places {
			compare(i)
		}
		want[i] = random(size, uint64(k))
		copy(memory[i], want[i])
		waiting[i] = put(t, d, uint8s(memory[i]))
	}
	for i := range places {
		compare(i)
	}
	st := d.Stats()
	t.Logf("100 batches of %d bytes arrived as they were; %d%% of the bytes from pinned memory, %d MiB of the device's",
		size, 100*st.Pinned/st.Bytes, st.DeviceBytes>>20)
	if st.Refused != nil {
		t.Errorf("memory could not be pinned: %v", st.Refused)
	}
}

// bandwidth copies 2 GiB and more in batches of several sizes, from memory that
// is pinned and not, in turns.
func bandwidth(t *testing.T, n int) {
	for _, size := range []int{64 << 10, 1 << 20, 16 << 20, 128 << 20} {
		var rates [2][]float64 // pageable, pinned
		for range 3 {
			for k := range 2 {
				rates[k] = append(rates[k], rate(t, n, size, k == 1))
			}
		}
		t.Logf("batches of %6d KiB: pageable %.2f GB/s, pinned %.2f GB/s", size>>10, rates[0], rates[1])
	}
}

// rate returns GB/s, of 10^9 bytes.
func rate(t *testing.T, n, size int, pinned bool) float64 {
	d := openReal(t, n, cuda.Options{Room: 3, Pin: -1})
	defer d.Close()
	var memory [2][]byte
	for i := range memory {
		memory[i] = random(size, uint64(i))
		if pinned {
			if err := d.Register(memory[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	batches := min(max(8, 1<<30/size), 2000)
	var before *cuda.Buffer
	var begin time.Time
	for i := range batches + 8 { // the first eight warm up
		if i == 8 {
			if err := before.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			begin = time.Now()
		}
		b := put(t, d, uint8s(memory[i%2]))
		if before != nil {
			if err := before.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			before.Release()
		}
		before = b
	}
	if err := before.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return float64(batches) * float64(size) / time.Since(begin).Seconds() / 1e9
}

// realStreams hands blocks from the device to a second stream and back without
// the host's waiting for that.
func realStreams(t *testing.T, n int) {
	d, trainer := openReal(t, n, cuda.Options{Room: 1}), openReal(t, n, cuda.Options{})
	if d.Context() != trainer.Context() {
		t.Error("two contexts on one device")
	}
	for i := range 50 {
		mem := random(1<<20+i<<12, uint64(i))
		b := put(t, d, uint8s(mem))
		if err := b.WaitOn(trainer.Stream()); err != nil {
			t.Fatal(err)
		}
		arrive(t, b, mem)
		if err := b.ReleaseAfter(trainer.Stream()); err != nil {
			t.Fatal(err)
		}
	}
}
