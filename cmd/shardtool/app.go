package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

// verbs is the table of commands, in the order of the help. Each is in a file
// of its own.
var verbs = []func() *cli.Command{
	inspectCommand,
	catCommand,
	extractCommand,
	packCommand,
	verifyCommand,
	statsCommand,
	repairCommand,
	indexCommand,
	convertCommand,
	benchCommand,
	planCommand,
	doctorCommand,
	completionCommand,
}

func newApp() *cli.App {
	app := &cli.App{
		Name:                      "shardtool",
		HelpName:                  "shardtool",
		Usage:                     "look into, check, mend, index and convert shards of training data (TFRecord, WebDataset tar)",
		UsageText:                 "shardtool VERB [flags] [paths]",
		Description:               pathsHelp,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		Flags:                     []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}},
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				fmt.Fprintln(c.App.Writer, "shardtool "+version())
				return nil
			}
			c.App.Writer = c.App.ErrWriter
			_ = cli.ShowAppHelp(c)
			return &saidError{exitUsage}
		},
	}
	for _, verb := range verbs {
		c := verb()
		c.OnUsageError = onUsageError
		app.Commands = append(app.Commands, c)
	}
	return app
}

// onUsageError is for values of flags that are none of their type.
func onUsageError(_ *cli.Context, err error, _ bool) error {
	return usageError("%s", strings.Replace(err.Error(), "for flag -", "for --", 1))
}

const pathsHelp = `Paths are files, s3://bucket/key, http(s)://host/path, globs (* stays within a
folder, ** does not; not of http), brace lists such as train-{000..127}.tar,
lists joined by ::, or - for a standard stream. Flags may stand before or after
paths; -- ends them.

Exit codes: 0 fine, 1 the data has faults, 2 wrong usage, 3 could not read or
write.`

// verb describes a command to newApp's table.
type verb struct {
	Name     string
	Args     string // of the synopsis: "IN... OUT"
	Usage    string // one line for the list of verbs
	About    string // paragraphs for its help
	Examples []string
	Flags    [][]cli.Flag
	Offline  bool // it reads and writes no shards: no flags of remote stores
	Run      func(*call) error
}

// command turns the description into a command of the library in use, with the
// flags that every verb has.
func (v verb) command() *cli.Command {
	c := &cli.Command{
		Name:            v.Name,
		Usage:           v.Usage,
		ArgsUsage:       v.Args,
		Description:     v.About + "\n\nExamples:\n   " + strings.Join(v.Examples, "\n   "),
		HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			call, err := newCall(c)
			if err != nil {
				return err
			}
			return call.end(v.Run(call))
		},
	}
	for _, set := range v.Flags {
		c.Flags = append(c.Flags, set...)
	}
	c.Flags = append(c.Flags,
		&cli.BoolFlag{Name: "json", Usage: "print JSON Lines", DisableDefaultText: true},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress", DisableDefaultText: true},
	)
	if !v.Offline {
		c.Flags = append(c.Flags, remoteFlags(c.Flags)...)
	}
	return c
}

// version is the module's version, or the revision it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	rev, dirty := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = "devel-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}
