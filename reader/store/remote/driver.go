package remote

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"shardtool/format"
)

// Getter is one object as a protocol serves it. A call is one request: it
// follows what redirects its protocol has, and never retries. It is safe for
// use by several goroutines.
//
// An answer that is not success is a *StatusError. A *format.Error is taken for
// final, and the error of the context for the caller's wish to end; any other
// error (a reset, a timeout, an answer that ends early) is tried again.
type Getter interface {
	Get(ctx context.Context, r Request) (*Response, error)
}

// About is what is known of an object before its first byte is asked for.
type About struct {
	InOrder  bool     // the server does not serve ranges: in order only
	Checksum Checksum // of the full object, if the server told it already
}

// Abouter is an optional interface of a Getter.
type Abouter interface {
	About() About
}

// Request asks for bytes of an object.
type Request struct {
	Offset  int64  // of the first byte
	Length  int64  // in bytes; < 0: to the end, sent as "bytes=k-", and without a range for offset 0
	IfMatch string // the Version that must still be there; "" where none is known yet
}

// Range returns the value of the Range header that asks for r, "" for none.
func (r Request) Range() string {
	switch {
	case r.Length >= 0:
		return fmt.Sprintf("bytes=%d-%d", r.Offset, r.Offset+r.Length-1)
	case r.Offset > 0:
		return fmt.Sprintf("bytes=%d-", r.Offset)
	default:
		return ""
	}
}

// Response is an answer with bytes. Whoever gets it closes Body.
type Response struct {
	Body     io.ReadCloser
	Offset   int64    // of the first byte of Body in the object
	Length   int64    // of Body, as the server says; format.Unknown if it does not
	Size     int64    // of the whole object; format.Unknown if the server does not say
	Version  string   // the ETag with its quotes, or what else tells versions apart; "": nothing does
	Checksum Checksum // of the FULL object, if sent; a COMPOSITE one is the driver's to drop
	Whole    bool     // the server answered with the whole object although a range was asked for
}

// StatusError is an answer that is not success.
type StatusError struct {
	Code       int           // of HTTP
	Reason     string        // in the server's words, without secrets: "SlowDown: reduce your request rate"
	RetryAfter time.Duration // what the server asks to wait; 0 if it does not
	Temporary  bool          // worth another try although Code does not say so
	Version    string        // of what is there now, where an answer 412 tells it
	Err        error         // the sentinel of format that fits, where the driver knows better than Code; final unless Temporary
}

// Error reads like "http 503 SlowDown: reduce your request rate".
func (e *StatusError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = http.StatusText(e.Code)
	}
	return fmt.Sprintf("http %d %s", e.Code, reason)
}

// Is makes the errors of a file system out of the codes that mean the same.
func (e *StatusError) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.sentinel() == format.ErrNotFound
	case fs.ErrPermission:
		return e.sentinel() == format.ErrDenied
	}
	return false
}

// sentinel returns the class that the answer belongs to.
func (e *StatusError) sentinel() error {
	switch {
	case e.Err != nil:
		return e.Err
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden, e.Code == http.StatusProxyAuthRequired:
		return format.ErrDenied
	case e.Code == http.StatusNotFound, e.Code == http.StatusGone:
		return format.ErrNotFound
	case e.Code == http.StatusPreconditionFailed:
		return format.ErrStale
	default:
		return format.ErrIO
	}
}

// retry reports whether another try may do better.
func (e *StatusError) retry() bool {
	if e.Temporary {
		return true
	}
	if e.Err != nil {
		return false
	}
	switch e.Code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// throttled reports whether the server asks for fewer requests.
func (e *StatusError) throttled() bool {
	return e.Code == http.StatusTooManyRequests || e.Code == http.StatusServiceUnavailable
}
