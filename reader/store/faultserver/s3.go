package faultserver

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	return io.ReadAll(r.Body)
}

// signedRegion returns the region in the scope of a signature of version 4:
// Credential=KEY/DATE/REGION/s3/aws4_request.
func signedRegion(r *http.Request) string {
	_, scope, ok := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	if !ok {
		scope = r.URL.Query().Get("X-Amz-Credential")
	}
	parts := strings.Split(scope, "/")
	if len(parts) < 5 {
		return ""
	}
	return parts[len(parts)-3]
}

func reply(w http.ResponseWriter, v any) {
	text, err := xml.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+len(xml.Header)))
	_, _ = w.Write(append([]byte(xml.Header), text...))
}

// put stores a body under the path of its request.
func (s *Server) put(w http.ResponseWriter, r *http.Request, body []byte) {
	etag := Sum(body)
	if !s.place(r, body, etag) {
		fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	w.Header().Set("ETag", etag)
	w.WriteHeader(http.StatusOK)
}

// place makes an object visible unless the request wants none to be there.
func (s *Server) place(r *http.Request, body []byte, etag string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("If-None-Match") == "*" && s.objects[r.URL.Path] != nil {
		return false
	}
	s.objects[r.URL.Path] = &Object{Content: Bytes(body), ETag: etag, Modified: time.Now()}
	return true
}

type upload struct {
	path  string
	parts map[int][]byte
}

// Uploads returns how many uploads in parts were begun and not ended.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// multipart is CreateMultipartUpload, UploadPart, CompleteMultipartUpload and
// AbortMultipartUpload.
func (s *Server) multipart(w http.ResponseWriter, r *http.Request, body []byte) {
	query := r.URL.Query()
	if r.Method == http.MethodPost && query.Has("uploads") {
		s.begin(w, r)
		return
	}
	id := query.Get("uploadId")
	s.mu.Lock()
	u := s.uploads[id]
	s.mu.Unlock()
	if u == nil {
		fail(w, r, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch r.Method {
	case http.MethodPut:
		number, err := strconv.Atoi(query.Get("partNumber"))
		if err != nil || number < 1 || number > 10_000 {
			fail(w, r, http.StatusBadRequest, "InvalidArgument")
			return
		}
		s.mu.Lock()
		u.parts[number] = body
		s.mu.Unlock()
		w.Header().Set("ETag", Sum(body))
		w.WriteHeader(http.StatusOK)
	case http.MethodPost:
		s.complete(w, r, id, u, body)
	case http.MethodDelete:
		s.mu.Lock()
		delete(s.uploads, id)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, r, http.StatusMethodNotAllowed, "")
	}
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.serial++
	id := fmt.Sprintf("upload-%d", s.serial)
	s.uploads[id] = &upload{path: r.URL.Path, parts: map[int][]byte{}}
	s.mu.Unlock()
	bucket, key := split(r.URL.Path)
	reply(w, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: bucket, Key: key, UploadId: id})
}

// minPart is S3's smallest part but the last.
const minPart = 5 << 20

func (s *Server) complete(w http.ResponseWriter, r *http.Request, id string, u *upload, body []byte) {
	var asked struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal(body, &asked); err != nil || len(asked.Part) == 0 {
		fail(w, r, http.StatusBadRequest, "MalformedXML")
		return
	}
	var whole bytes.Buffer
	sums := md5.New()
	s.mu.Lock()
	for i, p := range asked.Part {
		part, ok := u.parts[p.PartNumber]
		switch {
		case !ok || strings.Trim(p.ETag, `"`) != strings.Trim(Sum(part), `"`):
			s.mu.Unlock()
			fail(w, r, http.StatusBadRequest, "InvalidPart")
			return
		case i > 0 && p.PartNumber <= asked.Part[i-1].PartNumber:
			s.mu.Unlock()
			fail(w, r, http.StatusBadRequest, "InvalidPartOrder")
			return
		case len(part) < minPart && i < len(asked.Part)-1:
			s.mu.Unlock()
			fail(w, r, http.StatusBadRequest, "EntityTooSmall")
			return
		}
		whole.Write(part)
		sum := md5.Sum(part)
		sums.Write(sum[:])
	}
	s.mu.Unlock()
	etag := fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sums.Sum(nil)), len(asked.Part))
	if !s.place(r, whole.Bytes(), etag) {
		fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	s.mu.Lock()
	delete(s.uploads, id)
	s.mu.Unlock()
	bucket, key := split(u.path)
	reply(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: bucket, Key: key, ETag: etag})
}

func split(path string) (bucket, key string) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return bucket, key
}

type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
}

type prefixes struct{ Prefix string }

type page struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	MaxKeys               int
	KeyCount              int
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
	CommonPrefixes        []prefixes
}

// list is ListObjectsV2.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	bucket, _ := split(r.URL.Path)
	p := page{Name: bucket, Prefix: query.Get("prefix"), Delimiter: query.Get("delimiter"), EncodingType: query.Get("encoding-type"), MaxKeys: 1000}
	if s.Page > 0 {
		p.MaxKeys = s.Page
	}
	if n, err := strconv.Atoi(query.Get("max-keys")); err == nil && n < p.MaxKeys {
		p.MaxKeys = n
	}
	after := max(query.Get("start-after"), strings.TrimPrefix(query.Get("continuation-token"), "after:"))
	last := ""
	for _, key := range s.keys(bucket, p.Prefix) {
		common := ""
		if p.Delimiter != "" {
			if i := strings.Index(key[len(p.Prefix):], p.Delimiter); i >= 0 {
				common = key[:len(p.Prefix)+i+len(p.Delimiter)]
			}
		}
		// What a token names was listed: a key, or all below a common prefix.
		if key <= after || common != "" && (common == after || common == last) {
			continue
		}
		if p.KeyCount == p.MaxKeys {
			p.IsTruncated, p.NextContinuationToken = true, "after:"+last
			break
		}
		p.KeyCount++
		if common != "" {
			last = common
			p.CommonPrefixes = append(p.CommonPrefixes, prefixes{p.encode(common)})
			continue
		}
		last = key
		o := s.Get("/" + bucket + "/" + key)
		if o == nil { // deleted meanwhile
			continue
		}
		p.Contents = append(p.Contents, listed{p.encode(key), o.Modified.UTC().Format("2006-01-02T15:04:05.000Z"), o.ETag, o.Content.Size(), "STANDARD"})
	}
	p.Prefix, p.Delimiter = p.encode(p.Prefix), p.encode(p.Delimiter)
	reply(w, p)
}

// keys returns the keys of a bucket that begin with prefix, in byte order.
func (s *Server) keys(bucket, prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for path := range s.objects {
		if b, key := split(path); b == bucket && key != "" && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (p *page) encode(s string) string {
	if p.EncodingType != "url" {
		return s
	}
	return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/")
}
