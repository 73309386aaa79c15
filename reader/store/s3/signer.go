package s3

import (
	"context"
	"time"
)

// Signer says what requests are signed with, without telling a secret.
type Signer struct {
	Source  string    // where the credentials are from, in the words of the AWS SDK; "": nothing is signed
	Expires time.Time // the zero time: never, or it is not known
	Region  string    // that is signed for where a bucket's own is not known
}

// Signer finds the credentials, if that was not done yet. None at all are
// ErrDenied, saying what to do.
func (s *Store) Signer(ctx context.Context) (Signer, error) {
	l, err := s.connect(ctx)
	if err != nil {
		return Signer{}, err
	}
	r := Signer{Region: l.region}
	if l.keys == nil {
		return r, nil
	}
	c, err := l.keys.Retrieve(ctx)
	if err != nil {
		return r, s.fault(ctx, target{name: Scheme}, nil, err)
	}
	if r.Source = c.Source; r.Source == "" {
		r.Source = "unnamed"
	}
	if c.CanExpire {
		r.Expires = c.Expires
	}
	return r, nil
}

// Region returns the region in which a bucket is known to be, or that is signed
// for. Both are learnt from requests: before the first it is "".
func (s *Store) Region(bucket string) string {
	if r, ok := s.regions.Load(bucket); ok {
		return r.(string)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return ""
	}
	return s.link.region
}
