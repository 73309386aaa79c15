package s3

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
)

// Create begins an object. What is smaller than one part is sent at Commit by
// one request; anything larger goes up in parts while it is written, and
// becomes an object when Commit completes the upload. Abort, a failure and the
// end of ctx take back what was sent.
//
// The sink holds the parts that are on their way, at most 56 MiB for objects
// up to 6 GiB. After Finish it holds almost nothing.
func (s *Store) Create(ctx context.Context, name string) (store.Sink, error) {
	t, err := splitObject(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k := &sink{s: s, t: t, ctx: ctx, results: make(chan part, window/firstPart+1)}
	k.run, k.stop = context.WithCancel(ctx)
	return k, nil
}

// sink is written, finished and ended by one goroutine, which is the only one
// that touches its fields; those that send parts get one each and give it back
// through results.
type sink struct {
	s   *Store
	t   target
	ctx context.Context

	run     context.Context // of the requests; ends with ctx and by stop
	stop    context.CancelFunc
	results chan part

	buf    []byte // of the part that is being filled
	spare  [][]byte
	upload *string // nil: none was begun
	sent   int     // parts handed to a goroutine
	flying int64   // bytes of those that have not come back
	out    int     // parts that have not come back
	size   int64   // bytes of the parts that were sent
	parts  []types.CompletedPart
	cut    bool // a part was cut off on its way, and may still arrive

	err             error
	finished, ended bool
}

// part is one part of an upload on its way.
type part struct {
	number int // from 0
	body   []byte
	etag   *string
	err    error
}

func (k *sink) Write(p []byte) (int, error) {
	written := 0
	for {
		if err := k.fault(); err != nil {
			return written, err
		}
		if k.finished {
			return written, format.Errorf(format.ErrIO, format.In(k.t.name), "the object is finished, and nothing can be written any more")
		}
		if len(p) == 0 {
			return written, nil
		}
		size := partSize(k.sent)
		n := min(len(p), int(size)-len(k.buf))
		k.buf = append(k.grown(n, size), p[:n]...)
		p, written = p[n:], written+n
		if int64(len(k.buf)) == size {
			k.send()
		}
	}
}

// fault returns why the sink cannot go on.
func (k *sink) fault() error {
	if k.err == nil {
		k.err = k.ctx.Err()
	}
	return k.err
}

// grown returns the buffer with room for n more bytes. It grows with what is
// written up to its first part; later ones have their size at once.
func (k *sink) grown(n int, size int64) []byte {
	need := len(k.buf) + n
	switch {
	case cap(k.buf) >= need:
		return k.buf
	case k.sent > 0:
		return make([]byte, 0, size)
	default:
		return append(make([]byte, 0, min(max(need, 2*cap(k.buf), 64<<10), int(size))), k.buf...)
	}
}

// send hands the buffer to a goroutine, when there is room for another part on
// its way.
func (k *sink) send() {
	if k.begin(); k.err != nil {
		return
	}
	if k.sent == maxParts {
		k.err = format.Errorf(format.ErrLimit, format.In(k.t.name), "the object is larger than %d parts, which are all that S3 takes", maxParts)
		return
	}
	for k.out > 0 && k.flying+int64(len(k.buf)) > window {
		if k.take(); k.err != nil {
			return
		}
	}
	p := part{number: k.sent, body: k.buf}
	k.sent++
	k.out++
	k.flying += int64(len(p.body))
	k.size += int64(len(p.body))
	go func() {
		p.etag, p.err = k.put(p)
		k.results <- p
	}()
	k.buf = nil
	if n := len(k.spare); n > 0 {
		k.buf, k.spare = k.spare[n-1], k.spare[:n-1]
	}
}

// take waits for a part to come back.
func (k *sink) take() {
	p := <-k.results // soon after the context ends, if it does
	k.out--
	k.flying -= int64(len(p.body))
	if p.err != nil {
		k.cut = true
		if k.err == nil {
			k.err = p.err
			k.stop() // the others are in vain
		}
		return
	}
	number := int32(p.number + 1)
	k.parts = append(k.parts, types.CompletedPart{ETag: p.etag, PartNumber: &number})
	if int64(cap(p.body)) == partSize(k.sent) {
		k.spare = append(k.spare, p.body[:0])
	}
}

// begin asks for an upload, once.
func (k *sink) begin() {
	if k.upload != nil || k.err != nil {
		return
	}
	k.err = k.s.small(k.run, k.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
		out, err := l.s3.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: &k.t.bucket, Key: &k.t.key, RequestPayer: k.s.payer(),
		}, o)
		if err != nil {
			return err
		}
		if aws.ToString(out.UploadId) == "" {
			return errors.New("the server begins an upload and does not say which")
		}
		k.upload = out.UploadId
		return nil
	})
}

// put sends a part, and returns its ETag.
func (k *sink) put(p part) (etag *string, err error) {
	number := int32(p.number + 1)
	err = k.s.small(k.run, k.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
		body := newPayload(ctx, p.body)
		defer body.release()
		out, err := l.s3.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &k.t.bucket, Key: &k.t.key, UploadId: k.upload, PartNumber: &number,
			Body: body, RequestPayer: k.s.payer(),
		}, o)
		if err != nil {
			return err
		}
		if aws.ToString(out.ETag) == "" {
			return errors.New("the server takes a part and gives no ETag for it")
		}
		etag = out.ETag
		return nil
	})
	return etag, err
}

