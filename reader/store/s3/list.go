package s3

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"shardtool/format"
	"shardtool/reader/store"
)

// List yields the objects whose names begin with prefix, page by page, in the
// byte order in which S3 lists them. Objects that only stand for folders (no
// bytes, a name that ends in a slash) are left out.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return s.list(ctx, prefix, "")
}

func (s *Store) list(ctx context.Context, prefix, delimiter string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		t, err := split(prefix)
		switch {
		case err != nil:
			yield(store.Entry{}, err)
		case strings.HasSuffix(t.bucket, directoryBucket):
			s.listSorted(ctx, t, delimiter, yield)
		default:
			s.listPages(ctx, t, delimiter, yield)
		}
	}
}

// directoryBucket ends the names of buckets of the class Express One Zone.
// They are listed in no order, and only by prefixes that end in a slash.
const directoryBucket = "--x-s3"

func (s *Store) listSorted(ctx context.Context, t target, delimiter string, yield func(store.Entry, error) bool) {
	wide := t
	wide.key = t.key[:strings.LastIndexByte(t.key, '/')+1]
	var found []store.Entry
	var fault error
	for e, err := range s.pages(ctx, wide, delimiter) {
		if err != nil {
			fault = err
			break
		}
		if strings.HasPrefix(e.Name, t.name) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b store.Entry) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range found {
		if !yield(e, nil) {
			return
		}
	}
	if fault != nil {
		yield(store.Entry{}, fault)
	}
}

// listPages holds the server to the order that it promises: what reads shards
// by their place would else see one twice, or none.
func (s *Store) listPages(ctx context.Context, t target, delimiter string, yield func(store.Entry, error) bool) {
	last := ""
	for e, err := range s.pages(ctx, t, delimiter) {
		if err == nil && e.Name <= last {
			err = format.Errorf(format.ErrCorrupt, format.In(t.name), "the server lists %q after %q, which is not the byte order of S3", e.Name, last)
		}
		if err == nil && !strings.HasPrefix(e.Name, t.name) {
			err = format.Errorf(format.ErrCorrupt, format.In(t.name), "the server lists %q, which does not begin so", e.Name)
		}
		if last = e.Name; !yield(e, err) || err != nil {
			return
		}
	}
}

// pages yields what the server lists, as it lists it.
func (s *Store) pages(ctx context.Context, t target, delimiter string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &t.bucket, Prefix: &t.key, EncodingType: types.EncodingTypeUrl, RequestPayer: s.payer()}
		if delimiter != "" {
			in.Delimiter = &delimiter
		}
		for {
			page, err := s.page(ctx, t, in)
			if err != nil {
				yield(store.Entry{}, err)
				return
			}
			for i := range page.Contents {
				e, err := listed(t, page, &page.Contents[i])
				if err == nil {
					err = ctx.Err()
				}
				if err == nil && e.Size == 0 && strings.HasSuffix(e.Name, "/") {
					continue
				}
				if !yield(e, err) || err != nil {
					return
				}
			}
			if !aws.ToBool(page.IsTruncated) {
				return
			}
			next := aws.ToString(page.NextContinuationToken)
			if next == "" || next == aws.ToString(in.ContinuationToken) {
				yield(store.Entry{}, format.Errorf(format.ErrIO, format.In(t.name), "the server says that its listing goes on, and not where"))
				return
			}
			in.ContinuationToken = &next
		}
	}
}

func (s *Store) page(ctx context.Context, t target, in *s3.ListObjectsV2Input) (page *s3.ListObjectsV2Output, err error) {
	err = s.small(ctx, t, func(ctx context.Context, l *link, o func(*s3.Options)) (err error) {
		page, err = l.s3.ListObjectsV2(ctx, in, o)
		return err
	})
	return page, err
}

// listed makes an entry of what a listing says of an object. Names come
// url-encoded where the server could do that, since XML has no control
// characters, and as they are where it could not.
func listed(t target, page *s3.ListObjectsV2Output, o *types.Object) (store.Entry, error) {
	key := aws.ToString(o.Key)
	if page.EncodingType == types.EncodingTypeUrl {
		plain, err := url.QueryUnescape(key)
		if err != nil {
			return store.Entry{}, format.Errorf(format.ErrCorrupt, format.In(t.name), "the server lists %q, which is not url-encoded as it says", key)
		}
		key = plain
	}
	e := store.Entry{Name: Scheme + t.bucket + "/" + key, Size: format.Unknown, Version: quoted(aws.ToString(o.ETag))}
	if o.Size != nil && *o.Size >= 0 {
		e.Size = *o.Size
	}
	return e, nil
}

// quoted gives an ETag the quotes that it has in headers and that some servers
// leave out of listings.
func quoted(etag string) string {
	if etag == "" || strings.HasSuffix(etag, `"`) {
		return etag
	}
	return `"` + etag + `"`
}

// Glob finds the objects that match a pattern. Where nothing but the last part
// of the pattern is open, the server is asked to leave out what lies in
// deeper folders, which may be most of a bucket.
func (s *Store) Glob(ctx context.Context, pattern string) ([]string, error) {
	delimiter := "/"
	if rest := openPart(pattern); strings.Contains(rest, "/") || strings.Contains(rest, "**") {
		delimiter = ""
	}
	return store.Glob(ctx, folder{s, s, delimiter}, pattern)
}

// folder lists a store with a delimiter, and is no Globber itself.
type folder struct {
	store.Store
	s         *Store
	delimiter string
}

func (f folder) List(ctx context.Context, prefix string) iter.Seq2[store.Entry, error] {
	return f.s.list(ctx, prefix, f.delimiter)
}

// openPart returns a pattern from where it begins to stand for more than
// itself.
func openPart(pattern string) string {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case strings.IndexByte("*?[", pattern[i]) >= 0:
			return pattern[i:]
		}
	}
	return ""
}
