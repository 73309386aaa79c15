package echo_test

import (
	"errors"
	"math"
	"testing"

	"shardtool/echo"
	"shardtool/format"
	"shardtool/reader/order"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		in   echo.Options
		want error
		keep echo.Level
	}{
		{echo.Options{}, nil, echo.Bytes},
		{echo.Options{Factor: 2}, nil, echo.Bytes},
		{echo.Options{Factor: 1.5, Keep: echo.Bytes}, nil, echo.Bytes},
		{echo.Options{Factor: 2, Unit: echo.Batch}, nil, echo.Batched},
		{echo.Options{Factor: 1, Keep: echo.Decoded}, nil, echo.Decoded},
		{echo.Options{Factor: 1, Unit: echo.Shard}, nil, echo.Bytes},
		{echo.Options{Factor: 2, Keep: echo.Decoded}, nil, echo.Decoded},
		{echo.Options{Factor: 2, Keep: echo.Augmented}, nil, echo.Augmented},
		{echo.Options{Factor: 2, Unit: echo.Shard}, nil, echo.Bytes},
		{echo.Options{Factor: 2, Buffer: 10}, nil, echo.Bytes},
		{echo.Options{Factor: 2, Unit: echo.Batch, Buffer: 3}, nil, echo.Batched},
		{echo.Options{Keep: echo.Batched}, format.ErrUsage, 0},
		{echo.Options{Unit: echo.Batch, Keep: echo.Bytes}, format.ErrUsage, 0},
		{echo.Options{Unit: echo.Batch, Keep: echo.Decoded}, format.ErrUsage, 0},
		{echo.Options{Unit: echo.Shard, Keep: echo.Augmented}, format.ErrUsage, 0},
		{echo.Options{Factor: 0.5}, format.ErrUsage, 0},
		{echo.Options{Factor: -1}, format.ErrUsage, 0},
		{echo.Options{Factor: math.NaN()}, format.ErrUsage, 0},
		{echo.Options{Buffer: -1}, format.ErrUsage, 0},
		{echo.Options{Bytes: -1}, format.ErrUsage, 0},
		{echo.Options{Auto: &echo.Auto{}}, nil, echo.Bytes},
		{echo.Options{Auto: &echo.Auto{Segment: -1}}, format.ErrUsage, 0},
		{echo.Options{Unit: echo.Shard, Auto: &echo.Auto{}}, nil, echo.Bytes},
		{echo.Options{Unit: echo.Shard, Auto: &echo.Auto{Segment: 100}}, format.ErrUsage, 0},
	} {
		got, f, err := tt.in.Check()
		if !errors.Is(err, tt.want) || err != nil && format.Sentinel(err) != tt.want {
			t.Errorf("%+v: %v, want %v", tt.in, err, tt.want)
		}
		if err == nil && (got.Keep != tt.keep || f.Float64() != got.Factor || got.Factor < 1) {
			t.Errorf("%+v became %+v, %v", tt.in, got, f)
		}
	}
}

func TestAccount(t *testing.T) {
	var a echo.Account
	if a.Factor() != 0 {
		t.Error("a factor of nothing")
	}
	a.Add([]order.Ref{{}, {Copy: 1}, {Index: 1}, {Index: 1, Copy: 1}, {Index: 1, Copy: 2}, {Index: 0, Kind: order.Wrapped}})
	a.Add([]order.Ref{{Kind: order.Padding, Shard: -1, Index: -1}})
	if a.Fresh != 2 || a.Emitted != 6 || a.Factor() != 3 {
		t.Errorf("%+v, %v", a, a.Factor())
	}
}
