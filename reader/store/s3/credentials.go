package s3

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// keys gives out credentials, and finds new ones when a server says that those
// it has are over before their time.
type keys struct {
	find func(context.Context) (aws.CredentialsProvider, error) // anew, by reading environment and files again

	mu     sync.Mutex
	source aws.CredentialsProvider
	found  bool // once
}

// spent is where keys notes, in a request's context, what it was signed with.
type spent struct{}

func (k *keys) Retrieve(ctx context.Context) (aws.Credentials, error) {
	k.mu.Lock()
	source := k.source
	k.mu.Unlock()
	c, err := source.Retrieve(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return c, err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		return c, &credentialsError{err, k.found}
	}
	if note, ok := ctx.Value(spent{}).(*aws.Credentials); ok {
		*note = c
	}
	k.mu.Lock()
	k.found = true
	k.mu.Unlock()
	return c, nil
}

// renew replaces credentials that a server has called expired, unless another
// request has done so already. The files are read again: a tool outside may
// have written new ones.
func (k *keys) renew(ctx context.Context, expired aws.Credentials) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := k.source.Retrieve(ctx)
	if err == nil && !same(now, expired) {
		return nil
	}
	if cache, ok := k.source.(*aws.CredentialsCache); ok {
		cache.Invalidate()
		if now, err = cache.Retrieve(ctx); err == nil && !same(now, expired) {
			return nil
		}
	}
	source, err := k.find(ctx)
	if err == nil {
		k.source = source
	}
	return err
}

func same(a, b aws.Credentials) bool {
	return a.AccessKeyID == b.AccessKeyID && a.SecretAccessKey == b.SecretAccessKey && a.SessionToken == b.SessionToken
}

// credentialsError says that a request could not be signed.
type credentialsError struct {
	err error
	had bool // there were credentials before
}

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// passing reports whether the fault may pass: a service that gives out
// credentials did not answer, and it has before.
func (e *credentialsError) passing() bool {
	var n net.Error
	return e.had && errors.As(e.err, &n)
}

// explain says what to do.
func (e *credentialsError) explain() string {
	// The instance's metadata is what the chain asks last.
	if text := e.err.Error(); strings.Contains(text, imds.ServiceID) || strings.Contains(text, "IMDS") {
		return "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with --aws-profile, or give --no-sign-request for public buckets"
	}
	return "the credentials could not be had: " + e.err.Error()
}

// instanceRole asks a cloud machine's own address for credentials, of which
// other machines have none: there the answer must not take long.
func instanceRole(o *ec2rolecreds.Options) {
	dialer := &net.Dialer{Timeout: 250 * time.Millisecond}
	options := imds.Options{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}}
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), "IPv6") {
		options.EndpointMode = imds.EndpointModeStateIPv6
	}
	o.Client = &metadata{client: imds.New(options)}
}

const (
	firstMetadataWait = time.Second     // until the address has answered once
	laterMetadataWait = 5 * time.Second // where it must be, only busy
)

// metadata bounds how long the instance's metadata may take.
type metadata struct {
	client ec2rolecreds.GetMetadataAPIClient

	mu       sync.Mutex
	answered bool
}

func (m *metadata) GetMetadata(ctx context.Context, in *imds.GetMetadataInput, o ...func(*imds.Options)) (*imds.GetMetadataOutput, error) {
	m.mu.Lock()
	wait := firstMetadataWait
	if m.answered {
		wait = laterMetadataWait
	}
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, wait)
	out, err := m.client.GetMetadata(ctx, in, o...)
	if err != nil {
		cancel()
		return nil, err
	}
	m.mu.Lock()
	m.answered = true
	m.mu.Unlock()
	out.Content = &cancelled{out.Content, cancel}
	return out, nil
}
