package faultserver

import (
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// play is one answer on its way.
type play struct {
	s *Server
	w http.ResponseWriter
	r *http.Request
	o *Object // nil if there is none
	a Answer
}

func (p *play) run() {
	if !p.wait(p.a.Wait) {
		return
	}
	if p.a.As != nil {
		p.o = p.a.As
	}
	switch {
	case p.a.Handle != nil:
		p.a.Handle(p.w, p.r)
	case p.a.Status >= 300:
		p.headers(p.a.Header)
		failWith(p.w, p.r, p.a.Status, p.a.Code, p.a.Message)
	case p.o == nil:
		fail(p.w, p.r, http.StatusNotFound, "NoSuchKey")
	default:
		p.good()
	}
}

// wait returns false if the client went away meanwhile.
func (p *play) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.r.Context().Done():
		return false
	}
}

func (p *play) headers(h http.Header) {
	maps.Copy(p.w.Header(), h)
	for k, v := range h {
		if len(v) == 0 {
			p.w.Header()[k] = nil
		}
	}
}

// good sends the object, or what was asked of it.
func (p *play) good() {
	h := p.w.Header()
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "application/octet-stream")
	if p.o.ETag != "" {
		h.Set("ETag", p.o.ETag)
	}
	if !p.o.Modified.IsZero() {
		h.Set("Last-Modified", p.o.Modified.UTC().Format(http.TimeFormat))
	}
	p.headers(p.o.Header)
	p.headers(p.a.Header)
	if p.changed() {
		fail(p.w, p.r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	size := p.o.Content.Size()
	first, n, status := int64(0), size, http.StatusOK
	if asked := p.r.Header.Get("Range"); asked != "" && !p.a.IgnoreRange {
		var ok bool
		if first, n, ok = parseRange(asked, size); !ok {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
			fail(p.w, p.r, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, first+n-1, size))
		status = http.StatusPartialContent
	}
	if !p.a.NoLength {
		h.Set("Content-Length", strconv.FormatInt(n, 10))
	}
	p.w.WriteHeader(status)
	if p.a.NoLength {
		p.flush() // or a short body would get a length after all
	}
	if p.r.Method != http.MethodHead {
		p.body(first, n)
	}
}

// changed reports whether the object is not the one that was asked for.
func (p *play) changed() bool {
	if p.a.IgnoreMatch {
		return false
	}
	if match := p.r.Header.Get("If-Match"); match != "" && match != "*" {
		return match != p.o.ETag || strings.HasPrefix(match, "W/")
	}
	since, err := http.ParseTime(p.r.Header.Get("If-Unmodified-Since"))
	return err == nil && p.o.Modified.Truncate(time.Second).After(since)
}

// body sends n bytes from off on, or as many as the answer's fault lets through.
func (p *play) body(off, n int64) {
	buf := make([]byte, 64<<10)
	if p.a.WriteSize > 0 {
		buf = make([]byte, p.a.WriteSize)
	}
	for sent := int64(0); sent < n; {
		b := buf[:min(int64(len(buf)), n-sent)]
		if p.a.Fault != Nothing {
			if sent >= p.a.After {
				p.fault()
				return
			}
			b = b[:min(int64(len(b)), p.a.After-sent)]
		}
		if _, err := p.o.Content.ReadAt(b, off+sent); err != nil && err != io.EOF {
			panic(http.ErrAbortHandler)
		}
		for _, i := range p.a.Flip {
			if i -= off + sent; i >= 0 && i < int64(len(b)) {
				b[i] ^= 0xff
			}
		}
		if _, err := p.w.Write(b); err != nil {
			return
		}
		sent += int64(len(b))
		if p.a.BytesPerSecond > 0 {
			p.flush()
			if !p.wait(time.Duration(len(b)) * time.Second / time.Duration(p.a.BytesPerSecond)) {
				return
			}
		}
	}
}

func (p *play) flush() { _ = http.NewResponseController(p.w).Flush() }

func (p *play) fault() {
	p.flush()
	if p.a.Fault == Stall {
		<-p.r.Context().Done()
		return
	}
	c, _, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if p.a.Fault == Reset {
		reset(c)
	}
	_ = c.Close()
}

// reset makes Close a reset, once the client's system has what was sent: a
// reset throws away what is still on its way.
func reset(c net.Conn) {
	switch c := c.(type) {
	case *pipeEnd:
		c.reset()
	case *net.TCPConn:
		drain(c)
		_ = c.SetLinger(0)
	}
}

// parseRange reads a Range header of one range (RFC 9110, section 14.1.2).
func parseRange(s string, size int64) (first, n int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes=")
	from, to, dash := strings.Cut(s, "-")
	if !ok || !dash || strings.Contains(s, ",") {
		return 0, size, true // not understood is not asked
	}
	last := size - 1
	switch a, err := strconv.ParseInt(from, 10, 64); {
	case from == "":
		k, _ := strconv.ParseInt(to, 10, 64)
		first = max(size-k, 0)
	case err != nil:
		return 0, size, true
	default:
		first = a
		if b, err := strconv.ParseInt(to, 10, 64); err == nil {
			last = min(b, last)
		}
	}
	return first, last - first + 1, first < size && first <= last
}

func fail(w http.ResponseWriter, r *http.Request, status int, code string) {
	failWith(w, r, status, code, "")
}

var usualCodes = map[int]string{
	301: "PermanentRedirect", 400: "InvalidRequest", 403: "AccessDenied", 404: "NoSuchKey", 405: "MethodNotAllowed",
	412: "PreconditionFailed", 416: "InvalidRange", 429: "TooManyRequests", 500: "InternalError", 503: "SlowDown",
}

// failWith refuses as S3 does.
func failWith(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	if code == "" {
		code = usualCodes[status]
	}
	text, _ := xml.Marshal(struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string `xml:",omitempty"`
	}{Code: code, Message: message})
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text)
	}
}
