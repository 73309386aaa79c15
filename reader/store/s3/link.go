package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"

	"shardtool/format"
	"shardtool/reader/store/remote"
)

const defaultRegion = "us-east-1" // from where every bucket's own can be learnt

// link is what requests go through.
type link struct {
	s3     *s3.Client
	region string
	keys   *keys // nil: nothing is signed
	rt     http.RoundTripper
}

func (l *link) idle() {
	if t, ok := l.rt.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// connect returns the link, and makes it the first time.
func (s *Store) connect(ctx context.Context) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		return s.link, nil
	}
	l, err := s.newLink(ctx)
	if err == nil {
		s.link = l
	}
	return l, err
}

func (s *Store) newLink(ctx context.Context) (*link, error) {
	if e := s.opt.Endpoint; e != "" && !strings.HasPrefix(e, "http://") && !strings.HasPrefix(e, "https://") {
		return nil, format.Errorf(format.ErrUsage, format.Nowhere, "the endpoint %q does not begin with http:// or https://", remote.Redact(e))
	}
	cfg, err := s.config(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{region: cfg.Region, rt: s.opt.Transport}
	if l.region == "" {
		l.region = defaultRegion
	}
	if l.rt == nil {
		l.rt = transport(cfg, s.remote)
	}
	if s.opt.Wrap != nil {
		l.rt = s.opt.Wrap(l.rt)
	}
	if s.opt.NoSign {
		cfg.Credentials = aws.AnonymousCredentials{}
	} else {
		l.keys = &keys{source: s.provider(cfg), find: func(ctx context.Context) (aws.CredentialsProvider, error) {
			cfg, err := s.config(ctx)
			return s.provider(cfg), err
		}}
		cfg.Credentials = l.keys
	}
	l.s3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		if s.opt.Endpoint != "" {
			o.BaseEndpoint = &s.opt.Endpoint
		}
		o.Region = l.region
		o.UsePathStyle = s.opt.PathStyle || o.BaseEndpoint != nil && !s.opt.VirtualHost
		o.HTTPClient = wire{l.rt}
		o.Retryer = aws.NopRetryer{} // remote tries again, and knows from where
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.Logger = logging.Nop{}
	})
	return l, nil
}

// config reads the environment and the files of the AWS tools.
func (s *Store) config(ctx context.Context) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}),
		config.WithEC2RoleCredentialOptions(instanceRole),
	}
	if s.opt.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(s.opt.Profile))
	}
	if s.opt.Region != "" {
		options = append(options, config.WithRegion(s.opt.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		if ctx.Err() != nil {
			return cfg, ctx.Err()
		}
		return cfg, format.Errorf(format.ErrUsage, format.Nowhere, "the AWS configuration cannot be used: %w", err)
	}
	return cfg, nil
}

func (s *Store) provider(cfg aws.Config) aws.CredentialsProvider {
	if s.opt.Credentials == nil {
		return cfg.Credentials
	}
	if cache, ok := s.opt.Credentials.(*aws.CredentialsCache); ok {
		return cache
	}
	return aws.NewCredentialsCache(s.opt.Credentials)
}

// transport is remote's, with the certificates of AWS_CA_BUNDLE or of the
// profile's ca_bundle.
func transport(cfg aws.Config, c *remote.Client) *http.Transport {
	t := remote.NewTransport(c.Connections())
	b, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		return t
	}
	if theirs := b.GetTransport().TLSClientConfig; theirs != nil && theirs.RootCAs != nil {
		ours := theirs.Clone()
		if t.TLSClientConfig != nil {
			ours = t.TLSClientConfig.Clone()
			ours.RootCAs = theirs.RootCAs
		}
		t.TLSClientConfig = ours
	}
	return t
}

// wire sends the requests. It follows no redirects: a signature holds for one
// host. And it bounds what the decoders of XML may be made to read.
type wire struct {
	rt http.RoundTripper
}

const (
	maxAnswer = 8 << 20 // of a page of a listing: 1000 names of 1024 bytes, each escaped to six at most
	maxFault  = 1 << 20 // of an answer that is no success
)

// content marks the context of a request whose answer is an object's bytes.
type content struct{}

func (w wire) Do(r *http.Request) (*http.Response, error) {
	resp, err := w.rt.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode >= 300:
		resp.Body = &bounded{resp.Body, maxFault}
	case r.Context().Value(content{}) == nil:
		resp.Body = &bounded{resp.Body, maxAnswer}
	}
	return resp, nil
}

type bounded struct {
	io.ReadCloser
	left int64
}

var errLongAnswer = errors.New("the server's answer does not end")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongAnswer
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (s *Store) payer() types.RequestPayer {
	if s.opt.RequestPayer {
		return types.RequestPayerRequester
	}
	return ""
}

// request is one request of the SDK; what it is asked for goes into o.
type request func(ctx context.Context, l *link, o func(*s3.Options)) error

// small makes a request whose answer is small, under the budget and with the
// retries of remote.
func (s *Store) small(ctx context.Context, t target, f request) error {
	return s.remote.Do(ctx, t.name, func(ctx context.Context) error { return s.ask(ctx, t, f) })
}

// ask makes one request and, where the answer tells at once what will mend it,
// that one again: the bucket lives in another region, or credentials have
// expired. Its errors are those that remote asks of a driver.
func (s *Store) ask(ctx context.Context, t target, f request) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var moved, renewed bool
	for {
		var used aws.Credentials
		region := l.region
		if r, ok := s.regions.Load(t.bucket); ok {
			region = r.(string)
		}
		err := f(context.WithValue(ctx, spent{}, &used), l, func(o *s3.Options) { o.Region = region })
		if err == nil {
			s.there.Store(t.bucket, true)
			return nil
		}
		a := answered(err)
		switch {
		case a != nil && !moved && a.region != "" && a.region != region:
			moved = true
			s.regions.Store(t.bucket, a.region)
			if s.opt.Log != nil {
				s.opt.Log.Debug("s3: the bucket lives in another region", "bucket", t.bucket, "region", a.region, "instead", region)
			}
		case a != nil && !renewed && l.keys != nil && expired[a.reason]:
			renewed = true
			if s.opt.Log != nil {
				s.opt.Log.Debug("s3: credentials have expired and are renewed", "bucket", t.bucket)
			}
			if err := l.keys.renew(ctx, used); err != nil {
				return s.fault(ctx, t, a, &credentialsError{err, true})
			}
		default:
			return s.fault(ctx, t, a, err)
		}
	}
}
