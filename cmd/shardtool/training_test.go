package main

import (
	"strings"
	"testing"

	"shardtool/echo"
	"shardtool/reader/order"
)

func TestParseColumns(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // what describes the columns, by "|"; or "!" and the error
	}{
		{"", "!no kind of column"},
		{"key", "key"},
		{"location", "location"},
		{"int64:cls", "cls: dense int64"},
		{"int64:cls,float32:score", "cls: dense int64|score: dense float32"},
		{"int64:a;b:hole", "a;b: dense int64|or a hole"},
		{"float32:score:or=0.5", "score: dense float32|or 4 bytes"},
		{"dense:vec:float32:16", "vec: |float32|16"},
		{"dense:box:uint8:3x8x8", "box: |uint8|3 8 8"},
		{"padded:input_ids:int64:512", "input_ids: |int64|512"},
		{"padded:ids:int32:512:truncate:pad=-1:buckets=128;256:inner=2", "ids: |int32|512|128|256|2"},
		{"padded:ids:int64:4:or=1;2", "ids: |or 32 bytes|in 2 rows"},
		{"ragged:ids:int64", "ids: |int64"},
		{"ragged:boxes:float32:4", "boxes: |float32|4"},
		{"bytes:txt:or=none", "txt: bytes|or 4 bytes"},
		{`bytes:odd\,na\:me`, "odd,na:me: bytes"},
		{"image:jpg;png:64", "jpg;png: |64"},
		{"image:jpg:64:eval", "jpg: |64"},
		{"image", "jpg;jpeg;png;webp;gif;image/encoded;image: |224"},
		{"int65:cls", "!int65:cls: no kind of column: they are"},
		{"int64", "!the field is missing"},
		{"key:x", "!key has no field"},
		{"int64:cls:5", `!"5" means nothing to int64`},
		{"int64:cls:pad=5", `!"pad=" means nothing to int64`},
		{"int64:cls:or=x", "!or=x: numbers"},
		{"int64:cls:or=0.5", "!int64"},
		{"dense:vec", `!the type "" is none`},
		{"dense:vec:float31:2", `!the type "float31" is none`},
		{"dense:vec:float32", `!the shape "" is none`},
		{"dense:vec:float32:2x0", `!the shape "2x0" is none`},
		{"padded:ids:int64", "!the length is missing"},
		{"padded:ids:int64:8:buckets=9", "!bucket"},
		{"image:jpg:9000", "!not within 1 to 8192"},
		{"image:jpg:small", "!not within 1 to 8192"},
	} {
		columns, err := parseColumns([]string{tt.text})
		var got string
		for i := range columns {
			got += columns[i].Describe() + "\n"
		}
		if want, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", tt.text, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		for _, part := range strings.Split(tt.want, "|") {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s, want %q in it", tt.text, got, part)
			}
		}
	}
	if columns, err := parseColumns(nil); err != nil || len(columns) != 1 {
		t.Errorf("by default %v, %v", columns, err)
	}
	if columns, err := parseColumns([]string{"key,int64:cls", "bytes:txt"}); err != nil || len(columns) != 3 {
		t.Errorf("%v, %v", columns, err)
	}
}

func TestParseShuffle(t *testing.T) {
	for text, want := range map[string]order.Shuffle{
		"none": order.None, "global": order.Global, "block:16": order.Block(16), "stream:8,1000": order.Stream(8, 1000),
	} {
		if got, err := parseShuffle(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "all", "none:1", "global:2", "block", "block:", "block:0", "block:2,3", "stream:8", "stream:8,x", "stream:8,1,2"} {
		if got, err := parseShuffle(text); exitCode(err) != exitUsage {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestParseEcho(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "2": 2, "1.5": 1.5, "16e0": 16} {
		var o echo.Options
		if err := parseEcho(text, &o); err != nil || o.Factor != want || o.Auto != nil {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
	var auto echo.Options
	if err := parseEcho("auto", &auto); err != nil || auto.Factor != 1 || auto.Auto == nil {
		t.Errorf("%+v, %v", auto, err)
	}
	if f, err := auto.Auto.Agree(t.Context(), echo.Proposal{Factor: 3}); f != 3 || err != nil {
		t.Errorf("agreed on %v, %v", f, err)
	}
	for _, text := range []string{"", "0", "two", "1,5", "2x"} {
		if err := parseEcho(text, &echo.Options{}); exitCode(err) != exitUsage {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"0.5", "-1", "NaN", "Inf", "1e9"} { // numbers, but no factors
		var o echo.Options
		if err := parseEcho(text, &o); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if _, _, err := o.Check(); exitCode(err) != exitUsage {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseAccelerator(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "2500/s": 2500, "0.5/s": 0.5, "40": 40, "1e3 /s": 1000} {
		if got, err := parseAccelerator(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"/s", "0/s", "-1/s", "NaN", "Inf/s", "2500/min", "fast"} {
		if got, err := parseAccelerator(text); exitCode(err) != exitUsage {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
