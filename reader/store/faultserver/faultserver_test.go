package faultserver_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"shardtool/reader/store/faultserver"
)

// servers is one of each kind.
func servers(t *testing.T) map[string]*faultserver.Server {
	tcp, err := faultserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*faultserver.Server{"tcp": tcp, "pipe": faultserver.StartPipe()}
	for _, s := range all {
		t.Cleanup(s.Close)
	}
	return all
}

func client(s *faultserver.Server) *http.Client {
	tr := &http.Transport{DisableKeepAlives: true}
	s.Wire(tr)
	return &http.Client{Transport: tr}
}

func TestPatternIsThatOfTheCases(t *testing.T) {
	p := make([]byte, 300)
	if n, err := faultserver.Pattern(258).ReadAt(p, 0); n != 258 || err != io.EOF {
		t.Fatal(n, err)
	}
	// (131*i + 17*(i>>8) + 7) mod 256, by hand
	for i, want := range map[int]byte{0: 7, 1: 138, 2: 13, 255: 132, 256: 24, 257: 155} {
		if p[i] != want {
			t.Errorf("byte %d is %d, want %d", i, p[i], want)
		}
	}
}

// TestResetComesBehindTheBytes: a reset is a reset, and what was sent before it
// arrives.
func TestResetComesBehindTheBytes(t *testing.T) {
	for name, s := range servers(t) {
		for _, after := range []int64{0, 1, 700_000} {
			s.Put("/b/k", &faultserver.Object{Content: faultserver.Pattern(1 << 20), Gets: []faultserver.Answer{{Fault: faultserver.Reset, After: after}}})
			r, err := client(s).Get(s.URL + "/b/k")
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, r.Body)
			if n != after || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: after %d came %d and %v", name, after, n, err)
			}
			r.Body.Close()
		}
	}
}

func TestAnswersComeInOrderAndTheLastStays(t *testing.T) {
	for name, s := range servers(t) {
		s.Put("/b/k", &faultserver.Object{Content: faultserver.Pattern(10), ETag: `"e"`, Gets: []faultserver.Answer{{Status: 503}, {}, {Status: 404}}})
		var got []int
		for range 4 {
			r, err := client(s).Get(s.URL + "/b/k")
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			got = append(got, r.StatusCode)
		}
		if !slices.Equal(got, []int{503, 200, 404, 404}) || len(s.Requests("GET")) != 4 || len(s.Requests("PUT")) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestList walks lists by pages, as ListObjectsV2 is documented.
func TestList(t *testing.T) {
	s := faultserver.StartPipe()
	defer s.Close()
	for _, key := range []string{"a", "d/1", "d/2", "d/e/3", "e", "d 4"} {
		s.Put("/bkt/"+key, &faultserver.Object{Content: faultserver.Pattern(3)})
	}
	s.Put("/other/a", &faultserver.Object{Content: faultserver.Pattern(3)})
	for query, want := range map[string]string{
		"":                               "a d 4 d/1 d/2 d/e/3 e",
		"&prefix=d/":                     "d/1 d/2 d/e/3",
		"&delimiter=/":                   "a d 4 e d/",
		"&delimiter=/&prefix=d/":         "d/1 d/2 d/e/",
		"&encoding-type=url&prefix=d%20": "d+4",
		"&start-after=d/2":               "d/e/3 e",
		"&prefix=none":                   "",
	} {
		for _, page := range []int{1, 2, 1000} {
			var keys, prefixes []string
			token := ""
			for range 20 {
				r, err := client(s).Get(fmt.Sprintf("%s/bkt?list-type=2&max-keys=%d%s%s", s.URL, page, query, token))
				if err != nil {
					t.Fatal(err)
				}
				var p struct {
					Contents              []struct{ Key string }
					CommonPrefixes        []struct{ Prefix string }
					NextContinuationToken string
				}
				err = xml.NewDecoder(r.Body).Decode(&p)
				r.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range p.Contents {
					keys = append(keys, c.Key)
				}
				for _, c := range p.CommonPrefixes {
					prefixes = append(prefixes, c.Prefix)
				}
				if len(p.Contents)+len(p.CommonPrefixes) > page {
					t.Errorf("a page of %d", len(p.Contents)+len(p.CommonPrefixes))
				}
				if p.NextContinuationToken == "" {
					break
				}
				token = "&continuation-token=" + url.QueryEscape(p.NextContinuationToken)
			}
			if got := strings.Join(append(keys, prefixes...), " "); got != want {
				t.Errorf("%s by %d: %q, want %q", query, page, got, want)
			}
		}
	}
}

func TestUploads(t *testing.T) {
	s := faultserver.StartPipe()
	defer s.Close()
	ask := func(method, query string, body []byte) (int, string, http.Header) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/bkt/k"+query, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r, err := client(s).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text), r.Header
	}
	_, text, _ := ask("POST", "?uploads", nil)
	_, id, _ := strings.Cut(text, "<UploadId>")
	id, _, _ = strings.Cut(id, "<")
	one, two := bytes.Repeat([]byte("1"), 5<<20), []byte("2")
	var list string
	for i, part := range [][]byte{one, two} {
		_, _, h := ask("PUT", fmt.Sprintf("?partNumber=%d&uploadId=%s", i+1, id), part)
		list += fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, h.Get("ETag"))
	}
	if s.Get("/bkt/k") != nil || s.Uploads() != 1 {
		t.Error("something is visible before the end")
	}
	if code, text, _ := ask("POST", "?uploadId="+id, []byte("<CompleteMultipartUpload>"+strings.Replace(list, ">2<", ">3<", 1)+"</CompleteMultipartUpload>")); code != 400 || !strings.Contains(text, "InvalidPart") {
		t.Errorf("a part that is not there: %d %s", code, text)
	}
	if code, text, _ := ask("POST", "?uploadId="+id, []byte("<CompleteMultipartUpload>"+list+"</CompleteMultipartUpload>")); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	if o := s.Get("/bkt/k"); o == nil || o.Content.Size() != 5<<20+1 || s.Uploads() != 0 {
		t.Error("the object is not what was sent")
	}
	if code, _, _ := ask("DELETE", "?uploadId="+id, nil); code != 404 {
		t.Errorf("an upload that has ended: %d", code)
	}
}
