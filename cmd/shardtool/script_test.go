package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"shardtool/reader/store/faultserver"
)

// scriptCommands is what scripts can do besides running the command. The
// variables FIXTURES and CASES name the folders of fixtures and of cases.
// SERVER is the address of an HTTP server that holds what put gives it; it is
// also the S3 server of s3:// names, and the proxy to any http:// host.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":  scriptExits,
	"json":   scriptJSON,
	"rows":   scriptRows,
	"sha256": scriptSHA256,
	"flip":   scriptFlip,
	"cut":    scriptCut,
	"nofile": scriptNoFile,
	"put":    scriptPut,
	"get":    scriptGet,
	"gone":   scriptGone,
	"same":   scriptSame,
}

func scriptUsage(ts *testscript.TestScript, bad bool, usage string) {
	if bad {
		ts.Fatalf("usage: %s", usage)
	}
}

// exits CODE command args...: runs a command as exec does and wants that exit
// code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) < 2, "exits CODE command args...")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// json FILE ROW PATH WANT: the member at a path such as errors.0.class of row
// ROW (from 0) of a JSON Lines file, or of stdout, equals the JSON value WANT;
// a WANT that is no JSON is a string. "!" wants the member to be absent or
// different.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, len(args) != 4, "[!] json FILE ROW PATH WANT")
	rows := jsonRows(ts, args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n >= len(rows) {
		ts.Fatalf("%d rows", len(rows))
	}
	got, found := jsonMember(rows[n], args[2])
	var want any
	if json.Unmarshal([]byte(args[3]), &want) != nil {
		want = args[3]
	}
	if same := found && reflect.DeepEqual(got, want); same == neg {
		b, _ := json.Marshal(got)
		ts.Fatalf("%s of row %d is %s (there: %v)", args[2], n, b, found)
	}
}

// same FILE FILE PATH: the first rows of two JSON Lines files have an equal
// member at a path.
func scriptSame(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, len(args) != 3, "[!] same FILE FILE PATH")
	a, inA := jsonMember(jsonRows(ts, args[0])[0], args[2])
	b, inB := jsonMember(jsonRows(ts, args[1])[0], args[2])
	if !inA || !inB || reflect.DeepEqual(a, b) == neg {
		ts.Fatalf("%s: %v and %v", args[2], a, b)
	}
}

// rows FILE N: a JSON Lines file, or stdout, has N rows.
func scriptRows(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) != 2, "rows FILE N")
	if rows := jsonRows(ts, args[0]); strconv.Itoa(len(rows)) != args[1] {
		ts.Fatalf("%d rows, want %s", len(rows), args[1])
	}
}

func jsonRows(ts *testscript.TestScript, name string) []any {
	var rows []any
	for line := range strings.Lines(ts.ReadFile(name)) {
		var row any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			ts.Fatalf("not JSON: %s", line)
		}
		rows = append(rows, row)
	}
	return rows
}

func jsonMember(v any, path string) (any, bool) {
	if path == "." {
		return v, true
	}
	for _, name := range strings.Split(path, ".") {
		switch c := v.(type) {
		case map[string]any:
			m, ok := c[name]
			if !ok {
				return nil, false
			}
			v = m
		case []any:
			if name == "#" {
				v = float64(len(c))
				continue
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// sha256 FILE HEX: the file, or stdout, has that digest.
func scriptSHA256(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, len(args) != 2, "[!] sha256 FILE HEX")
	sum := sha256.Sum256([]byte(ts.ReadFile(args[0])))
	if got := hex.EncodeToString(sum[:]); (got == args[1]) == neg {
		ts.Fatalf("sha256 is %s", got)
	}
}

// flip FILE OFFSET: inverts the bits of one byte; a negative offset counts
// from the end.
func scriptFlip(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) != 2, "flip FILE OFFSET")
	editFile(ts, args[0], args[1], func(b []byte, at int) []byte {
		b[at] ^= 0xff
		return b
	})
}

// cut FILE SIZE: keeps the first SIZE bytes; a negative size counts from the
// end.
func scriptCut(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) != 2, "cut FILE SIZE")
	editFile(ts, args[0], args[1], func(b []byte, at int) []byte { return b[:at] })
}

func editFile(ts *testscript.TestScript, name, place string, edit func(b []byte, at int) []byte) {
	path := ts.MkAbs(name)
	b, err := os.ReadFile(path)
	ts.Check(err)
	at, err := strconv.Atoi(place)
	ts.Check(err)
	if at < 0 {
		at += len(b)
	}
	if at < 0 || at >= len(b) {
		ts.Fatalf("%s has %d bytes", name, len(b))
	}
	ts.Check(os.WriteFile(path, edit(b, at), 0o666))
}

// nofile GLOB: nothing matches, hidden files included.
func scriptNoFile(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) != 1, "nofile GLOB")
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) > 0 {
		ts.Fatalf("there are %v", found)
	}
}

type serverKey struct{}

func scriptServer(ts *testscript.TestScript) *faultserver.Server {
	return ts.Value(serverKey{}).(*faultserver.Server)
}

// put FILE BUCKET/KEY...: the server holds the file under each name.
func scriptPut(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) < 2, "put FILE BUCKET/KEY...")
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, name := range args[1:] {
		scriptServer(ts).Put("/"+name, &faultserver.Object{Content: faultserver.Bytes(b), ETag: faultserver.Sum(b)})
	}
}

// get BUCKET/KEY FILE: what the server holds becomes a file.
func scriptGet(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg || len(args) != 2, "get BUCKET/KEY FILE")
	o := scriptServer(ts).Get("/" + args[0])
	if o == nil {
		ts.Fatalf("the server has no %s", args[0])
	}
	b, err := io.ReadAll(io.NewSectionReader(o.Content, 0, o.Content.Size()))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

// gone BUCKET/KEY...: the server holds none of them, and no unfinished upload.
func scriptGone(ts *testscript.TestScript, neg bool, args []string) {
	scriptUsage(ts, neg, "gone BUCKET/KEY...")
	for _, name := range args {
		if scriptServer(ts).Get("/"+name) != nil {
			ts.Fatalf("the server has %s", name)
		}
	}
	if n := scriptServer(ts).Uploads(); n > 0 {
		ts.Fatalf("%d unfinished uploads", n)
	}
}
