package s3

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
)

// slowMetadata answers after a while, if it is waited for.
type slowMetadata time.Duration

func (s slowMetadata) GetMetadata(ctx context.Context, _ *imds.GetMetadataInput, _ ...func(*imds.Options)) (*imds.GetMetadataOutput, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(s)):
		return &imds.GetMetadataOutput{Content: io.NopCloser(strings.NewReader("role"))}, nil
	}
}

// An address that has never answered is waited for shortly, one that has for
// longer.
func TestInstanceMetadataIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metadata{client: slowMetadata(3 * time.Second)}
		begun := time.Now()
		if _, err := m.GetMetadata(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		m.client = slowMetadata(time.Millisecond)
		out, err := m.GetMetadata(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Content.Close(); err != nil {
			t.Error(err)
		}
		m.client = slowMetadata(3 * time.Second)
		if out, err = m.GetMetadata(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(out.Content); string(got) != "role" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		out.Content.Close()
	})
}
