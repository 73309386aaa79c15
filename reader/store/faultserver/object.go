package faultserver

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"
)

// Content is the bytes of an object.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Bytes is content given as it is.
func Bytes(b []byte) Content { return bytes.NewReader(b) }

// Pattern is n bytes, the i-th of which is (131*i + 17*(i>>8) + 7) mod 256.
func Pattern(n int64) Content {
	return generated{n, func(p []byte, off int64) {
		for k := range p {
			i := off + int64(k)
			p[k] = byte(131*i + 17*(i>>8) + 7)
		}
	}}
}

// Zeros is n zero bytes.
func Zeros(n int64) Content {
	return generated{n, func(p []byte, _ int64) { clear(p) }}
}

type generated struct {
	n    int64
	fill func(p []byte, off int64)
}

func (g generated) Size() int64 { return g.n }

func (g generated) ReadAt(p []byte, off int64) (int, error) {
	if off >= g.n {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), g.n-off))
	g.fill(p[:n], off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Object is what a path holds, and what happens to those who ask for it.
type Object struct {
	Content  Content
	ETag     string      // with its quotes; "": not sent
	Modified time.Time   // sent as Last-Modified unless zero
	Header   http.Header // sent with every good answer

	Gets  []Answer // to GET, in order; the last one stays; none: all good
	Heads []Answer // to HEAD

	mu          sync.Mutex
	gets, heads int
}

// Sum is the ETag that S3 gives to an object that was put in one piece.
func Sum(b []byte) string {
	sum := md5.Sum(b)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// answer takes the next answer.
func (o *Object) answer(method string) Answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	list, n := o.Gets, &o.gets
	if method == http.MethodHead {
		list, n = o.Heads, &o.heads
	}
	if len(list) == 0 {
		return Answer{}
	}
	a := list[min(*n, len(list)-1)]
	*n++
	return a
}

// Fault is what breaks an answer off.
type Fault uint8

const (
	Nothing Fault = iota
	Reset         // the connection is reset
	Hangup        // the connection is closed in good order
	Stall         // nothing more is sent, and the connection stays
)

// Answer is what a request gets. The zero value is the object, or the range of
// it that was asked for.
type Answer struct {
	Status  int           // of a refusal, sent in place of the object; 0, 200 and 206: none
	Code    string        // of S3, in the body of a refusal; "": the usual one of Status
	Message string        // in the body of a refusal
	Header  http.Header   // sent besides the object's; an empty list takes one away
	Wait    time.Duration // before the answer begins

	Fault Fault // comes after After bytes of the body, unless the body ends before
	After int64

	BytesPerSecond int64   // 0: as fast as can be
	WriteSize      int     // bytes of one write; 0: 64 KiB
	Flip           []int64 // places in the object of bytes that are changed on their way

	IgnoreRange bool    // the whole object is sent, as 200
	IgnoreMatch bool    // If-Match is not looked at
	NoLength    bool    // no Content-Length: in chunks
	As          *Object // sent in place of the object: what it has become

	Handle http.HandlerFunc // answers in place of all this
}
