package echo_test

import (
	"strings"
	"testing"

	"shardtool/echo"
)

func TestWarnings(t *testing.T) {
	buffered := func(o echo.Options) echo.Options { o.Buffer = 4096; return o }
	for _, tt := range []struct {
		name string
		o    echo.Options
		r    float64
		want []string // what each says
	}{
		{"nothing repeated", echo.Options{}, 0.5, nil},
		{"fits", buffered(echo.Options{Factor: 4}), 4, nil},
		{"R not known", buffered(echo.Options{Factor: 4}), 0, nil},
		{"above R", buffered(echo.Options{Factor: 4}), 2.5, []string{"above R, which is 2.5: the last copies of each sample cost time that fresh samples would have; up to 2 they are free"}},
		{"R below 1", buffered(echo.Options{Factor: 2}), 0.8, []string{"R is 0.8: "}},
		{"R of 1", buffered(echo.Options{Factor: 2}), 1, []string{"use no echo"}},
		{"too many", buffered(echo.Options{Factor: 12}), 20, []string{"copies beyond 8"}},
		{"too many, and above R", buffered(echo.Options{Factor: 12}), 3, []string{"above R", "copies beyond 8"}},
		{"no buffer", echo.Options{Factor: 1.5}, 3, []string{"without a buffer: copies stand side by side"}},
		{"no buffer, which the order says", echo.Options{Factor: 2}, 3, nil},
		{"batches without a buffer", echo.Options{Factor: 2, Unit: echo.Batch}, 3, []string{"the same batch comes several steps in a row"}},
		{"shards", echo.Options{Factor: 2, Unit: echo.Shard}, 3, nil},
		{"auto", buffered(echo.Options{Factor: 4, Auto: &echo.Auto{}}), 2, nil},
		{"auto with nothing to gain", buffered(echo.Options{Auto: &echo.Auto{}}), 0.5, nil},
		{"not allowed", echo.Options{Factor: 0.5}, 3, nil},
	} {
		got := echo.Warnings(tt.o, tt.r)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q", tt.name, got)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", tt.name, got[i], want)
			}
		}
	}
}
