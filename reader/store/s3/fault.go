package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"shardtool/format"
	"shardtool/reader/store/remote"
)

// answer is what a server said instead of success.
type answer struct {
	code            int
	reason, message string // the <Code> and <Message> of S3; "" where there was no body
	region          string // where the bucket lives, if the server says so
	header          http.Header
}

// expected is where some servers say the region, if not in a header:
// "The authorization header is malformed; the region 'a' is wrong; expecting 'b'".
var expected = regexp.MustCompile(`expecting '([a-z0-9-]+)'`)

var regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`) // it becomes part of a host's name

// answered returns the answer that err is about, or nil if there was none.
func answered(err error) *answer {
	var r *smithyhttp.ResponseError
	if !errors.As(err, &r) || r.Response == nil || r.Response.Response == nil || r.HTTPStatusCode() == 0 {
		return nil // code 0: the SDK's stand-in for an answer that did not come
	}
	a := &answer{code: r.HTTPStatusCode(), header: r.Response.Header}
	var api smithy.APIError
	if errors.As(err, &api) {
		a.reason, a.message = api.ErrorCode(), api.ErrorMessage()
	}
	a.region = a.header.Get("X-Amz-Bucket-Region")
	if m := expected.FindStringSubmatch(a.message); a.region == "" && a.reason == "AuthorizationHeaderMalformed" && m != nil {
		a.region = m[1]
	}
	if !regionName.MatchString(a.region) {
		a.region = ""
	}
	return a
}

// expired are the answers that new credentials mend.
var expired = map[string]bool{"ExpiredToken": true, "ExpiredTokenException": true, "TokenRefreshRequired": true}

// meanings is what answers are to a reader, by the reason that S3 gives.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
var meanings = map[string]struct {
	sentinel error
	advice   string
}{
	"NoSuchKey":                    {format.ErrNotFound, "there is no object of that name in the bucket"},
	"NoSuchBucket":                 {format.ErrNotFound, "there is no bucket of that name"},
	"NoSuchUpload":                 {format.ErrIO, "the upload is not known, or was ended by someone else"},
	"AccessDenied":                 {format.ErrDenied, "the credentials do not allow it, or do not allow to learn that nothing is there; give others with --aws-profile, --no-sign-request for a public bucket, or --request-payer where the requester pays"},
	"AllAccessDisabled":            {format.ErrDenied, "nobody has access to it"},
	"AccountProblem":               {format.ErrDenied, "the account has a problem that only its owner can mend"},
	"InvalidAccessKeyId":           {format.ErrDenied, "the server does not know the access key; check AWS_ACCESS_KEY_ID, --aws-profile and --endpoint-url"},
	"SignatureDoesNotMatch":        {format.ErrDenied, "the secret access key does not belong to the access key; check AWS_SECRET_ACCESS_KEY or --aws-profile"},
	"ExpiredToken":                 {format.ErrDenied, "the credentials have expired and no newer ones were found; log in again"},
	"ExpiredTokenException":        {format.ErrDenied, "the credentials have expired and no newer ones were found; log in again"},
	"TokenRefreshRequired":         {format.ErrDenied, "the credentials have expired and no newer ones were found; log in again"},
	"InvalidToken":                 {format.ErrDenied, "the session token does not belong to the access key; check AWS_SESSION_TOKEN"},
	"RequestTimeTooSkewed":         {format.ErrDenied, "this machine's clock is wrong; set it"},
	"InvalidObjectState":           {format.ErrUnsupported, "the object is archived; restore it first"},
	"PreconditionFailed":           {format.ErrStale, "the object is not the one that was opened"},
	"InvalidBucketName":            {format.ErrUsage, "no bucket can have that name"},
	"KeyTooLongError":              {format.ErrUsage, "names are at most 1024 bytes long"},
	"EntityTooLarge":               {format.ErrLimit, "the server takes no object so large"},
	"NotImplemented":               {format.ErrUnsupported, "the server cannot do it"},
	"PermanentRedirect":            {format.ErrUsage, "the bucket lives in another region; name it with --region"},
	"TemporaryRedirect":            {format.ErrUsage, "the bucket lives in another region; name it with --region"},
	"AuthorizationHeaderMalformed": {format.ErrUsage, "the bucket lives in another region; name it with --region"},
}

// garbled are the answers to bytes that did not arrive as they were sent: what
// the code of the answer calls the client's fault is the connection's.
var garbled = map[string]bool{"RequestTimeout": true, "IncompleteBody": true, "BadDigest": true, "XAmzContentSHA256Mismatch": true}

// fault is the error of a request as remote takes it: of the context, of the
// connection as it is, or a StatusError. a is nil where there was no answer.
func (s *Store) fault(ctx context.Context, t target, a *answer, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	var c *credentialsError
	var known *format.Error
	switch {
	case errors.As(err, &c) && !c.passing():
		return format.Errorf(format.ErrDenied, format.In(t.name), "%s", c.explain())
	case a == nil && errors.As(err, &known):
		return known
	case errors.Is(err, errLongAnswer):
		return format.Errorf(format.ErrLimit, format.In(t.name), "the server's answer is longer than %d bytes", maxAnswer)
	case a == nil:
		return connection(t, err)
	case a.code < 300: // cut in the middle, or no XML
		return fmt.Errorf("the server's answer cannot be read: %w", unwrapped(err))
	}
	e := &remote.StatusError{Code: a.code, Reason: a.words(t), RetryAfter: remote.RetryAfter(a.header)}
	switch m, ok := meanings[a.reason]; {
	case garbled[a.reason]:
		e.Temporary = true
	case a.busy(): // passes, whatever it is called
	case ok:
		e.Err = m.sentinel
	case a.code/100 == 3:
		e.Err = format.ErrUsage
	case a.code == http.StatusPreconditionFailed:
		e.Err = format.ErrStale
	case a.code == http.StatusNotFound, a.code == http.StatusGone:
		e.Err = format.ErrNotFound
	case a.code == http.StatusUnauthorized, a.code == http.StatusForbidden:
		e.Err = format.ErrDenied
	}
	return e
}

// busy reports whether the server has trouble of its own.
func (a *answer) busy() bool {
	switch a.code {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// words tells an answer: its reason, and what to do or else what the server
// said about it.
func (a *answer) words(t target) string {
	m, ok := meanings[a.reason]
	if a.code/100 == 3 { // to HEAD, without a reason
		m, ok = meanings["PermanentRedirect"], true
	}
	text := a.message
	switch {
	case a.reason == "NoSuchBucket":
		text = fmt.Sprintf("there is no bucket %q", t.bucket)
	case a.region != "" && ok && m.sentinel == format.ErrUsage:
		text = fmt.Sprintf("the bucket %q lives in region %s; name it with --region", t.bucket, a.region)
	case a.reason == "RequestTimeTooSkewed":
		text = m.advice + a.skew()
	case ok && !a.busy():
		text = m.advice
	}
	if a.reason == "" {
		return text
	}
	if text == "" || text == a.reason {
		return a.reason
	}
	return a.reason + ": " + text
}

// skew says how far this machine's clock is from the server's.
func (a *answer) skew() string {
	theirs, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		return ""
	}
	off := time.Since(theirs).Round(time.Second)
	switch {
	case off > 0:
		return fmt.Sprintf(" (it is %v ahead of the server's)", off)
	case off < 0:
		return fmt.Sprintf(" (it is %v behind the server's)", -off)
	}
	return ""
}

// connection is the fault of a request without an answer: of the connection,
// which may do better another time, or of the request itself.
func connection(t target, err error) error {
	var send *smithyhttp.RequestSendError
	if !errors.As(err, &send) {
		return format.Errorf(format.ErrUsage, format.In(t.name), "no request can be made of it: %w", unwrapped(err))
	}
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return format.Errorf(format.ErrIO, format.In(t.name), "the server's certificate is not trusted (AWS_CA_BUNDLE names a file of others): %w", cert)
	}
	return unwrapped(err)
}

// unwrapped takes the layers of the SDK from a fault of the connection.
func unwrapped(err error) error {
	var send *smithyhttp.RequestSendError
	if errors.As(err, &send) && send.Err != nil {
		err = send.Err
	}
	var op *smithy.OperationError
	if errors.As(err, &op) && op.Err != nil {
		err = op.Err
	}
	var u *url.Error // it quotes the address
	if errors.As(err, &u) {
		err = u.Err
	}
	return err
}
