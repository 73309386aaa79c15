package remote

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"shardtool/format"
)

// Redact is format.Redact.
func Redact(name string) string { return format.Redact(name) }

func cutScheme(name string) (rest string, ok bool) {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(name) >= len(scheme) && strings.EqualFold(name[:len(scheme)], scheme) {
			return name[len(scheme):], true
		}
	}
	return name, false
}

// redactText redacts the addresses that stand in a text.
func redactText(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		if _, ok := cutScheme(text[i:]); !ok {
			b.WriteByte(text[i])
			i++
			continue
		}
		n := strings.IndexAny(text[i:], " \t\r\n\"'<>")
		if n < 0 {
			n = len(text) - i
		}
		b.WriteString(Redact(text[i : i+n]))
		i += n
	}
	return b.String()
}

// plain strips an error of what it must not tell: net/http puts the whole
// address into its errors.
func plain(err error) error {
	var address *url.Error
	for errors.As(err, &address) {
		err = address.Err
	}
	if e := format.AsError(err); e != nil {
		return e
	}
	switch e := err.(type) {
	case *StatusError:
		c := *e
		c.Reason = redactText(c.Reason)
		return &c
	case shortError, stallError:
		return err
	}
	var status *StatusError
	if errors.As(err, &status) {
		return plain(status)
	}
	return &plainError{redactText(err.Error()), err}
}

// plainError has the text of another error, redacted, and is what that one is.
// It does not unwrap, so that nobody comes upon the text below; and the
// timeouts of dialers are not those of a caller's context, though they say so.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.err, target)
}

func (e *plainError) As(target any) bool { return errors.As(e.err, target) }
