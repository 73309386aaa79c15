package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"shardtool/device"
	"shardtool/loader"
	"shardtool/tensor"
)

// strict is a device that notes what is done in the wrong order: a batch is put
// of memory that it knows, waited for, stepped on, and released when the step
// behind it has been entered.
type strict struct {
	known    map[*byte]int
	released int
	put      int
	steps    int
	wrong    []string
	fail     string // what fails at the third batch
}

func (s *strict) Register(mem []byte) error {
	if err := s.failing("register"); err != nil {
		return err
	}
	s.known[&mem[0]]++
	return nil
}

func (s *strict) Unregister(mem []byte) error {
	if s.known[&mem[0]] == 0 || s.released != s.put {
		s.wrong = append(s.wrong, "unregistered what is not known, or used")
	}
	s.known[&mem[0]]--
	return nil
}

func (s *strict) failing(what string) error {
	if s.fail == what && s.put >= 3 {
		return errFailed
	}
	return nil
}

var errFailed = errors.New("as it was told to")

func (s *strict) Put(_ context.Context, arrays []tensor.Dense) (device.Buffer, error) {
	for _, a := range arrays {
		if s.known[&a.Bytes()[0]] == 0 {
			s.wrong = append(s.wrong, "put of memory that is not known")
		}
	}
	if err := s.failing("put"); err != nil {
		return nil, err
	}
	s.put++
	return &strictBuffer{device: s}, nil
}

func (s *strict) Step(_ context.Context, b device.Buffer) error {
	if buf := b.(*strictBuffer); !buf.waited || buf.released || s.put-s.released > 2 {
		s.wrong = append(s.wrong, "step on what is not there")
	}
	if err := s.failing("step"); err != nil {
		return err
	}
	s.steps++
	time.Sleep(10 * time.Millisecond)
	return nil
}

func (s *strict) Close() error { return nil }

type strictBuffer struct {
	device           *strict
	waited, released bool
}

func (b *strictBuffer) Wait(context.Context) error {
	b.waited = true
	return b.device.failing("wait")
}

func (b *strictBuffer) Release() {
	if b.released {
		b.device.wrong = append(b.device.wrong, "released twice")
	}
	b.released = true
	b.device.released++
}

func TestDevice(t *testing.T) {
	for _, fail := range []string{"", "register", "put", "wait", "step"} {
		synctest.Test(t, func(t *testing.T) {
			d := &strict{known: map[*byte]int{}, fail: fail}
			r, err := Run(t.Context(), &Options{
				Load: loader.Options{GlobalBatch: 4, Workers: 2}, Device: d, DeviceName: "strict",
				Duration: time.Second, Warmup: 100 * time.Millisecond, Sweep: []float64{1, 2},
			})
			switch {
			case fail == "register": // it may never be met: memory is used again
			case fail != "" && (r != nil || !errors.Is(err, errFailed)):
				t.Errorf("%s: %v, %v", fail, r, err)
			case fail == "" && (err != nil || r.Config.Device != "strict" || len(r.Sweep) != 2 || r.Law.Step < 0.002 || r.Law.Step > 0.003):
				t.Errorf("%+v, %v", r, err)
			}
			if len(d.wrong) > 0 || d.put == 0 || d.released != d.put || slices.ContainsFunc(values(d.known), func(n int) bool { return n != 0 }) {
				t.Errorf("%s: %v; %d put, %d released, known %v", fail, d.wrong, d.put, d.released, d.known)
			}
		})
	}
}

func values(m map[*byte]int) []int {
	var v []int
	for _, n := range m {
		v = append(v, n)
	}
	return v
}
