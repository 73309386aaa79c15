package remote

import (
	"crypto/tls"
	"encoding/xml"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// NewTransport returns a transport for a driver on HTTP, which keeps as many
// idle connections as there may be requests in flight.
//
// It speaks HTTP/1.1: many connections are the point, where HTTP/2 would share
// one. It inflates nothing, for what is stored is what is wanted; a driver says
// so with "Accept-Encoding: identity". It waits for the headers of an answer
// without a limit of its own, since the client cuts what stalls. Proxies are
// those of the environment.
func NewTransport(connections int) *http.Transport {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxIdleConnsPerHost:   connections,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		ReadBufferSize:        16 << 10,
		WriteBufferSize:       64 << 10,
	}
}

// StatusOf makes an error of an answer that is not success. It reads at most
// 16 KiB of the body, for the code and the message that object stores send in
// XML, and leaves closing it to the caller.
func StatusOf(r *http.Response) *StatusError {
	e := &StatusError{Code: r.StatusCode, RetryAfter: RetryAfter(r.Header)}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 16<<10)) // the status stands without it
	var said struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}
	if xml.Unmarshal(body, &said) == nil && said.Code != "" {
		e.Reason = said.Code
		if said.Message != "" {
			e.Reason += ": " + strings.TrimSpace(said.Message)
		}
	}
	return e
}
