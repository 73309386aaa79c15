package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"shardtool/format"
	"shardtool/reader/store"
	"shardtool/reader/store/remote"
)

// object is an object as remote reads it: one request per call.
type object struct {
	s *Store
	t target

	// What head has learnt. An object that is read in ranges has its checksum
	// from here, for an answer to a range has none.
	sum remote.Checksum
}

var (
	_ remote.Getter  = (*object)(nil)
	_ remote.Abouter = (*object)(nil)
)

// About tells the checksum, if head has seen one.
func (g *object) About() remote.About { return remote.About{Checksum: g.sum} }

// Get asks for a range of the object.
func (g *object) Get(ctx context.Context, r remote.Request) (*remote.Response, error) {
	in := &s3.GetObjectInput{Bucket: &g.t.bucket, Key: &g.t.key, RequestPayer: g.s.payer()}
	span := r.Range()
	if span != "" {
		in.Range = &span
	}
	if r.IfMatch != "" {
		in.IfMatch = &r.IfMatch
	}
	out, err := g.get(ctx, in)
	if err != nil {
		return nil, err
	}
	resp := &remote.Response{Body: out.Body, Length: format.Unknown, Size: format.Unknown, Version: aws.ToString(out.ETag)}
	if out.ContentLength != nil && *out.ContentLength >= 0 {
		resp.Length = *out.ContentLength
	}
	if out.ContentRange == nil {
		resp.Size = resp.Length
		resp.Whole = span != ""
		resp.Checksum = sumOf(out.ResultMetadata)
		return resp, nil
	}
	if resp.Offset, resp.Size, err = contentRange(*out.ContentRange); err != nil {
		out.Body.Close()
		return nil, format.Errorf(format.ErrCorrupt, format.In(g.t.name), "%w", err)
	}
	return resp, nil
}

// get asks for a checksum of a whole object by a header of its own and not by
// the SDK's field for it, which would also make the SDK wrap the body and hold
// it against whatever comes.
func (g *object) get(ctx context.Context, in *s3.GetObjectInput) (out *s3.GetObjectOutput, err error) {
	ctx = context.WithValue(ctx, content{}, true)
	err = g.s.ask(ctx, g.t, func(ctx context.Context, l *link, o func(*s3.Options)) (err error) {
		out, err = l.s3.GetObject(ctx, in, o, func(o *s3.Options) {
			if in.Range == nil {
				o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("X-Amz-Checksum-Mode", "ENABLED"))
			}
		})
		return err
	})
	return out, err
}

// sumOf returns the checksum of the full object that an answer tells, if any.
func sumOf(m middleware.Metadata) remote.Checksum {
	if r, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response); ok {
		return remote.ChecksumOf(r.Header)
	}
	return remote.Checksum{}
}

// contentRange reads "bytes 0-99/1234", in which the size may be "*".
func contentRange(s string) (off, size int64, err error) {
	bad := fmt.Errorf("the server answers with the range %q, which is none", s)
	span, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(span, "/")
	first, _, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, bad
	}
	if off, err = strconv.ParseInt(first, 10, 64); err != nil || off < 0 {
		return 0, 0, bad
	}
	if total == "*" {
		return off, format.Unknown, nil
	}
	if size, err = strconv.ParseInt(total, 10, 64); err != nil || size < 0 {
		return 0, 0, bad
	}
	return off, size, nil
}

// head describes the object.
func (g *object) head(ctx context.Context) (store.Entry, error) {
	e := store.Entry{Name: g.t.name, Size: format.Unknown}
	err := g.s.remote.Do(ctx, g.t.name, func(ctx context.Context) error {
		err := g.ask(ctx, &e)
		if err == nil && e.Size < 0 { // some servers do not tell
			return g.askByGet(ctx, &e)
		}
		var st *remote.StatusError
		if !errors.As(err, &st) {
			return err
		}
		// An answer to HEAD has no body, so it does not say why.
		switch st.Code {
		case http.StatusBadRequest, http.StatusForbidden:
			return g.askByGet(ctx, &e)
		case http.StatusNotFound:
			st.Reason = g.missing(ctx)
		}
		return err
	})
	return e, err
}

func (g *object) ask(ctx context.Context, e *store.Entry) error {
	return g.s.ask(ctx, g.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
		out, err := l.s3.HeadObject(ctx, &s3.HeadObjectInput{
			Bucket: &g.t.bucket, Key: &g.t.key, RequestPayer: g.s.payer(), ChecksumMode: types.ChecksumModeEnabled,
		}, o)
		if err != nil {
			return err
		}
		e.Version = aws.ToString(out.ETag)
		if out.ContentLength != nil {
			e.Size = *out.ContentLength
		}
		g.sum = sumOf(out.ResultMetadata)
		return nil
	})
}

// askByGet learns by a request for one byte why HEAD was refused, or what HEAD
// would have said where only that is refused.
func (g *object) askByGet(ctx context.Context, e *store.Entry) error {
	r, err := g.Get(ctx, remote.Request{Offset: 0, Length: 1})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, _ = io.CopyN(io.Discard, r.Body, 1) // so that the connection can be used again
	e.Size, e.Version = r.Size, r.Version
	return nil
}

// missing says which of the two is not there, the bucket or the object.
func (g *object) missing(ctx context.Context) string {
	if _, ok := g.s.there.Load(g.t.bucket); !ok {
		err := g.s.ask(ctx, g.t, func(ctx context.Context, l *link, o func(*s3.Options)) error {
			_, err := l.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &g.t.bucket}, o)
			return err
		})
		var st *remote.StatusError
		if errors.As(err, &st) && st.Code == http.StatusNotFound {
			return (&answer{reason: "NoSuchBucket"}).words(g.t)
		}
	}
	return (&answer{reason: "NoSuchKey"}).words(g.t)
}

type cancelled struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelled) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
