package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// normalise puts the flags of a command line before its paths, because the
// library in use stops looking for flags at the first path, and checks them.
// "--" ends flags; "-" is a path, and so is a number such as -5; a flag that
// takes a value takes the next word whatever it looks like. Every flag comes
// out as --name=value with the flag's first name.
func normalise(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{app.Name}, nil
	}
	out := []string{args[0]}
	globals, _, rest, err := sortWords(app.Flags, args[1:], true)
	if err != nil {
		return nil, err
	}
	out = append(out, globals...)
	if len(rest) == 0 {
		return out, nil
	}
	name := rest[0]
	if name == "help" || name == "h" {
		return append(out, rest...), helpTopic(app, rest[1:])
	}
	cmd := app.Command(name)
	if cmd == nil {
		return nil, unknownVerb(app, name)
	}
	flags, paths, _, err := sortWords(cmd.Flags, rest[1:], false)
	if err != nil {
		return nil, err
	}
	if slices.Contains(flags, "--help=true") {
		return append(out, name, "--help"), nil // else the paths would be taken for topics
	}
	out = append(append(out, name), flags...)
	if len(paths) > 0 {
		out = append(append(out, "--"), paths...)
	}
	return out, nil
}

// sortWords parts words into flags and paths. With verb set it stops at the
// first word that is no flag, and returns what is left.
func sortWords(known []cli.Flag, words []string, verb bool) (flags, paths, rest []string, err error) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--":
			return flags, append(paths, words[i+1:]...), words[i+1:], nil
		case !isFlag(known, word):
			if verb {
				return flags, nil, words[i:], nil
			}
			paths = append(paths, word)
			continue
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
		flag := findFlag(known, name)
		switch {
		case flag == nil:
			return nil, nil, nil, unknownFlag(known, word, name)
		case !takesValue(flag):
			if !joined {
				value = "true"
			}
		case !joined:
			i++
			if i == len(words) {
				return nil, nil, nil, usageError("%s needs a value", word)
			}
			value = words[i]
		}
		if err := checkChoice(flag, value); err != nil {
			return nil, nil, nil, err
		}
		flags = append(flags, "--"+flag.Names()[0]+"="+value)
	}
	return flags, paths, nil, nil
}

// isFlag tells a flag from a path: "-" and what looks like a negative number
// are paths, unless a flag has that name.
func isFlag(known []cli.Flag, word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	if c := word[1]; c >= '0' && c <= '9' || c == '.' {
		return findFlag(known, word[1:]) != nil
	}
	return true
}

func findFlag(known []cli.Flag, name string) cli.Flag {
	for _, f := range known {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	if name == "help" || name == "h" {
		return cli.HelpFlag
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func unknownFlag(known []cli.Flag, word, name string) error {
	if like := cli.SuggestFlag(known, name, false); like != "" {
		return usageError("unknown flag %s; did you mean %s?", word, like)
	}
	return usageError("unknown flag %s", word)
}

func unknownVerb(app *cli.App, name string) error {
	const most = 0.5 // of the letters may differ before a guess is noise
	best, distance := "", len(name)
	for _, c := range app.Commands {
		if d := editDistance(name, c.Name); d < distance && float64(d) <= most*float64(max(len(name), len(c.Name))) {
			best, distance = c.Name, d
		}
	}
	if best != "" {
		return usageError("unknown verb %q; did you mean %q?", name, best)
	}
	return usageError("unknown verb %q; shardtool help lists them", name)
}

func helpTopic(app *cli.App, words []string) error {
	if len(words) > 0 && app.Command(words[0]) == nil {
		return unknownVerb(app, words[0])
	}
	return nil
}

// editDistance is Levenshtein's, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
