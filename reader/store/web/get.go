package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"shardtool/format"
	"shardtool/reader/store/remote"
)

// getter is one object.
type getter struct {
	s        *Store
	a        *address
	about    remote.About
	modified string // Last-Modified, as it was told first
	sized    bool   // the size is known
}

// About tells what the first answers said.
func (g *getter) About() remote.About { return g.about }

// Get makes one request, and those that redirects lead to.
func (g *getter) Get(ctx context.Context, q remote.Request) (*remote.Response, error) {
	r := g.a.request(ctx, http.MethodGet)
	asked := q.Range()
	if asked != "" {
		r.Header.Set("Range", asked)
	}
	g.match(r, q.IfMatch)
	resp, err := g.s.http.Do(r)
	if err != nil {
		return nil, err
	}
	a, err := g.answer(resp, asked != "")
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return a, nil
}

// match asks for the version that must still be there. A weak ETag never
// matches (RFC 9110, section 13.1.1); the date stands in for it.
func (g *getter) match(r *http.Request, version string) {
	date, dated := strings.CutPrefix(version, modified)
	switch {
	case version == "":
	case strings.HasPrefix(version, `"`):
		r.Header.Set("If-Match", version)
	case dated:
		r.Header.Set("If-Unmodified-Since", date)
	case g.modified != "":
		r.Header.Set("If-Unmodified-Since", g.modified)
	}
}

func (g *getter) answer(resp *http.Response, ranged bool) (*remote.Response, error) {
	a := &remote.Response{
		Body: resp.Body, Length: resp.ContentLength, Size: resp.ContentLength,
		Version: versionOf(resp.Header), Checksum: remote.ChecksumOf(resp.Header),
	}
	switch resp.StatusCode {
	case http.StatusOK:
		a.Whole = ranged
		if resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && !g.sized {
			return nil, format.Errorf(format.ErrUnsupported, format.Nowhere,
				"the server sends neither a length nor chunks: the end could not be told from a cut")
		}
	case http.StatusPartialContent:
		first, last, size, err := parseContentRange(resp.Header.Get("Content-Range"))
		if err != nil {
			return nil, err
		}
		a.Offset, a.Size = first, size
		if a.Length < 0 {
			a.Length = last - first + 1
		}
	case http.StatusPreconditionFailed:
		e := remote.StatusOf(resp)
		e.Version = versionOf(resp.Header)
		return nil, e
	default:
		return nil, remote.StatusOf(resp)
	}
	return a, nil
}

// parseContentRange reads "bytes 0-99/1000", or "bytes 0-99/*" with the size
// format.Unknown (RFC 9110, section 14.4).
func parseContentRange(s string) (first, last, size int64, err error) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	from, to, ok3 := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	size = format.Unknown
	var err3 error
	if total != "*" {
		size, err3 = strconv.ParseInt(total, 10, 64)
	}
	if !ok || !ok2 || !ok3 || err1 != nil || err2 != nil || err3 != nil || first < 0 || last < first || size >= 0 && last >= size || size < format.Unknown {
		return 0, 0, 0, format.Errorf(format.ErrIO, format.Nowhere, "the server answers a range with Content-Range %.100q", s)
	}
	return first, last, size, nil
}
