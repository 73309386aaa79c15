package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"shardtool/format"
)

const (
	firstBound    = 100 * time.Millisecond // of the wait after the first failure
	lastBound     = 20 * time.Second
	retryAfterCap = 5 * time.Minute
	unknownHost   = 3 // tries for a host that name servers do not know: a typo, mostly
)

// bound returns the upper bound of the wait after n failures in a row.
func bound(n int) time.Duration {
	b := firstBound
	for ; n > 1 && b < lastBound; n-- {
		b *= 2
	}
	return min(b, lastBound)
}

// tries counts the failures of one thing that is tried again and again.
type tries struct {
	c    *Client
	name string // redacted
	n    int    // failures in a row without progress
}

// again takes the failure of a try, which had reached offset off, and waits
// until the next one is due. It returns an error if there is to be none.
func (t *tries) again(ctx context.Context, err error, off int64, progress bool) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	at := format.Location{Shard: t.name, Offset: off, Record: format.Unknown}
	err = plain(err)
	if e := format.AsError(err); e != nil {
		return format.ReadError(e, at)
	}
	if progress {
		t.n = 0
	} else {
		t.n++
	}
	most, sentinel := t.c.judge(err)
	switch {
	case most == 0:
		return format.Errorf(sentinel, at, "%w", err)
	case t.n >= most:
		return format.Errorf(sentinel, at, "gave up after %d tries without progress, the last: %w", t.n, err)
	}
	return t.wait(ctx, err, off)
}

// judge returns how many failures like this one in a row are borne, none where
// another try cannot do better, and the class of what is reported then.
func (c *Client) judge(err error) (most int, sentinel error) {
	var status *StatusError
	var host *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &status):
		if status.retry() {
			return c.o.Attempts, format.ErrIO
		}
		if status.Code == http.StatusRequestedRangeNotSatisfiable && status.Err == nil {
			return 0, format.ErrTruncated // what was listed goes further
		}
		return 0, status.sentinel()
	case errors.As(err, &host) && host.IsNotFound:
		return min(c.o.Attempts, unknownHost), format.ErrIO
	case errors.As(err, &cert), errors.As(err, &record):
		return 0, format.ErrIO
	case errors.As(err, new(shortError)):
		return c.o.Attempts, format.ErrTruncated
	default:
		return c.o.Attempts, format.ErrIO
	}
}

func (t *tries) wait(ctx context.Context, err error, off int64) error {
	limit := bound(t.n)
	d := t.c.draw(limit)
	var status *StatusError
	if errors.As(err, &status) {
		d += min(status.RetryAfter, retryAfterCap) // the draw keeps those apart that were all told the same
	}
	t.c.retries.Add(1)
	t.c.o.Log.LogAttrs(ctx, slog.LevelInfo, "request failed and is tried again",
		slog.String("object", t.name), slog.Int64("offset", off), slog.Int("failures", t.n),
		slog.Duration("wait", d), slog.String("error", err.Error()))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// draw returns a random time up to limit ("full jitter": those that failed
// together do not come back together).
func (c *Client) draw(limit time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.jitter.Int64N(int64(limit))) + 1
}

// leave gives a pass back and counts what the answer says about load.
func (c *Client) leave(p pass, err error) {
	o := good
	var status *StatusError
	switch {
	case errors.As(err, &status) && status.throttled():
		o = throttled
		c.throttled.Add(1)
	case err != nil && err != errWhole:
		o = neutral
	}
	if c.gate.leave(p, o) {
		ceiling, _ := c.gate.state()
		c.o.Log.Warn("the server asks for fewer requests", slog.Int("at a time", ceiling))
	}
}

// shortError is an answer that ended cleanly before its last byte.
type shortError struct{ got, want int64 }

func (e shortError) Error() string {
	return fmt.Sprintf("the answer ended at byte %d of %d", e.got, e.want)
}

// RetryAfter returns the wait that an answer asks for, by seconds or by a date
// (RFC 9110, section 10.2.3), or 0.
func RetryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if date, err := http.ParseTime(v); err == nil {
		return max(time.Until(date), 0)
	}
	return 0
}
