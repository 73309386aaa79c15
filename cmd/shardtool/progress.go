package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar of bytes with their rate. It draws nothing, and costs
// nothing, where nobody watches: standard error is no terminal, --quiet was
// given, or the nil *progress is used. Add may be called by several goroutines.
type progress struct{ bar *progressbar.ProgressBar }

// Progress begins a bar for work on total bytes, format.Unknown where that is
// not known. End it before anything is printed that should last.
func (c *call) Progress(what string, total int64) *progress {
	if c.Bool("quiet") || !isTerminal(c.App.ErrWriter) {
		return nil
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(c.App.ErrWriter),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
	)}
}

// Add counts n bytes as done.
func (p *progress) Add(n int64) {
	if p != nil {
		_ = p.bar.Add64(n)
	}
}

// End takes the bar off the screen.
func (p *progress) End() {
	if p != nil {
		_ = p.bar.Finish()
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
