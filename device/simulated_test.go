package device_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"shardtool/device"
)

const ms = time.Millisecond

// put puts a batch of n bytes.
func put(t *testing.T, d device.Device, n int) device.Buffer {
	t.Helper()
	b, err := d.Put(t.Context(), batch(n))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wait(t *testing.T, b device.Buffer) {
	t.Helper()
	if err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func step(t *testing.T, d device.Stepper, b device.Buffer) {
	t.Helper()
	if err := d.Step(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// at checks how much time has passed in the bubble.
func at(t *testing.T, begin time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(begin); got != want {
		t.Errorf("%v have passed, want %v", got, want)
	}
}

func checkStats(t *testing.T, s *device.Simulated, want device.SimulatedStats) {
	t.Helper()
	if got := s.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

func TestZeroSimulatedTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var s device.Simulated
		for range 3 {
			b := put(t, &s, 1000)
			wait(t, b)
			step(t, &s, b)
			b.Release()
		}
		checkStats(t, &s, device.SimulatedStats{Steps: 3, Bytes: 3000})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		at(t, begin, 0)
	})
}

// Copies run one after the other: 1000 bytes at 100 kB/s take 10 ms.
func TestSimulatedCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{BytesPerSecond: 100e3}
		a, b := put(t, s, 1000), put(t, s, 2000)
		at(t, begin, 0)
		wait(t, a)
		at(t, begin, 10*ms)
		wait(t, b)
		at(t, begin, 30*ms)
		wait(t, a)
		time.Sleep(5 * ms)
		wait(t, put(t, s, 500)) // begins now, not when the last was due
		at(t, begin, 40*ms)
	})
}

// A step returns when the one before it has ended, so the third returns after
// two steps.
func TestSimulatedSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{StepTime: 40 * ms}
		b := put(t, s, 1)
		step(t, s, b)
		at(t, begin, 0)
		checkStats(t, s, device.SimulatedStats{Bytes: 1})
		time.Sleep(15 * ms)
		checkStats(t, s, device.SimulatedStats{Busy: 15 * ms, Bytes: 1})
		step(t, s, b)
		at(t, begin, 40*ms)
		checkStats(t, s, device.SimulatedStats{Steps: 1, Busy: 40 * ms, Bytes: 1})
		step(t, s, b)
		at(t, begin, 80*ms)
		time.Sleep(60 * ms) // the third ended at 120
		checkStats(t, s, device.SimulatedStats{Steps: 3, Busy: 120 * ms, Waited: 20 * ms, Bytes: 1})
		step(t, s, b)
		time.Sleep(10 * ms)
		checkStats(t, s, device.SimulatedStats{Steps: 3, Busy: 130 * ms, Waited: 20 * ms, Bytes: 1})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		at(t, begin, 180*ms)
	})
}

// A step begins when its batch has been copied, and that is time it waited.
func TestSimulatedStepWaitsForItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{StepTime: 10 * ms, BytesPerSecond: 1000}
		step(t, s, put(t, s, 5))  // copied at 5, ends at 15
		step(t, s, put(t, s, 30)) // copied at 35, ends at 45
		at(t, begin, 15*ms)
		checkStats(t, s, device.SimulatedStats{Steps: 1, Busy: 10 * ms, Bytes: 35})
		time.Sleep(15 * ms)
		checkStats(t, s, device.SimulatedStats{Steps: 1, Busy: 10 * ms, Waited: 15 * ms, Bytes: 35})
		time.Sleep(15 * ms)
		checkStats(t, s, device.SimulatedStats{Steps: 2, Busy: 20 * ms, Waited: 20 * ms, Bytes: 35})
	})
}

// Who wakes up late is not made to wait longer for it.
func TestSimulatedDoesNotAddUpDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{StepTime: 10 * ms, BytesPerSecond: 1000}
		for range 100 {
			b := put(t, s, 2)
			wait(t, b)
			time.Sleep(3 * ms) // as if it had overslept
			step(t, s, b)
			time.Sleep(3 * ms)
			b.Release()
		}
		// The first step begins at 5; 99 steps have ended when the last is
		// begun. No step waited, for each cycle of the host takes 8 of 10 ms.
		at(t, begin, 5*ms+99*10*ms+3*ms)
		if got := s.Stats(); got.Waited != 0 || got.Steps != 99 {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestSimulatedStepsOnForeignBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		copies := &device.Simulated{BytesPerSecond: 1000}
		steps := &device.Simulated{StepTime: 10 * ms}
		step(t, steps, put(t, copies, 7))
		at(t, begin, 7*ms)
		step(t, steps, put(t, copies, 2))
		at(t, begin, 17*ms)
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		if err := steps.Step(ctx, put(t, copies, 100)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a step on a batch that is late: %v", err)
		}
		time.Sleep(time.Second)
		if got := steps.Stats().Steps; got != 2 {
			t.Errorf("%d steps, want 2", got)
		}
	})
}

func TestSimulatedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{StepTime: 10 * ms, BytesPerSecond: 1000, Room: 2}
		a := put(t, s, 1)
		b := put(t, s, 1)
		wait(t, a)
		step(t, s, a) // from 1 to 11
		step(t, s, b) // from 11 to 21
		at(t, begin, 11*ms)

		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		if _, err := s.Put(ctx, batch(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put without room: %v", err)
		}
		at(t, begin, 12*ms)

		b.Release() // its step runs on
		b.Release()
		c := put(t, s, 1)
		at(t, begin, 21*ms)
		go func() {
			time.Sleep(5 * ms)
			a.Release() // its step has ended
		}()
		d := put(t, s, 1)
		at(t, begin, 26*ms)
		c.Release() // its copy ended at 22
		put(t, s, 1)
		at(t, begin, 26*ms)
		d.Release() // its copy ends at 27
		put(t, s, 1)
		at(t, begin, 27*ms)
	})
}

func TestSimulatedCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{StepTime: 10 * ms, BytesPerSecond: 1000}
		a := put(t, s, 20)
		ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
		defer cancel()
		if err := a.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: %v", err)
		}
		at(t, begin, 5*ms)
		if _, err := s.Put(ctx, batch(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put: %v", err)
		}
		wait(t, a) // the copy went on
		at(t, begin, 20*ms)
		step(t, s, a) // until 30
		ctx, cancel = context.WithTimeout(t.Context(), 3*ms)
		defer cancel()
		if err := s.Step(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Step: %v", err)
		}
		at(t, begin, 23*ms)
		time.Sleep(27 * ms)
		checkStats(t, s, device.SimulatedStats{Steps: 1, Busy: 10 * ms, Waited: 20 * ms, Bytes: 20})
	})
}

func TestSimulatedClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &device.Simulated{StepTime: 10 * ms, BytesPerSecond: 1000}
		a, b, c := put(t, s, 5), put(t, s, 5), put(t, s, 5)
		step(t, s, a)
		b.Release()
		if err := b.Wait(t.Context()); !errors.Is(err, device.ErrReleased) {
			t.Errorf("Wait after Release: %v", err)
		}
		if err := s.Step(t.Context(), b); !errors.Is(err, device.ErrReleased) {
			t.Errorf("Step after Release: %v", err)
		}
		time.Sleep(time.Microsecond)
		if err := s.Close(); err != nil { // the copies and the step end at 15
			t.Error(err)
		}
		at(t, begin, 15*ms)
		for _, tt := range []struct {
			name string
			err  error
		}{
			{"Wait", c.Wait(t.Context())},
			{"Step", s.Step(t.Context(), c)},
			{"Put", second(s.Put(t.Context(), batch(1)))},
		} {
			if !errors.Is(tt.err, device.ErrClosed) {
				t.Errorf("%s after Close: %v", tt.name, tt.err)
			}
		}
		c.Release()
		if err := s.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		at(t, begin, 15*ms)
	})
}

func second[T any](_ T, err error) error { return err }

// Whatever the host does and however long it takes, busy and waiting add up to
// the time since the first step, and a batch takes the longest of what is done
// for it.
func TestSimulatedAccountsForItsTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stepTime := time.Duration(rapid.IntRange(0, 20).Draw(rt, "step")) * ms
		hosts := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 20).Draw(rt, "host")
		synctest.Test(t, func(t *testing.T) {
			s := &device.Simulated{StepTime: stepTime}
			var first time.Time
			var end time.Duration // of the steps, since first; by the law of a pipeline
			for i, h := range hosts {
				time.Sleep(time.Duration(h) * ms)
				b := put(t, s, 1)
				now := time.Now()
				if i == 0 {
					first = now
				}
				step(t, s, b)
				end = max(end, now.Sub(first)) + stepTime
				b.Release()
				st := s.Stats()
				if st.Busy+st.Waited != time.Since(first) {
					t.Fatalf("%+v after %v", st, time.Since(first))
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(first); got != max(end, time.Since(first)) || stepTime > 0 && got != end {
				t.Errorf("steps ended after %v, want %v", got, end)
			}
			if st := s.Stats(); st.Steps != int64(len(hosts)) || st.Busy != time.Duration(len(hosts))*stepTime {
				t.Errorf("%+v", st)
			}
		})
	})
}

// A run that was given up is not waited for.
func TestSimulatedIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, leave := range map[string]func(s *device.Simulated, b device.Buffer, ctx context.Context) error{
			"step": func(s *device.Simulated, b device.Buffer, ctx context.Context) error { return s.Step(ctx, b) },
			"put": func(s *device.Simulated, _ device.Buffer, ctx context.Context) error {
				_, err := s.Put(ctx, nil)
				return err
			},
			"wait": func(_ *device.Simulated, b device.Buffer, ctx context.Context) error { return b.Wait(ctx) },
		} {
			s := &device.Simulated{StepTime: 10 * time.Hour}
			b, err := s.Put(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Step(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begin := time.Now()
			if err := leave(s, b, ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.Close(); err != nil || time.Since(begin) != 0 {
				t.Errorf("%s: Close took %v, %v", name, time.Since(begin), err)
			}
		}
	})
}

func TestSimulatedMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &device.Simulated{StepTime: -time.Hour}
		b, err := s.Put(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Step(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.Busy != 0 || st.Waited != 0 || st.Steps != 1 {
			t.Errorf("%+v", st)
		}
		if err := s.Step(t.Context(), nil); !errors.Is(err, device.ErrReleased) {
			t.Errorf("a step on nothing: %v", err)
		}
	})
}
