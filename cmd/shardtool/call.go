package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/reader/store/stores"
)

// call is one run of a verb: its flags and paths (by the embedded context), the
// store it reads and writes, what it prints, and the worst fault so far. Its
// methods may be called by several goroutines.
type call struct {
	*cli.Context
	Store store.Store

	stores *stores.Stores // what Store is at first

	out  *output
	mu   sync.Mutex
	code int
	bar  *progress
}

func newCall(cc *cli.Context) (*call, error) {
	out, ok := cc.App.Writer.(*output)
	if !ok {
		out = newOutput(cc.App.Writer)
	}
	o, err := remoteOptions(cc)
	if err != nil {
		return nil, err
	}
	c := &call{Context: cc, out: out}
	o.Local = &store.Local{Stdin: cc.App.Reader, Stdout: out}
	o.Log = slog.New(&warnings{c: c})
	c.stores = stores.New(o)
	c.Store = c.stores
	return c, nil
}

// ReportTo says where data goes that the verb writes. If that is standard
// output, all that Row and Printf print goes to standard error instead.
func (c *call) ReportTo(data string) {
	if data == "-" {
		c.out = newOutput(c.App.ErrWriter)
	}
}

// JSON reports whether rows are asked for instead of text.
func (c *call) JSON() bool { return c.Bool("json") }

// Row prints one JSON line.
func (c *call) Row(v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar.hide()
	return c.out.row(v)
}

// Printf prints text.
func (c *call) Printf(msg string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar.hide()
	_, err := fmt.Fprintf(c.out, msg, args...)
	return c.out.line(err)
}

// Fault reports an error on standard error and lets the verb go on. The run
// ends with the exit code of its worst fault.
func (c *call) Fault(err error) {
	c.Mark(err)
	c.Warn(err.Error())
}

// Warn says something on standard error that is no fault.
func (c *call) Warn(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar.hide()
	c.out.settle()
	fmt.Fprintln(c.App.ErrWriter, "shardtool: "+visible(what))
}

// Mark takes an error into account for the exit code without saying it: it is
// in the output already.
func (c *call) Mark(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = max(c.code, exitCode(err))
}

// end makes the result of the verb: its own error, worsened by what was marked.
func (c *call) end(err error) error {
	_ = c.stores.Close() // idle connections
	if e := c.out.Flush(); err == nil {
		err = e
	}
	switch {
	case err == nil && c.code == exitFine:
		return nil
	case err == nil || exitCode(err) < c.code:
		if say := message(err); say != "" {
			c.Warn(say)
		}
		return &saidError{c.code}
	default:
		return err
	}
}

// Paths returns the verb's paths with globs, braces, lists and manifests
// expanded, in the order given. None at all is ErrUsage, naming the verb's
// synopsis.
func (c *call) Paths() ([]string, error) {
	args := c.Args().Slice()
	if len(args) == 0 {
		return nil, usageError("no paths; shardtool %s %s", c.Command.Name, c.Command.ArgsUsage)
	}
	return c.expand(args)
}

// isManifest tells the name of a manifest as reader.Open does.
func isManifest(path string) bool {
	return strings.HasPrefix(path, "@") || strings.HasSuffix(path, ".json")
}

// expand is store.Expand, with the shards that a manifest names in its place,
// and standard input at most once.
func (c *call) expand(patterns []string) ([]string, error) {
	var names []string
	for len(patterns) > 0 {
		n, find := 1, c.listed
		if !isManifest(patterns[0]) {
			if n = slices.IndexFunc(patterns, isManifest); n < 0 {
				n = len(patterns)
			}
			find = func(patterns ...string) ([]string, error) {
				return store.Expand(c.Context.Context, c.Store, patterns...)
			}
		}
		more, err := find(patterns[:n]...)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
		patterns = patterns[n:]
	}
	stdin := 0
	for _, name := range names {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return nil, usageError("standard input (-) is given %d times, and can be read once", stdin)
	}
	return names, nil
}

// listed returns the names of the shards of manifests.
func (c *call) listed(manifests ...string) ([]string, error) {
	var names []string
	for _, m := range manifests {
		d, err := reader.Open(c.Context.Context, m, &reader.Options{Store: c.Store})
		if err != nil {
			return nil, err
		}
		names = append(names, d.Shards()...)
	}
	return names, nil
}

// output is standard output: buffered, and flushed by the line where a person
// watches. A write that failed fails all that follow.
type output struct {
	w     *bufio.Writer
	watch bool
	enc   encoder
}

func newOutput(w io.Writer) *output {
	return &output{w: bufio.NewWriterSize(w, 64<<10), watch: isTerminal(w)}
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	return n, writeError(err)
}

func (o *output) Flush() error { return writeError(o.w.Flush()) }

// line ends a piece of output.
func (o *output) line(err error) error {
	if err == nil && o.watch {
		err = o.w.Flush()
	}
	return writeError(err)
}

// settle lets what was printed appear before what standard error says next.
func (o *output) settle() {
	if o.watch {
		_ = o.w.Flush() // an error stays in the writer for the next call
	}
}

func (o *output) row(v any) error {
	line, err := o.enc.line(v)
	if err != nil {
		return err
	}
	_, err = o.w.Write(line)
	return o.line(err)
}

func writeError(err error) error {
	return format.ReadError(err, format.In("standard output"))
}

// promptReader ends a Read as soon as the context does: a read of a terminal or
// a pipe cannot be called back, so it is left to a goroutine that is abandoned.
type promptReader struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte
	full chan int
	err  error
	left []byte
}

func (p *promptReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(p.left) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		if p.buf == nil {
			p.buf, p.full = make([]byte, 1<<20), make(chan int, 1)
		}
		go func() {
			var n int
			n, p.err = p.r.Read(p.buf)
			p.full <- n
		}()
		select {
		case n := <-p.full:
			p.left = p.buf[:n]
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
		if len(p.left) == 0 {
			return 0, p.err
		}
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}
