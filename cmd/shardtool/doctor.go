package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

func doctorCommand() *cli.Command {
	return verb{
		Name:  "doctor",
		Args:  "URL",
		Usage: "check how well shards can be read from where they are, and say what to do",
		About: `URL is an object, a prefix such as s3://bucket/train/, a pattern, or a path of this
machine. Of what is remote it checks, step by step: name, connection and proxy;
this machine's clock; credentials and region; the shards and their sizes; that
ranges and If-Match are honoured; what checksums there are; the time to the first
byte; the bandwidth by the number of connections. Of a local path: access, and
the rate at which it is read. What is read is thrown away: at most --bytes, and
--duration for each number of connections. No secret is printed.

Each line is ok, warn or FAIL, the check and what was found, then what to do.
Exit codes: 3 where nothing can be reached or access is denied, 1 where ranges or
If-Match do not hold, else 0.`,
		Examples: []string{
			"shardtool doctor s3://bucket/train/",
			"shardtool doctor --endpoint-url http://minio:9000 --connections 64 's3://bucket/train-{000..127}.tar'",
			"shardtool doctor --json /data/train-000000.tar",
		},
		Flags: [][]cli.Flag{{
			&cli.DurationFlag{Name: "duration", Usage: "of the measurement of each number of connections", Value: 2 * time.Second},
			&cli.StringFlag{Name: "bytes", Usage: "read no more than `SIZE` to measure", Value: "2GB"},
		}},
		Run: runDoctor,
	}.command()
}

// Statuses of a check.
const (
	fine = "ok"
	warn = "warn"
	fail = "FAIL"
)

type doctorRow struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
	Class  string `json:"class,omitempty"` // of the error behind a FAIL

	// Of bandwidth, and of advice.
	Connections int     `json:"connections,omitempty"`
	MBPerS      float64 `json:"mb_per_s,omitempty"`
	SamplesPerS float64 `json:"samples_per_s,omitempty"`
}

// doctor is one run of the verb.
type doctor struct {
	c        *call
	pattern  string
	duration time.Duration
	bytes    int64
}

func runDoctor(c *call) error {
	if c.NArg() != 1 {
		return usageError("one path or address; shardtool %s %s", c.Command.Name, c.Command.ArgsUsage)
	}
	d := &doctor{c: c, pattern: c.Args().First(), duration: c.Duration("duration")}
	var err error
	if d.bytes, err = parseSize("bytes", c.String("bytes")); err != nil {
		return err
	}
	if d.duration <= 0 {
		return usageError("--duration %v: more than nothing", d.duration)
	}
	if isRemote(d.pattern) {
		err = newRemoteDoctor(d).run(c.Context.Context)
	} else {
		err = d.local(c.Context.Context)
	}
	if err != nil {
		return err
	}
	return d.cache()
}

// say prints what a check found.
func (d *doctor) say(r doctorRow) error {
	if d.c.JSON() {
		return d.c.Row(r)
	}
	hint := ""
	if r.Hint != "" {
		hint = "; " + r.Hint
	}
	return d.c.Printf("%-4s  %-11s  %s%s\n", r.Status, r.Check, visible(r.Detail), hint)
}

func (d *doctor) ok(check, detail string, args ...any) error {
	return d.say(doctorRow{Check: check, Status: fine, Detail: fmt.Sprintf(detail, args...)})
}

func (d *doctor) warn(check, hint, detail string, args ...any) error {
	return d.say(doctorRow{Check: check, Status: warn, Detail: fmt.Sprintf(detail, args...), Hint: hint})
}

// fail prints a check that failed by an error, which counts for the exit code.
// An error of the context ends the run instead.
func (d *doctor) fail(check, hint string, err error) error {
	if e := d.c.Context.Context.Err(); e != nil {
		return e
	}
	d.c.Mark(err)
	return d.say(doctorRow{Check: check, Status: fail, Detail: err.Error(), Hint: hint, Class: format.Class(err)})
}

// shards says how many shards there are and how large; more says that there are
// more than were looked at.
func (d *doctor) shards(found []store.Entry, others int, more, network bool) error {
	sizes := make([]int64, 0, len(found))
	var total int64
	for _, e := range found {
		if e.Size >= 0 {
			sizes = append(sizes, e.Size)
			total += e.Size
		}
	}
	slices.Sort(sizes)
	text := counted(len(found), "shard")
	if more {
		text = "at least " + text
	}
	if n := len(sizes); n == 1 {
		text += ", " + sizeText(total)
	} else if n > 1 {
		text += fmt.Sprintf(", %s: %s to %s each", sizeText(total), sizeText(sizes[0]), sizeText(sizes[n-1]))
	}
	if others > 0 {
		text += fmt.Sprintf("; %s besides", counted(others, "object"))
	}
	if n := len(sizes); network && n > 1 && sizes[n/2] < smallShard {
		return d.warn("shards", "small shards cost requests more than bytes: make larger ones, shardtool convert --size 256MB", "%s", text)
	}
	return d.ok("shards", "%s", text)
}

// smallShard is where the time to the first byte, some 20 ms, begins to count
// beside the bytes of a connection of 100 MB/s.
const smallShard = 4 << 20

// sizeText writes a number of bytes as people do.
func sizeText(n int64) string {
	for _, u := range []struct {
		bytes float64
		unit  string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
		if v := float64(n) / u.bytes; v >= 1 {
			return fmt.Sprintf("%.4g %s", v, u.unit)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// sampleSize is the mean size of the first samples of a shard, in stored bytes;
// 0 where that cannot be told.
func sampleSize(ctx context.Context, st store.Store, name string) (float64, error) {
	const samples, bytes = 256, 8 << 20
	s, err := reader.OpenShard(ctx, st, name, &reader.Options{Type: reader.Raw})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	n := 0
	for n < samples && s.End() < bytes {
		if _, err := s.Next(); err != nil {
			break // verify is for faults
		}
		n++
	}
	if n == 0 || s.Compression() != 0 {
		return 0, nil
	}
	return float64(s.End()) / float64(n), nil
}

// advise says what a rate means for training, by the mean size of the samples
// that some shard begins with.
func (d *doctor) advise(text string, connections int, rate, sample float64, shard, hint string) error {
	r := doctorRow{Check: "advice", Status: fine, Detail: text, Hint: hint, Connections: connections, MBPerS: rounded(rate)}
	if sample > 0 {
		r.SamplesPerS = rounded(rate * 1e6 / sample)
		r.Detail += fmt.Sprintf("; about %.0f samples/s of %s, the mean of the %s shard", r.SamplesPerS, sizeText(int64(sample)), shard)
	}
	return d.say(r)
}

func rounded(x float64) float64 { return float64(int64(x*100+0.5)) / 100 }

// cache looks at the folder that --cache names.
func (d *doctor) cache() error {
	dir := d.c.String("cache")
	if dir == "" {
		return nil
	}
	size, err := parseSize("cache-size", d.c.String("cache-size"))
	if err != nil {
		return err
	}
	free, at, ok := freeSpace(dir)
	switch {
	case !ok:
		return d.warn("cache", "", "%s: how much room there is cannot be told", shown(dir))
	case free < size:
		return d.warn("cache", "give a smaller --cache-size, or another folder",
			"%s has %s free, and the cache may grow to %s", shown(at), sizeText(free), sizeText(size))
	}
	return d.ok("cache", "%s has %s free for a cache of %s", shown(at), sizeText(free), sizeText(size))
}
