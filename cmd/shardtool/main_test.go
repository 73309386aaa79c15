package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/urfave/cli/v2"
)

// The scripts and the examples of the documents run this very test binary
// under the name of the command.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"shardtool": main})
}

// fixturesFolder is where the shards written by other tools are.
func fixturesFolder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// runCommand is the command without a process.
func runCommand(t testing.TB, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), append([]string{"shardtool"}, args...), strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// TestVerbs holds what is promised of every verb.
func TestVerbs(t *testing.T) {
	app := newApp()
	for _, c := range app.Commands {
		t.Run(c.Name, func(t *testing.T) {
			if f := findFlag(c.Flags, "json"); f == nil {
				t.Error("no --json")
			}
			if !strings.Contains(c.Description, "shardtool "+c.Name) {
				t.Error("the help has no example")
			}
			if !slices.Contains(c.Names(), c.Name) || c.Usage == "" {
				t.Error("no usage")
			}
			seen := map[string]bool{"help": true, "h": true}
			for _, f := range c.Flags {
				for _, n := range f.Names() {
					if seen[n] {
						t.Errorf("flag %s twice", n)
					}
					seen[n] = true
				}
			}
			for _, ask := range [][]string{{"help", c.Name}, {c.Name, "--help"}, {c.Name, "some.tar", "-h"}} {
				if code, out, err := runCommand(t, "", ask...); code != 0 || err != "" || !strings.Contains(out, "Examples:") {
					t.Errorf("%v: exit %d, %s%s", ask, code, out, err)
				}
			}
			if code, _, err := runCommand(t, "", c.Name, "--no-such-flag", "x"); code != exitUsage || !strings.Contains(err, "unknown flag --no-such-flag") {
				t.Errorf("an unknown flag: exit %d, %s", code, err)
			}
		})
	}
}

// TestExamplesParse keeps the examples in the help of verbs from naming flags
// that are not there.
func TestExamplesParse(t *testing.T) {
	app := newApp()
	for _, c := range app.Commands {
		for _, line := range strings.Split(c.Description, "\n") {
			_, words, found := strings.Cut(line, "shardtool ")
			if !found || !strings.HasPrefix(line, "   ") {
				continue
			}
			words, _, _ = strings.Cut(words, " | ")
			words, _, _ = strings.Cut(words, " > ")
			args := strings.Fields(strings.NewReplacer(`'`, "", `"`, "", `)`, "").Replace(words))
			if _, err := normalise(app, append([]string{"shardtool"}, args...)); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
			}
		}
	}
}

func TestWithoutVerb(t *testing.T) {
	if code, out, err := runCommand(t, ""); code != exitUsage || out != "" || !strings.Contains(err, "COMMANDS:") {
		t.Errorf("exit %d, %q, %q", code, out, err)
	}
	if code, out, err := runCommand(t, "", "--version"); code != 0 || !strings.HasPrefix(out, "shardtool ") || err != "" {
		t.Errorf("exit %d, %q, %q", code, out, err)
	}
	if code, out, err := runCommand(t, "", "--help"); code != 0 || !strings.Contains(out, "Exit codes") || err != "" {
		t.Errorf("exit %d, %q, %q", code, out, err)
	}
}

// withVerbs adds verbs to the table for one test.
func withVerbs(t *testing.T, more ...func() *cli.Command) {
	t.Helper()
	old := verbs
	verbs = append(slices.Clone(old), more...)
	t.Cleanup(func() { verbs = old })
}

// cancelled returns a context that a signal has ended.
func cancelled(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return ctx
}

// raceExit keeps each run of a binary built with -race from waiting a second
// for other goroutines' reports when it ends.
const raceExit = "atexit_sleep_ms=10"

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds:                scriptCommands,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FIXTURES", fixturesFolder(t))
			env.Setenv("GORACE", raceExit)
			env.Setenv("CASES", filepath.Join(fixturesFolder(t), "cases"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			if dir := os.Getenv("GOCOVERDIR"); dir != "" {
				env.Setenv("GOCOVERDIR", dir)
			}
			s := startServer(t)
			env.Values[serverKey{}] = s
			for _, v := range append(serverEnv(s), proxyEnv(s)...) {
				name, value, _ := strings.Cut(v, "=")
				env.Setenv(name, value)
			}
			return nil
		},
	})
}
