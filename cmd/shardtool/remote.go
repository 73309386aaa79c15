package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/stores"
)

// remoteFlags say how s3://, http:// and https:// are reached. Every verb that
// reads or writes has them; where --profile is a flag of its own, the AWS one is
// --aws-profile alone.
func remoteFlags(own []cli.Flag) []cli.Flag {
	profile := &cli.StringFlag{Name: "profile", Aliases: []string{awsProfile}}
	if findFlag(own, "profile") != nil {
		profile = &cli.StringFlag{Name: awsProfile}
	}
	const category = "remote, of s3:// and http(s):// (AWS variables and files hold as usual)"
	profile.Category, profile.Usage = category, "of the AWS files"
	return []cli.Flag{
		&cli.StringFlag{Name: "endpoint-url", Category: category, Usage: "`URL` of an S3 server other than AWS"},
		&cli.StringFlag{Name: "region", Category: category, Usage: "of S3, where a bucket's own is not known yet"},
		profile,
		&cli.BoolFlag{Name: "no-sign-request", Category: category, Usage: "no credentials: for public buckets", DisableDefaultText: true},
		&cli.BoolFlag{Name: "request-payer", Category: category, Usage: "pay for buckets whose requester pays", DisableDefaultText: true},
		&cli.IntFlag{Name: "connections", Category: category, Usage: "no more than `N` requests at a time", DefaultText: "64"},
		&cli.DurationFlag{Name: "stall-timeout", Category: category, Usage: "resume a request for which no byte came for so long", Value: time.Minute},
		&cli.StringFlag{Name: "cache", Category: category, Usage: "keep what is read in this `FOLDER`", DefaultText: "nothing is kept"},
		&cli.StringFlag{Name: "cache-size", Category: category, Usage: "of the cache, no more than `SIZE`", Value: "10GB"},
	}
}

const awsProfile = "aws-profile"

// remoteOptions reads remoteFlags.
func remoteOptions(c *cli.Context) (*stores.Options, error) {
	o := &stores.Options{
		Endpoint:     c.String("endpoint-url"),
		Region:       c.String("region"),
		Profile:      c.String(awsProfile),
		NoSign:       c.Bool("no-sign-request"),
		RequestPayer: c.Bool("request-payer"),
		Connections:  c.Int("connections"),
		Stall:        c.Duration("stall-timeout"),
		CacheDir:     c.String("cache"),
	}
	const most = 1 << 16
	switch {
	case o.Endpoint != "" && !isWeb(o.Endpoint):
		return nil, usageError("--endpoint-url begins with http:// or https://") // what it is may hold a password
	case c.IsSet("connections") && (o.Connections < 1 || o.Connections > most):
		return nil, usageError("--connections %d: not within 1 to %d", o.Connections, most)
	case c.IsSet("stall-timeout") && o.Stall <= 0:
		return nil, usageError("--stall-timeout %v: more than nothing", o.Stall)
	case c.IsSet("cache-size") && o.CacheDir == "":
		return nil, usageError("--cache-size goes with --cache")
	}
	var err error
	if o.CacheDir != "" {
		o.CacheSize, err = parseSize("cache-size", c.String("cache-size"))
	}
	return o, err
}

// isRemote reports whether a name leads over the network.
func isRemote(name string) bool { return strings.HasPrefix(name, "s3://") || isWeb(name) }

func isWeb(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// localOnly refuses a name that is no path of this machine.
func localOnly(name, what, instead string) error {
	if store.IsAddress(name) {
		return usageError("%s: %s; %s", format.Redact(name), what, instead)
	}
	return nil
}

// openBeside opens a small file that the verb reads besides its shards, from any
// store or standard input.
func (c *call) openBeside(name string) (io.ReadCloser, error) {
	return store.OpenStream(c.Context.Context, c.Store, name)
}

// warnings says on standard error what the stores warn of, such as a server
// that asks for fewer requests.
type warnings struct {
	c     *call
	attrs []slog.Attr
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, "; %s: %v", a.Key, a.Value)
		return true
	}
	for _, a := range w.attrs {
		add(a)
	}
	r.Attrs(add)
	w.c.Warn(b.String())
	return nil
}

func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w.c, append(w.attrs[:len(w.attrs):len(w.attrs)], attrs...)}
}

func (w *warnings) WithGroup(string) slog.Handler { return w }