// keepSmall is what a finished sink may keep in memory, to send it by one
// request at Commit instead of three.
const keepSmall = 64 << 10

// Finish sends what is left, so that many finished objects can wait for their
// Commit together. Nothing is visible yet.
func (k *sink) Finish() error {
	if k.ended || k.finished {
		return nil
	}
	k.finished = true
	if k.fault() == nil && (k.upload != nil || len(k.buf) > keepSmall) {
		k.drain()
	}
	return k.err
}

// drain sends the last part and waits for all.
func (k *sink) drain() {
	if len(k.buf) > 0 {
		k.send()
	}
	for k.out > 0 {
		k.take()
	}
	k.spare = nil
}

// Commit makes the object visible, whole.
func (k *sink) Commit() error {
	if k.ended {
		return nil
	}
	if k.fault() == nil {
		if k.upload == nil {
			k.putWhole()
		} else {
			k.drain()
			k.complete()
		}
	}
	err := k.err
	k.end(err != nil)
	return err
}

// putWhole makes the object by one request.
func (k *sink) putWhole() {
	k.err = k.s.small(k.run, k.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
		body := newPayload(ctx, k.buf)
		defer body.release()
		_, err := l.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &k.t.bucket, Key: &k.t.key, Body: body, RequestPayer: k.s.payer()}, o)
		return err
	})
}

// complete makes the object of its parts.
func (k *sink) complete() {
	if k.err != nil {
		return
	}
	slices.SortFunc(k.parts, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	tries := 0
	k.err = k.s.small(k.run, k.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
		tries++
		_, err := l.s3.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &k.t.bucket, Key: &k.t.key, UploadId: k.upload, RequestPayer: k.s.payer(),
			MultipartUpload: &types.CompletedMultipartUpload{Parts: k.parts},
		}, o)
		return err
	})
	// The answer to an earlier try may have been lost after it had worked.
	if tries > 1 && unknownUpload(k.err) && k.completed() {
		k.err = nil
	}
}

func unknownUpload(err error) bool {
	var st *remote.StatusError
	return errors.As(err, &st) && st.Code == http.StatusNotFound
}

// completed reports whether the object that stands there is the one of these
// parts.
func (k *sink) completed() bool {
	e, err := (&object{s: k.s, t: k.t}).head(k.run)
	return err == nil && e.Size == k.size && strings.Trim(e.Version, `"`) == k.etag()
}

// etag returns the ETag that S3 gives to an object of parts: the MD5 of the
// parts' MD5s, and their number.
func (k *sink) etag() string {
	h := md5.New()
	for _, p := range k.parts {
		sum, err := hex.DecodeString(strings.Trim(*p.ETag, `"`))
		if err != nil {
			return ""
		}
		h.Write(sum)
	}
	return fmt.Sprintf("%x-%d", h.Sum(nil), len(k.parts))
}

// Abort takes back what was sent.
func (k *sink) Abort() error {
	if k.ended {
		return nil
	}
	return k.end(true)
}

// abortWait is how long an upload that failed may take to be taken back, when
// what it was part of is over.
const abortWait = 15 * time.Second

// end lets go of everything, and takes an upload back unless it is complete.
func (k *sink) end(abort bool) error {
	k.ended = true
	k.stop()
	for k.out > 0 {
		k.take()
	}
	k.buf, k.spare, k.parts = nil, nil, nil
	if !abort || k.upload == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), abortWait)
	defer cancel()
	err := k.takeBack(ctx)
	for _, wait := range abortAgain {
		if err != nil || !k.cut {
			break
		}
		select {
		case <-time.After(wait):
			err = k.takeBack(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return format.ReadError(err, format.In(k.t.name))
}

// abortAgain is the waits after which an upload is taken back once more if a
// part of it was cut off: what was already on its way arrives after the abort
// and stays, as the documentation of AbortMultipartUpload says.
var abortAgain = [...]time.Duration{250 * time.Millisecond, time.Second}

func (k *sink) takeBack(ctx context.Context) error {
	err := k.s.small(ctx, k.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
		_, err := l.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &k.t.bucket, Key: &k.t.key, UploadId: k.upload, RequestPayer: k.s.payer(),
		}, o)
		return err
	})
	if unknownUpload(err) { // gone already
		return nil
	}
	return err
}

// payload is the body of a request that may be sent again. A transport may go
// on reading a body after its request has failed; release takes the bytes from
// it, so that they can be written over.
type payload struct {
	ctx context.Context

	mu  sync.Mutex
	p   []byte
	off int64
}

func newPayload(ctx context.Context, p []byte) *payload { return &payload{ctx: ctx, p: p} }

func (b *payload) Read(p []byte) (int, error) {
	remote.Alive(b.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off >= int64(len(b.p)) {
		return 0, io.EOF
	}
	n := copy(p, b.p[b.off:])
	b.off += int64(n)
	return n, nil
}

func (b *payload) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += b.off
	case io.SeekEnd:
		offset += int64(len(b.p))
	}
	if offset < 0 {
		return b.off, errors.New("a place before the first byte")
	}
	b.off = offset
	return offset, nil
}

func (b *payload) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.p = nil
}
