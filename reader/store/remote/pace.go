package remote

import (
	"sync/atomic"
	"time"
)

// maxGrowth is how many times Options.Range a range may have.
const maxGrowth = 4

// pace is how many times Options.Range a range should have. While a server
// makes up its mind a connection moves nothing, and only larger ranges make
// that a smaller part of its time: over four connections of 50 MB/s that answer
// after 20 ms, ranges of 8, 16 and 32 MiB reach 0.89, 0.94 and 0.97 of what the
// connections can (TestPace). Where answers begin at once, small ranges serve
// as well and hold less.
type pace struct{ growth atomic.Int64 }

// times returns the factor.
func (p *pace) times() int64 { return max(p.growth.Load(), 1) }

// learn takes how long a request waited for its answer, and then for its last
// byte.
func (p *pace) learn(wait, rest time.Duration) {
	now := p.times()
	switch {
	case wait > (wait+rest)/24:
		p.growth.Store(min(2*now, maxGrowth))
	case wait < (wait+rest)/96:
		p.growth.Store(max(now/2, 1))
	}
}
