package cuda

import (
	"errors"
	"os"
	"slices"
	"sync"
)

// pinned is the memory of the host that is pinned, for all devices of a driver:
// ranges of whole pages, apart from each other.
type pinned struct {
	mu     sync.Mutex
	ranges []*pinnedRange // in order
}

// pinnedRange is what was pinned at once.
type pinnedRange struct {
	lo, hi uintptr
	mem    []byte  // keeps it reachable
	device int32   // by which it was pinned,
	ctx    uintptr // in whose context, which it holds: unpinning needs it
	users  map[*Device]struct{}
	auto   bool // pinned by Put, not by Register
}

// piece is a part of some memory, all of it pinned or none.
type piece struct {
	off, n int
	pinned bool
}

// join pins the whole pages of mem that are not pinned yet, and makes d a user
// of them all. Its error is why some are not.
func (p *pinned) join(d *Device, mem []byte, auto bool) error {
	page := uintptr(os.Getpagesize())
	lo := (address(mem) + page - 1) &^ (page - 1)
	hi := (address(mem) + uintptr(len(mem))) &^ (page - 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.from(lo)
	for lo < hi {
		end := hi
		if i < len(p.ranges) {
			if r := p.ranges[i]; r.lo <= lo {
				r.users[d] = struct{}{}
				r.auto = r.auto && auto
				lo = r.hi
				i++
				continue
			}
			end = min(end, p.ranges[i].lo)
		}
		r, err := pin(d, mem, lo, end)
		if err != nil {
			return err
		}
		r.auto = auto
		p.ranges = slices.Insert(p.ranges, i, r)
	}
	return nil
}

// used returns how many bytes are pinned that d uses, and how many of these by
// Put.
func (p *pinned) used(d *Device) (all, auto int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.ranges {
		if _, used := r.users[d]; used {
			all += int64(r.hi - r.lo)
			if r.auto {
				auto += int64(r.hi - r.lo)
			}
		}
	}
	return all, auto
}

// from returns the place of the first range that ends behind an address.
func (p *pinned) from(at uintptr) int {
	i, _ := slices.BinarySearchFunc(p.ranges, at, func(r *pinnedRange, at uintptr) int {
		if r.hi <= at {
			return -1
		}
		return 1
	})
	return i
}

// pin pins pages of mem. What another has pinned that we know nothing of is an
// error here, and is copied from as it is.
func pin(d *Device, mem []byte, lo, hi uintptr) (*pinnedRange, error) {
	ctx, err := d.drv.retain(d.handle)
	if err != nil {
		return nil, err
	}
	if err := d.drv.do(cuMemHostRegister, lo, hi-lo, registerPortable); err != nil {
		return nil, errors.Join(err, d.drv.do(cuDevicePrimaryCtxRelease, uintptr(d.handle)))
	}
	return &pinnedRange{lo: lo, hi: hi, mem: mem, device: d.handle, ctx: ctx, users: map[*Device]struct{}{d: {}}}, nil
}

// split appends to pieces the parts of mem that are pinned and that are not.
// d, which is about to copy them, becomes a user of the former.
func (p *pinned) split(d *Device, mem []byte, pieces []piece) []piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	base := address(mem)
	off := 0
	for i := p.from(base); i < len(p.ranges) && off < len(mem); i++ {
		r := p.ranges[i]
		if r.lo >= base+uintptr(len(mem)) {
			break
		}
		r.users[d] = struct{}{}
		if r.lo > base+uintptr(off) {
			n := int(r.lo-base) - off
			pieces = append(pieces, piece{off, n, false})
			off += n
		}
		n := int(min(r.hi-base, uintptr(len(mem)))) - off
		pieces = append(pieces, piece{off, n, true})
		off += n
	}
	if off < len(mem) {
		pieces = append(pieces, piece{off, len(mem) - off, false})
	}
	return pieces
}

// leave makes d, which copies nothing now, a user of no range that lies within
// two addresses; what has no user then is unpinned. It is called with a context
// of d, and leaves another.
func (p *pinned) leave(d *Device, from, to uintptr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	p.ranges = slices.DeleteFunc(p.ranges, func(r *pinnedRange) bool {
		if _, used := r.users[d]; !used || r.lo < from || r.hi > to {
			return false
		}
		if delete(r.users, d); len(r.users) > 0 {
			return false
		}
		errs = append(errs,
			d.drv.do(cuCtxSetCurrent, r.ctx),
			d.drv.do(cuMemHostUnregister, r.lo),
			d.drv.do(cuDevicePrimaryCtxRelease, uintptr(r.device)))
		return true
	})
	return errors.Join(errs...)
}
