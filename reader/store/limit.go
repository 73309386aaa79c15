package store

import (
	"context"
	"io"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"shardtool/format"
)

// LimitOptions say how slow a store is made. The zero value is no limit.
type LimitOptions struct {
	BytesPerSecond int64         // of all reads of the store together; 0: any number
	Latency        time.Duration // before each request is answered: Open, Stat, ReadAt, the start of a Stream, List and Glob
}

// ParseLimit reads what commands take, as in "50MB/s,20ms": a rate in B, KB, MB,
// GB (powers of 1000) or KiB, MiB, GiB (of 1024) a second, a latency, or both.
func ParseLimit(s string) (LimitOptions, error) {
	var o LimitOptions
	for word := range strings.SplitSeq(s, ",") {
		word = strings.TrimSpace(word)
		ok := false
		if rate, isRate := strings.CutSuffix(word, "/s"); isRate && o.BytesPerSecond == 0 {
			o.BytesPerSecond, ok = parseBytes(rate)
		} else if d, err := time.ParseDuration(word); err == nil && d > 0 && o.Latency == 0 {
			o.Latency, ok = d, true
		}
		if !ok {
			return LimitOptions{}, format.Errorf(format.ErrUsage, format.Nowhere, "the limit %q is not a rate, a latency or both, as in 50MB/s,20ms", s)
		}
	}
	return o, nil
}

var byteUnits = map[string]float64{
	"B": 1, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// parseBytes reads a positive number with a unit.
func parseBytes(s string) (int64, bool) {
	digits := strings.TrimRight(s, "BKkMGi ")
	unit, ok := byteUnits[strings.TrimSpace(s[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if n *= unit; !ok || err != nil || !(n >= 1 && n < 1<<62) {
		return 0, false
	}
	return int64(n), true
}

// Limit returns a store that reads as st does, but no faster than o says, to
// play a slow disk or network. The bytes of all readers pass one after the other
// in pieces of at most 64 KiB, so that readers get equal shares, and each
// piece arrives when all of it has passed. Latencies of several requests run at
// the same time. Opening what an entry describes costs no request and has no
// latency. Writing is not limited.
func Limit(st Store, o LimitOptions) Store {
	return &limitStore{wrapped: wrapped{st}, latency: o.Latency, pace: pace{rate: uint64(max(o.BytesPerSecond, 0))}}
}

// Slow reports whether to read an object again costs more than to read it from a
// local disk: it lies behind a network or a Limit, and no Cache is in between.
func Slow(st Store, name string) bool {
	for {
		switch st.(type) {
		case *limitStore:
			return true
		case *Cache:
			return false
		}
		d, ok := st.(interface{ below() Store })
		if !ok {
			return IsAddress(name)
		}
		st = d.below()
	}
}

type limitStore struct {
	wrapped
	latency time.Duration
	pace    pace
}

func (s *limitStore) Open(ctx context.Context, name string) (Object, error) {
	if err := sleep(ctx, s.latency); err != nil {
		return nil, err
	}
	return s.limit(s.Store.Open(ctx, name))
}

func (s *limitStore) OpenEntry(ctx context.Context, e Entry) (Object, error) {
	return s.limit(OpenEntry(ctx, s.Store, e))
}

func (s *limitStore) limit(o Object, err error) (Object, error) {
	if err != nil {
		return nil, err
	}
	return limitObject{o, s}, nil
}

func (s *limitStore) Stat(ctx context.Context, name string) (Entry, error) {
	if err := sleep(ctx, s.latency); err != nil {
		return Entry{}, err
	}
	return s.wrapped.Stat(ctx, name)
}

func (s *limitStore) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := sleep(ctx, s.latency); err != nil {
			yield(Entry{}, err)
			return
		}
		s.Store.List(ctx, prefix)(yield)
	}
}

func (s *limitStore) Glob(ctx context.Context, pattern string) ([]string, error) {
	if err := sleep(ctx, s.latency); err != nil {
		return nil, err
	}
	return s.wrapped.Glob(ctx, pattern)
}

type limitObject struct {
	Object
	s *limitStore
}

// Gap is what passes during the latency of a request, within bounds.
func (o limitObject) Gap() int64 {
	gap := Gap(o.Object)
	return max(gap, min(int64(o.s.latency.Seconds()*float64(o.s.pace.rate)), 8<<20))
}

func (o limitObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := sleep(ctx, o.s.latency); err != nil {
		return 0, err
	}
	n, err := o.Object.ReadAt(ctx, p, off)
	for left := n; left > 0; left -= min(left, limitPiece) {
		if err := o.s.pace.pass(ctx, min(left, limitPiece)); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (o limitObject) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if err := sleep(ctx, o.s.latency); err != nil {
		return nil, err
	}
	r, err := Stream(ctx, o.Object, off)
	if err != nil {
		return nil, err
	}
	return &limitReader{r, ctx, &o.s.pace}, nil
}

type limitReader struct {
	io.ReadCloser
	ctx  context.Context
	pace *pace
}

func (r *limitReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p[:min(len(p), limitPiece)])
	if n > 0 {
		if err := r.pace.pass(r.ctx, n); err != nil {
			return 0, err
		}
	}
	return n, err
}

// limitPiece is how many bytes pass at a time.
const limitPiece = 64 << 10

// pace lets bytes pass at a rate. It counts from a start, so that timers that
// fire late and rounding do not add up.
type pace struct {
	rate uint64 // bytes a second; 0: any number

	mu    sync.Mutex
	start time.Time
	bytes uint64 // since start
}

// lag is how much of the time in which nothing passed can be made up for: as
// much as timers and a reader's own work are late by.
const lag = 5 * time.Millisecond

// pass waits until n bytes have passed.
func (p *pace) pass(ctx context.Context, n int) error {
	if p.rate == 0 {
		return nil
	}
	now := time.Now()
	p.mu.Lock()
	switch {
	case p.start.IsZero():
		p.start = now
	case now.Sub(p.passed()) > lag:
		p.start, p.bytes = now.Add(-lag), 0
	}
	p.bytes += uint64(n)
	due := p.passed()
	p.mu.Unlock()
	return sleep(ctx, due.Sub(now))
}

// passed returns when all bytes so far have passed.
func (p *pace) passed() time.Time {
	hi, lo := bits.Mul64(p.bytes, uint64(time.Second))
	ns, _ := bits.Div64(hi, lo, p.rate)
	return p.start.Add(time.Duration(ns))
}

// sleep waits for d, or returns early with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
