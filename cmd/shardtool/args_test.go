package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"shardtool/format"
)

// argsVerb has a flag of each shape.
func argsVerb() *cli.Command {
	return verb{
		Name: "demo", Args: "IN...", Usage: "u", About: "a", Examples: []string{"shardtool demo x"},
		Flags: [][]cli.Flag{inputFlagSet(), outputFlagSet(), {
			&cli.Int64Flag{Name: "seed"}, &cli.StringFlag{Name: "5"}, &cli.DurationFlag{Name: "duration", Aliases: []string{"d"}},
		}},
		Run: func(c *call) error {
			return c.Row(map[string]any{
				"args": c.Args().Slice(), "seed": c.Int64("seed"), "force": c.Bool("force"), "field": c.StringSlice("field"),
				"on-error": c.String("on-error"), "5": c.String("5"), "json": c.JSON(), "duration": c.Duration("duration").String(),
			})
		},
	}.command()
}

func TestFlagsStandAnywhere(t *testing.T) {
	withVerbs(t, argsVerb)
	const none = `{"5":"","args":[],"duration":"0s","field":[],"force":false,"json":false,"on-error":"stop","seed":0}`
	with := func(change ...string) string { return strings.NewReplacer(change...).Replace(none) }
	for _, tt := range []struct {
		args string // by spaces; ~ is an empty word
		want string
	}{
		{"demo", none},
		{"demo a.tar --seed 5 b.tar --force", with(`"args":[]`, `"args":["a.tar","b.tar"]`, `"seed":0`, `"seed":5`, `"force":false`, `"force":true`)},
		{"demo -f a.tar -d=3s", with(`"args":[]`, `"args":["a.tar"]`, `"force":false`, `"force":true`, "0s", "3s")},
		{"demo --seed -5 -", with(`"args":[]`, `"args":["-"]`, `"seed":0`, `"seed":-5`)},
		{"demo -7 -.5 x", with(`"args":[]`, `"args":["-7","-.5","x"]`)},
		{"demo -5 v x", with(`"args":[]`, `"args":["x"]`, `"5":""`, `"5":"v"`)},
		{"demo x -- --force -f --", with(`"args":[]`, `"args":["x","--force","-f","--"]`)},
		{"demo -- -", with(`"args":[]`, `"args":["-"]`)},
		{"demo --field a,b{1..2} x --field=c", with(`"args":[]`, `"args":["x"]`, `"field":[]`, `"field":["a,b{1..2}","c"]`)},
		{"demo --field ~ x", with(`"args":[]`, `"args":["x"]`, `"field":[]`, `"field":[""]`)},
		{"demo --field --force", with(`"field":[]`, `"field":["--force"]`)},
		{"demo --force=false --on-error resync", with(`"stop"`, `"resync"`)},
		{"demo --force --force=false", none},
		{"demo help json h demo", with(`"args":[]`, `"args":["help","json","h","demo"]`)},
		{"demo json --json", with(`"args":[]`, `"args":["json"]`, `"json":false`, `"json":true`)},
		{"demo a=b --seed=1=2", ""},
		{"demo --seed x", ""},
		{"demo --force=maybe", ""},
		{"demo --on-error often", ""},
		{"demo --seed", ""},
		{"demo --", none},
	} {
		args := strings.Fields(tt.args)
		for i := range args {
			if args[i] == "~" {
				args[i] = ""
			}
		}
		code, out, err := runCommand(t, "", args...)
		if tt.want == "" {
			if code != exitUsage || out != "" || !strings.HasPrefix(err, "shardtool: ") || strings.Count(err, "\n") != 1 {
				t.Errorf("%s: exit %d, %s%s; want wrong usage in one line", tt.args, code, out, err)
			}
			continue
		}
		if code != 0 || out != tt.want+"\n" || err != "" {
			t.Errorf("%s: exit %d\n got  %s%s want %s", tt.args, code, out, err, tt.want)
		}
	}
}

func TestSuggestions(t *testing.T) {
	withVerbs(t, argsVerb)
	for args, says := range map[string]string{
		"inex a.tar":              `shardtool: unknown verb "inex"; did you mean "index"?`,
		"zzzzzzz":                 `shardtool: unknown verb "zzzzzzz"; shardtool help lists them`,
		"help demoo":              `did you mean "demo"`,
		"demo --on-eror skip":     "unknown flag --on-eror; did you mean --on-error?",
		"demo x --forc":           "did you mean --force?",
		"demo --on-error=skp":     "--on-error skp: not one of stop, skip, resync",
		"demo --seed":             "--seed needs a value",
		"--versoin":               "did you mean --version?",
		"completion ksh":          "name one shell: bash, zsh, fish, powershell",
		"completion":              "name one shell",
		"completion bash zsh":     "name one shell",
		"index":                   "no paths; shardtool index",
		"demo --duration 5 a.tar": `invalid value "5" for --duration`,
	} {
		if code, out, err := runCommand(t, "", strings.Fields(args)...); code != exitUsage || out != "" || !strings.Contains(err, says) {
			t.Errorf("%s: exit %d, %s%s want %s", args, code, out, err, says)
		}
	}
}

func TestReadInputFlags(t *testing.T) {
	var got inputFlags
	var failed error
	withVerbs(t, func() *cli.Command {
		return verb{Name: "read", Flags: [][]cli.Flag{inputFlagSet()}, Run: func(c *call) error {
			got, failed = readInputFlags(c.Context)
			return failed
		}}.command()
	})
	runCommand(t, "", strings.Fields("read --on-error skip --on-duplicate keep-last --on-missing fill --key raw --key-dot last "+
		"--concatenated --field jpg;png,cls --field=x, --index i --jobs 3 --format tar --type raw")...)
	want := inputFlags{Format: "tar", Type: "raw", OnError: format.Skip, OnDuplicate: format.KeepLast, OnMissing: "fill", KeyRaw: true,
		LastDot: true, Concatenated: true, Fields: []string{"jpg;png", "cls", "x"}, Index: "i", Jobs: 3}
	if diff := cmp.Diff(want, got); diff != "" || failed != nil {
		t.Errorf("%v, %s", failed, diff)
	}
	runCommand(t, "", "read")
	if got.Jobs < 1 || got.Fields != nil || got.Format != "auto" || got.OnError != format.Stop {
		t.Errorf("defaults: %+v", got)
	}
	if runCommand(t, "", "read", "--jobs", "0"); !errors.Is(failed, format.ErrUsage) {
		t.Errorf("no jobs: %v", failed)
	}
}
