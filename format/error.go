package format

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The sentinels of faults. Every error about input wraps exactly one of them;
// test with errors.Is. The text of a sentinel is its class, as printed by
// commands.
var (
	ErrTruncated   = errors.New("truncated")    // the stream ends before its structure does; never io.EOF
	ErrCorrupt     = errors.New("corrupt")      // bytes contradict a checksum or the structure
	ErrLimit       = errors.New("limit")        // a declared size is over a bound of Limits, and nothing was allocated for it
	ErrUnsupported = errors.New("unsupported")  // well formed, but of a kind that is not read here
	ErrWrongFormat = errors.New("wrong-format") // not the format at all
	ErrDuplicate   = errors.New("duplicate")    // a key has one field twice, or comes back after its sample was closed
	ErrMissing     = errors.New("missing")      // a field or feature that was asked for is not there
	ErrStale       = errors.New("stale")        // an index does not fit its shard, or an object changed under its reader
	ErrSchema      = errors.New("schema")       // an Example does not fit what was asked of it
	ErrUsage       = errors.New("usage")        // the request cannot be met as put
	ErrNotFound    = errors.New("not-found")    // a named shard is not there
	ErrDenied      = errors.New("denied")       // access was refused
	ErrIO          = errors.New("io")           // reading or writing failed
)

var sentinels = []error{
	ErrTruncated, ErrCorrupt, ErrLimit, ErrUnsupported, ErrWrongFormat, ErrDuplicate, ErrMissing,
	ErrStale, ErrSchema, ErrUsage, ErrNotFound, ErrDenied, ErrIO,
}

// Sentinel returns the sentinel that err wraps, or nil if it wraps none.
func Sentinel(err error) error {
	if e := AsError(err); e != nil {
		return e.Err
	}
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return s
		}
	}
	return nil
}

// AsError returns the first *Error that err is or wraps, or nil.
func AsError(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}

// Class returns the word of the sentinel that err wraps, "" for nil, and "io"
// for an error of another origin.
func Class(err error) string {
	if err == nil {
		return ""
	}
	if s := Sentinel(err); s != nil {
		return s.Error()
	}
	return ErrIO.Error()
}

// Unknown stands for an offset or a record number that is not known.
const Unknown = -1

// Location says where in a shard something is. The zero value is the first
// byte of a shard without a name; start from Nowhere where nothing is known.
type Location struct {
	Shard  string // name of the shard; "" if not known
	Offset int64  // in the decompressed stream, in bytes; Unknown if not known
	Record int64  // number of the record or sample, from 0; Unknown if not known
	Key    string // of the sample; "" if not known
	Field  string // name of the field or member; "" if not known
}

// Nowhere is the Location of which nothing is known.
var Nowhere = Location{Offset: Unknown, Record: Unknown}

// In is the Location of which the name of the shard, or of another file, is all
// that is known.
func In(name string) Location { return Location{Shard: name, Offset: Unknown, Record: Unknown} }

// String returns the location as errors print it, for example
// `train-000003.tar @ 1049088 (sample 412 "n01440764_10026")`, or "". The
// shard is named as Redact does.
func (l Location) String() string {
	var b strings.Builder
	b.WriteString(Redact(l.Shard))
	if l.Offset >= 0 {
		space(&b)
		b.WriteString("@ ")
		b.WriteString(strconv.FormatInt(l.Offset, 10))
	}
	if l.Record >= 0 || l.Key != "" || l.Field != "" {
		space(&b)
		b.WriteByte('(')
		sep := ""
		if l.Record >= 0 || l.Key != "" {
			b.WriteString("sample")
			sep = ", "
		}
		if l.Record >= 0 {
			b.WriteByte(' ')
			b.WriteString(strconv.FormatInt(l.Record, 10))
		}
		if l.Key != "" {
			b.WriteByte(' ')
			b.WriteString(strconv.Quote(clip(l.Key)))
		}
		if l.Field != "" {
			b.WriteString(sep)
			b.WriteString("field ")
			b.WriteString(strconv.Quote(clip(l.Field)))
		}
		b.WriteByte(')')
	}
	return b.String()
}

func space(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
}

// clip keeps a hostile name from flooding a message.
func clip(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Error is a fault of input: what it is, where, and in words. It reads like
//
//	train-000003.tar @ 1049088 (sample 412 "n01440764_10026"): truncated: member ends 3071 bytes early
type Error struct {
	Location
	Err    error  // the sentinel
	Detail string // what is wrong, in words, without the location
	Cause  error  // an underlying error, or nil
}

// Errorf returns an *Error at a location. sentinel is one of this package's;
// the rest is as for fmt.Errorf, and an error wrapped with %w becomes Cause.
func Errorf(sentinel error, at Location, msg string, args ...any) *Error {
	e := fmt.Errorf(msg, args...)
	return &Error{Location: at, Err: sentinel, Detail: e.Error(), Cause: errors.Unwrap(e)}
}

// Error returns the location, the class and the detail.
func (e *Error) Error() string {
	at := e.Location.String()
	if at != "" {
		at += ": "
	}
	if e.Detail == "" {
		return at + e.Err.Error()
	}
	return at + e.Err.Error() + ": " + e.Detail
}

// Unwrap returns the sentinel and, where there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// ReadError turns an error of a file or a stream into an *Error at a location:
// not-found, denied or io. An error that is an *Error already gets the parts
// of the location that it lacks; cancellation of a context is returned as it
// is. nil stays nil.
func ReadError(err error, at Location) error {
	var e *Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &e):
		return e.fill(at)
	case errors.Is(err, fs.ErrNotExist):
		return Errorf(ErrNotFound, at, "%w", err)
	case errors.Is(err, fs.ErrPermission):
		return Errorf(ErrDenied, at, "%w", err)
	default:
		return Errorf(ErrIO, at, "%w", err)
	}
}

func (e *Error) fill(at Location) *Error {
	c := *e
	if c.Shard == "" {
		c.Shard = at.Shard
	}
	if c.Offset < 0 {
		c.Offset = at.Offset
	}
	if c.Record < 0 {
		c.Record = at.Record
	}
	if c.Key == "" {
		c.Key = at.Key
	}
	if c.Field == "" {
		c.Field = at.Field
	}
	return &c
}
