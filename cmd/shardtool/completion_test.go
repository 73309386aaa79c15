package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestCompletion(t *testing.T) {
	withVerbs(t, argsVerb)
	for _, tt := range []struct{ words, want string }{ // ~ is an empty word
		{"", "help index completion demo"},
		{"de", "demo"},
		{"--", "--help --version"},
		{"help de", "demo"},
		{"completion ~", "bash zsh fish powershell"},
		{"completion z", "zsh"},
		{"demo ~", ""},
		{"demo --on-", "--on-error --on-duplicate --on-missing"},
		{"demo --on-error ~", "stop skip resync"},
		{"demo --on-error s", "stop skip"},
		{"demo --on-error=r", "--on-error=resync"},
		{"demo a.tar --comp", "--compress"},
		{"demo --seed ~", ""},
		{"demo --force ~", ""},
		{"nothing ~", ""},
	} {
		// Other verbs come and go; the table holds these.
		if tt.words == "" {
			old := verbs
			verbs = []func() *cli.Command{indexCommand, completionCommand, argsVerb}
			defer func() { verbs = old }()
		}
		args := strings.Fields(completeVerb + " " + tt.words)
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], "~")
		}
		code, out, err := runCommand(t, "", args...)
		if code != 0 || err != "" || strings.Join(strings.Fields(out), " ") != tt.want {
			t.Errorf("%s: exit %d, %q%s; want %s", tt.words, code, out, err, tt.want)
		}
	}
}

// TestCompletionScripts lets each shell that is here read its script, and bash
// complete with it.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range shells {
		code, script, _ := runCommand(t, "", "completion", shell)
		if code != 0 || !strings.Contains(script, completeVerb) {
			t.Fatalf("%s: exit %d, %s", shell, code, script)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		if shell == "bash" {
			script += `
COMP_LINE="shardtool completion z" COMP_POINT=22
_shardtool && echo "got ${COMPREPLY[*]}"
`
			script = "shopt -u progcomp\n" + script
		} else {
			continue
		}
		out, err := exec.Command(path, "-c", script).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "got zsh" {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}
