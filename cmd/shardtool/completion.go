package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// completeVerb is the hidden first word by which the shells' scripts ask for
// candidates: the words of the command line follow, the last being the one
// under the cursor, perhaps empty.
const completeVerb = "__complete"

func completionRequest(args []string) (words []string, ok bool) {
	if len(args) < 2 || args[1] != completeVerb {
		return nil, false
	}
	return args[2:], true
}

// complete prints the candidates for the last word, one a line. Where it has
// none, the shell completes names of files.
func complete(w io.Writer, app *cli.App, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	for _, c := range candidates(app, before, last) {
		if strings.HasPrefix(c, last) {
			fmt.Fprintln(w, c)
		}
	}
}

func candidates(app *cli.App, before []string, last string) []string {
	if len(before) == 0 {
		if strings.HasPrefix(last, "-") {
			return []string{"--help", "--version"}
		}
		names := []string{"help"}
		for _, c := range app.Commands {
			names = append(names, c.Name)
		}
		return names
	}
	cmd := app.Command(before[0])
	switch {
	case before[0] == "help":
		return candidates(app, nil, last)
	case cmd == nil:
		return nil
	case before[0] == "completion" && !strings.HasPrefix(last, "-"):
		return shells
	}
	previous := before[len(before)-1]
	if name := strings.TrimLeft(previous, "-"); name != previous {
		if f := findFlag(cmd.Flags, name); f != nil && takesValue(f) {
			return choicesOf(f, "")
		}
	}
	if !strings.HasPrefix(last, "-") {
		return nil
	}
	if name, _, joined := strings.Cut(last, "="); joined {
		if f := findFlag(cmd.Flags, strings.TrimLeft(name, "-")); f != nil {
			return choicesOf(f, name+"=")
		}
		return nil
	}
	names := []string{"--help"}
	for _, f := range cmd.Flags {
		names = append(names, "--"+f.Names()[0])
	}
	return names
}

func choicesOf(f cli.Flag, prefix string) []string {
	c, ok := f.(*choiceFlag)
	if !ok {
		return nil
	}
	var words []string
	for _, w := range c.words {
		words = append(words, prefix+w)
	}
	return words
}

var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand() *cli.Command {
	return verb{
		Name:  "completion",
		Args:  "bash|zsh|fish|powershell",
		Usage: "print a shell's completion script",
		About: "The script asks shardtool itself for candidates, so it need not be renewed with it.",
		Examples: []string{
			`eval "$(shardtool completion bash)"`,
			`shardtool completion zsh > "${fpath[1]}/_shardtool"`,
			`shardtool completion fish > ~/.config/fish/completions/shardtool.fish`,
			`shardtool completion powershell | Out-String | Invoke-Expression`,
		},
		Offline: true,
		Run: func(c *call) error {
			script, ok := completionScripts[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return usageError("name one shell: %s", strings.Join(shells, ", "))
			}
			return c.Printf("%s", script)
		},
	}.command()
}

// completionScripts are as short as each shell allows. Bash breaks words at
// "=" and ":", so its script hands over the words as bash sees them only after
// joining --flag, "=" and value again.
var completionScripts = map[string]string{
	"bash": `# bash completion of shardtool
_shardtool() {
    local line words cur
    line=${COMP_LINE:0:COMP_POINT}
    read -r -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cur=${words[${#words[@]}-1]}
    local IFS=$'\n'
    COMPREPLY=($("${words[0]}" __complete "${words[@]:1}" 2>/dev/null))
    [[ $cur == --*=* ]] && COMPREPLY=("${COMPREPLY[@]#*=}")
    return 0
}
complete -o bashdefault -o default -F _shardtool shardtool
`,
	"zsh": `#compdef shardtool
# zsh completion of shardtool
_shardtool() {
    local -a found
    found=(${(f)"$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then
        compadd -Q -- $found
    else
        _files
    fi
}
if [ "$funcstack[1]" = "_shardtool" ]; then
    _shardtool
else
    compdef _shardtool shardtool
fi
`,
	"fish": `# fish completion of shardtool
function __shardtool_complete
    set -l words (commandline -opc)
    set -e words[1]
    shardtool __complete $words (commandline -ct) 2>/dev/null
end
complete -c shardtool -a '(__shardtool_complete)'
`,
	"powershell": `# PowerShell completion of shardtool
Register-ArgumentCompleter -Native -CommandName shardtool -ScriptBlock {
    param($word, $line, $cursor)
    $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if ($word -eq '') { $words += '""' }
    & shardtool __complete @words 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
`,
}
