package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// The documents' examples are run as they stand. In a block of ```console,
//
//	$ shardtool verify bad.tar   # exit 1
//	bad.tar: 2 faults
//	...
//
// a line that begins with "$ " is a command of the shell, up to the next such
// line or the end of the block its output, standard output and error together;
// a trailing backslash goes on in the next line. What is run are commands in
// which the word shardtool stands, or "go run ./cmd/shardtool", which is the
// same here, as a command; others (go test, ls) are not. "# exit N" at the end of a command
// is the exit code that is wanted, else 0; "# not run" says why it cannot be
// shown here. Output is compared if any is shown: a line "..." is any number of
// lines, "..." within a line any text. Without a line of output anything goes.
//
// The commands of one document run in one new folder, in order, in which
// fixtures/ is what it is in the repository. A server on the loopback is S3, with
// some of the fixtures in s3://bucket, and the proxy to http://data.example,
// which is the same bucket.

// docExample is one command of a document.
type docExample struct {
	line    int // of the document
	command string
	exit    int
	output  []string // as shown; nil: not compared
}

var (
	docTool = regexp.MustCompile(`(^|[;|&(])\s*shardtool\s`)
	docExit = regexp.MustCompile(`\s#\s*exit ([0-9]+)\s*$`)
	docSkip = regexp.MustCompile(`\s#\s*not run\b`)
)

// docExamples takes the examples out of a document.
func docExamples(text string) []docExample {
	var examples []docExample
	var current *docExample
	inBlock, more := false, false
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock && strings.TrimSpace(line) == "```console"
			current, more = nil, false
		case !inBlock:
		case more:
			current.command += "\n" + line
			more = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, "$ "):
			examples = append(examples, docExample{line: i + 1, command: line[2:]})
			current = &examples[len(examples)-1]
			more = strings.HasSuffix(line, `\`)
		case current != nil:
			current.output = append(current.output, line)
		}
	}
	kept := examples[:0]
	for _, e := range examples {
		e.command = strings.ReplaceAll(e.command, "go run ./cmd/shardtool", "shardtool")
		if !docTool.MatchString(e.command) || docSkip.MatchString(e.command) {
			continue
		}
		if m := docExit.FindStringSubmatch(e.command); m != nil {
			e.exit, _ = strconv.Atoi(m[1])
		}
		kept = append(kept, e)
	}
	return kept
}

// docMatches compares output with what a document shows.
func docMatches(shown []string, output string) bool {
	var re strings.Builder
	re.WriteString(`\A`)
	for _, line := range shown {
		if strings.TrimSpace(line) == "..." {
			re.WriteString(`(?:.*\n)*`)
			continue
		}
		parts := strings.Split(strings.TrimRight(line, " "), "...")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		re.WriteString(strings.Join(parts, `.*`) + ` *\n`)
	}
	re.WriteString(`\z`)
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return regexp.MustCompile(re.String()).MatchString(output)
}

func TestDocuments(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a POSIX shell")
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append([]string{"../../README.md"}, documents...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(fixturesFolder(t), filepath.Join(dir, "fixtures")); err != nil {
				t.Fatal(err)
			}
			env := docEnv(t, dir)
			for _, e := range docExamples(string(text)) {
				runExample(t, dir, env, e)
			}
		})
	}
}

// docEnv starts the server of a document.
func docEnv(t *testing.T, dir string) []string {
	s := startServer(t)
	for name, file := range map[string]string{
		"train/photos-000000.tar": "photos/photos-000000.tar", "damaged.tfrecord": "cases/tfrecord/c3_flip_length.tfrecord",
	} {
		o := object(fixture(t, file))
		s.Put("/bucket/"+name, o)
		s.Put("/"+name, o) // of http://data.example
	}
	env := append(os.Environ(), "GORACE="+raceExit, "XDG_CACHE_HOME="+filepath.Join(dir, ".cache"))
	return append(append(env, serverEnv(s)...), proxyEnv(s)...)
}

func runExample(t *testing.T, dir string, env []string, e docExample) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", e.command)
	cmd.Dir = dir
	cmd.Env = env
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != e.exit {
		t.Errorf("line %d: $ %s\nexit %d, want %d\n%s", e.line, e.command, code, e.exit, output)
		return
	}
	if e.output != nil && !docMatches(e.output, string(output)) {
		t.Errorf("line %d: $ %s\nprints\n%sthe document shows\n%s", e.line, e.command, output, strings.Join(e.output, "\n"))
	}
}

func TestDocExamples(t *testing.T) {
	text := strings.Join([]string{
		"text $ shardtool no", "```console", "$ shardtool verify a.tar  # exit 1", "a.tar: bad", "$ go test ./...", "ok", "$ go run ./cmd/shardtool bench \\",
		"    --json", "$ cat a | shardtool cat -", "...", "$ shardtool cat s3://b/c  # not run: needs a bucket", "$ go build -o shardtool.exe ./x", "```",
		"```sh", "$ shardtool no", "```", "```console", "$ ls", "```",
	}, "\n")
	got := docExamples(text)
	if len(got) != 3 {
		t.Fatalf("%d examples: %+v", len(got), got)
	}
	if e := got[0]; e.line != 3 || e.exit != 1 || len(e.output) != 1 || e.output[0] != "a.tar: bad" {
		t.Errorf("%+v", e)
	}
	if e := got[1]; e.command != "shardtool bench \\\n    --json" || e.exit != 0 || e.output != nil {
		t.Errorf("%+v", e)
	}
	if e := got[2]; e.command != "cat a | shardtool cat -" || len(e.output) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestDocMatches(t *testing.T) {
	for _, tt := range []struct {
		shown, output string
		want          bool
	}{
		{"a", "a\n", true},
		{"a", "a", true},
		{"a", "a\nb\n", false},
		{"a|...", "a\nb\nc\n", true},
		{"a|...", "a\n", true},
		{"...|c", "a\nb\nc\n", true},
		{"a ... c", "a 12.5 c\n", true},
		{"a ... c", "a b\nc\n", false},
		{"a.c", "abc\n", false},
		{"{...}", "{\"a\":1}\n", true},
		{"a  ", "a\n", true},
	} {
		if got := docMatches(strings.Split(tt.shown, "|"), tt.output); got != tt.want {
			t.Errorf("%q against %q: %v", tt.shown, tt.output, got)
		}
	}
}
