package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar of bytes with their rate. It draws nothing, and costs
// nothing, where nobody watches: standard error is no terminal, --quiet was
// given, or the nil *progress is used. Its methods may be called by several
// goroutines.
type progress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar
}

// Watched reports whether anybody would see a bar.
func (c *call) Watched() bool { return !c.Bool("quiet") && isTerminal(c.App.ErrWriter) }

// Progress begins a bar for work on total bytes, or on total of something else,
// format.Unknown where that is not known. What the call prints meanwhile takes
// its place, and it comes back below.
func (c *call) Progress(what string, total int64, bytes bool) *progress {
	if !c.Watched() {
		return nil
	}
	p := &progress{bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(c.App.ErrWriter),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(bytes),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
	)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar = p
	return p
}

// Add counts n more as done.
func (p *progress) Add(n int64) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.bar.Add64(n)
	}
}

// Of says how much there is in all.
func (p *progress) Of(total int64) {
	if p != nil && total > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.bar.IsFinished() {
			p.bar.ChangeMax64(total)
		}
	}
}

// hide takes the bar off the screen until the next Add.
func (p *progress) hide() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.bar.IsFinished() {
			_ = p.bar.Clear()
		}
	}
}

// End takes the bar off the screen.
func (p *progress) End() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.bar.Finish()
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
