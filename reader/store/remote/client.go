package remote

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"shardtool/format"
	"shardtool/reader/store"
)

// Options of a Client. The zero value and nil are the defaults.
type Options struct {
	Connections int           // requests in flight at a time, of the whole client; default 64
	Range       int64         // bytes of one request of a sequential read, up to four times as many where answers take long to begin; default 8 MiB
	ReadAhead   int64         // bytes held for sequential reads ahead of their readers, of the whole client; default 256 MiB
	Stall       time.Duration // a request with no byte for so long is cut and resumed; default 60 s
	Attempts    int           // tries in a row without one byte of progress before giving up; default 8
	Seed        uint64        // of the waits between tries; 0: random
	Log         *slog.Logger  // told of retries, cuts and throttling; nil: nobody is
}

// The floors of options. A range is never shrunk below minRange, which is also
// what a reader with nothing to read gets when ReadAhead is used up.
const (
	minRange = 1 << 20
	mib      = 1 << 20
)

func (o *Options) orDefault() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Connections <= 0 {
		d.Connections = 64
	}
	if d.Range <= 0 {
		d.Range = 8 * mib
	}
	if d.ReadAhead <= 0 {
		d.ReadAhead = 256 * mib
	}
	if d.Stall <= 0 {
		d.Stall = time.Minute
	}
	if d.Attempts <= 0 {
		d.Attempts = 8
	}
	if d.Seed == 0 {
		d.Seed = rand.Uint64()
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	return d
}

// Client is one budget of connections, memory and patience that the objects
// opened by it share. It is safe for use by several goroutines, holds no
// goroutine and no file of its own, and needs no closing.
type Client struct {
	o       Options
	gate    *gate
	pace    pace
	held    atomic.Int64 // bytes of ReadAhead that are spoken for
	streams atomic.Int64 // sequential reads that are open

	requests, retries, bytes, throttled atomic.Int64

	mu     sync.Mutex
	jitter *rand.Rand
}

// NewClient returns a client. A process is meant to have one, for its
// connections are one budget; o may be nil.
func NewClient(o *Options) *Client {
	c := &Client{o: o.orDefault()}
	c.gate = newGate(c.o.Connections)
	c.jitter = rand.New(rand.NewPCG(c.o.Seed, 0x5bd1e995))
	return c
}

// Stats is what a client has done so far and holds now.
type Stats struct {
	Requests  int64 // sent, with those that failed
	Retries   int64 // of Requests, those that repeat or resume another
	Throttled int64 // answers 503 and 429
	Bytes     int64 // received of objects
	Ceiling   int   // requests that may be in flight now; less than Connections after throttling
	InFlight  int   // requests in flight now
	Held      int64 // bytes of read-ahead held or asked for now
}

// Stats returns a snapshot.
func (c *Client) Stats() Stats {
	ceiling, active := c.gate.state()
	return Stats{
		Requests: c.requests.Load(), Retries: c.retries.Load(), Throttled: c.throttled.Load(), Bytes: c.bytes.Load(),
		Ceiling: ceiling, InFlight: active, Held: c.held.Load(),
	}
}

// Memory returns the bytes that read-ahead may hold: ReadAhead, and a small
// range for each connection, which readers that have nothing to read get beyond
// it. More than so many streams that are read in turns, and each left in the
// middle of such a range, hold one each.
func (c *Client) Memory() int64 { return c.o.ReadAhead + int64(c.o.Connections)*minRange }

// Connections returns how many requests may be in flight at a time, for which a
// transport should keep idle connections.
func (c *Client) Connections() int { return c.o.Connections }

// Do makes a small request (for metadata, a page of a list, a part of an
// upload) under the budget of connections and with the retries of the client:
// f is called until it succeeds, fails for good, or has failed Attempts times.
// What errors mean is said at Getter; the one returned names name, redacted.
//
// A call of f is cut when it takes longer than Stall, counted from its start or
// from the last call of Alive with its context.
func (c *Client) Do(ctx context.Context, name string, f func(ctx context.Context) error) error {
	t := tries{c: c, name: Redact(name)}
	for {
		err := c.do(ctx, f)
		if err == nil {
			return nil
		}
		if err := t.again(ctx, err, format.Unknown, false); err != nil {
			return err
		}
	}
}

func (c *Client) do(ctx context.Context, f func(ctx context.Context) error) (err error) {
	p, err := c.gate.enter(ctx, nil)
	if err != nil {
		return err
	}
	ctx, w := newWatch(ctx, c.o.Stall)
	defer func() {
		w.end()
		c.leave(p, err)
	}()
	c.requests.Add(1)
	return w.cause(ctx, f(ctx))
}

// Open makes an object of a getter. name is what errors and logs call it,
// after Redact; e is what Stat returns. An e.Version that is not "" is asked
// for from the first request on.
func (c *Client) Open(name string, e store.Entry, g Getter) store.Object {
	o := &object{c: c, name: Redact(name), entry: e, g: g, version: e.Version, size: e.Size}
	if a, ok := g.(Abouter); ok {
		about := a.About()
		o.inOrder, o.checksum = about.InOrder, about.Checksum
	}
	return o
}
