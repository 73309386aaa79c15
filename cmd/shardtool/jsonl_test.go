package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRows(t *testing.T) {
	type inner struct {
		Class string `json:"class"`
	}
	type base struct {
		Shard string `json:"shard"`
	}
	text := "é\n\"\\\x01<>&\x7f"
	for _, tt := range []struct {
		row  any
		want string
	}{
		{struct {
			base
			Key    []byte           `json:"key"`
			Index  int64            `json:"index"`
			Big    int64            `json:"big"`
			Small  uint64           `json:"small"`
			Edge   int64            `json:"edge"`
			Error  *inner           `json:"error"`
			Gone   string           `json:"gone,omitempty"`
			Hidden int              `json:"-"`
			Counts map[string]int64 `json:"counts"`
			List   []inner          `json:"list"`
		}{base: base{"s"}, Key: []byte("k"), Index: -3, Big: math.MinInt64, Small: math.MaxUint64, Edge: 1 << 53, Counts: map[string]int64{"b": 2, "a": 1}},
			`{"shard":"s","key":"k","index":-3,"big":"-9223372036854775808","small":"18446744073709551615","edge":9007199254740992,"error":null,"counts":{"a":1,"b":2},"list":[]}`},
		{struct {
			Key []byte `json:"key"`
		}{[]byte{0xff, 'a'}}, `{"key_b64":"/2E="}`},
		{struct {
			Key string `json:"key"`
		}{"\xff"}, `{"key_b64":"/w=="}`},
		{struct {
			Keys [][]byte `json:"keys"`
		}{[][]byte{[]byte("ok"), {0xff}}}, `{"keys_b64":["b2s=","/w=="]}`},
		{struct {
			Keys []string `json:"keys"`
		}{[]string{"ok", "é"}}, `{"keys":["ok","é"]}`},
		{struct {
			Value any `json:"value"`
		}{[]byte{0xff}}, `{"value_b64":"/w=="}`},
		{map[string]any{"\xff": 1, "a": []any{1.5, "x", nil, true}}, `{"a":[1.5,"x",null,true],"/w==_b64":1}`},
		{[]float64{0, -0.5, 1e-7, 1e21, 123456789, math.NaN(), math.Inf(1), math.Inf(-1), 1 << 60}, `[0,-0.5,1e-07,1e+21,123456789,"NaN","Infinity","-Infinity",1152921504606847000]`},
		{[]float32{0.1, float32(math.Inf(1))}, `[0.1,"Infinity"]`},
		{text, `"é\n\"\\\u0001<>&\u007f"`},
		{&inner{"x"}, `{"class":"x"}`},
	} {
		var e encoder
		for range 2 {
			line, err := e.line(tt.row)
			if err != nil || string(line) != tt.want+"\n" {
				t.Errorf("got  %s%v\nwant %s", line, err, tt.want)
			}
		}
	}
	for _, bad := range []any{make(chan int), map[int]int{1: 1}, struct{ F func() }{}} {
		var e encoder
		if line, err := e.line(bad); err == nil {
			t.Errorf("%T: %s", bad, line)
		}
	}
}

// FuzzText holds our strings against encoding/json's reading of them.
// Names of shards and errors keep control characters off the terminal.
func TestVisible(t *testing.T) {
	for in, want := range map[string][2]string{ // as a name, and in a line
		"a b/é-00.tar": {"a b/é-00.tar", "a b/é-00.tar"},
		`c:\x.tar`:     {`c:\x.tar`, `c:\x.tar`},
		"a\nb":         {`"a\nb"`, `a\nb`},
		"\x1b[31m":     {`"\x1b[31m"`, `\x1b[31m`},
		"\x9bm":        {`"\x9bm"`, `\x9bm`},
		"\u202etxt":    {`"\u202etxt"`, `\u202etxt`},
	} {
		if got := [2]string{shown(in), visible(in)}; got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	path := filepath.Join(t.TempDir(), "a\x1b\n.tar")
	if err := os.WriteFile(path, tarOf(t, "0.jpg"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"verify", "inspect", "stats", "cat", "index"} {
		args := []string{verb, path}
		if verb == "stats" {
			args = append(args, "--each")
		}
		code, stdout, stderr := runCommand(t, "", args...)
		if strings.Contains(stdout+stderr, "\x1b") || !strings.Contains(stdout, `a\x1b\n.tar`) {
			t.Errorf("%s: exit %d, %q, %q", verb, code, stdout, stderr)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", "\u2028", "\x00\x1f\x7f\"\\/", "\xff", "é😀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var e encoder
		line, err := e.line(map[string]any{"v": s, "list": []string{s}})
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			V       string   `json:"v"`
			B64     []byte   `json:"v_b64"`
			List    []string `json:"list"`
			ListB64 [][]byte `json:"list_b64"`
		}
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%q: %s: %v", s, line, err)
		}
		if utf8.ValidString(s) {
			if back.V != s || len(back.List) != 1 || back.List[0] != s {
				t.Errorf("%q: %s", s, line)
			}
		} else if string(back.B64) != s || len(back.ListB64) != 1 || string(back.ListB64[0]) != s {
			t.Errorf("%q: %s", s, line)
		}
	})
}
