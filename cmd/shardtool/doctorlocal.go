package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"shardtool/format"
	"shardtool/reader/store"
)

// local checks a path of this machine.
func (d *doctor) local(ctx context.Context) error {
	if d.pattern == "-" {
		return usageError("standard input cannot be checked without using it up")
	}
	names, err := store.Expand(ctx, d.c.Store, d.pattern)
	if err != nil {
		if format.Class(err) == format.ErrUsage.Error() {
			return err
		}
		return d.fail("shards", "", err)
	}
	var found []store.Entry
	var largest store.Entry
	for _, name := range names {
		e, err := store.Stat(ctx, d.c.Store, name)
		if err != nil {
			return d.fail("shards", hintOf(err), err)
		}
		found = append(found, e)
		if e.Size > largest.Size || largest.Name == "" {
			largest = e
		}
	}
	if err := d.shards(found, 0, false, false); err != nil {
		return err
	}
	if largest.Size <= 0 {
		return d.warn("read", "", "%s is empty or no regular file: nothing to measure", shown(largest.Name))
	}
	return d.read(ctx, largest)
}

// read measures how fast a file is read in order.
func (d *doctor) read(ctx context.Context, e store.Entry) error {
	cold := makeCold(strings.TrimPrefix(e.Name, "file://"))
	limited, cancel := context.WithTimeout(ctx, d.duration)
	defer cancel()
	begun := time.Now()
	n, err := d.drain(limited, e.Name)
	took := time.Since(begun)
	if err != nil && limited.Err() == nil {
		return d.fail("read", hintOf(err), err)
	}
	rate := float64(n) / 1e6 / took.Seconds()
	how := "in order"
	if cold {
		how = "in order, after the system was asked to forget it"
	}
	if err := d.ok("read", "%s of %s %s: %.0f MB/s", sizeText(n), shown(e.Name), how, rate); err != nil {
		return err
	}
	sample, err := sampleSize(ctx, d.c.Store, e.Name)
	if err != nil {
		return d.fail("samples", "shardtool verify says more", err)
	}
	if sample == 0 {
		return nil
	}
	return d.advise("one reader", 1, rate, sample, "largest", "")
}

func (d *doctor) drain(ctx context.Context, name string) (int64, error) {
	r, err := store.OpenStream(ctx, d.c.Store, name)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(r, d.bytes), make([]byte, 1<<20))
	return n, errors.Join(err, r.Close())
}

// hintOf says what to do about an error of reading.
func hintOf(err error) string {
	switch {
	case errors.Is(err, format.ErrNotFound):
		return "check the spelling; names are exact"
	case errors.Is(err, format.ErrDenied):
		return "this user or these credentials may not read it"
	}
	return ""
}
