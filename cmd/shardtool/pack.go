package main

import (
	"bufio"
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/shard"
)

func packCommand() *cli.Command {
	return verb{
		Name:  "pack",
		Args:  "[FOLDER] OUT",
		Usage: "write files as shards",
		About: `Packs every file of FOLDER, grouped into samples by name as WebDataset does:
0001.jpg and 0001.json are the fields jpg and json of the sample 0001. With
--class-folders the folders right below FOLDER are classes, and each sample gets
the field cls, the number of its class: its place in --classes, or in the order
of the names.

With --list the samples are those of a CSV file, whose first line names the
columns, or of JSON Lines. The column path names a file (in JSON, or several),
label becomes cls, key the key, all others the field json. Paths are from FOLDER,
or from where the list is.`,
		Examples: []string{
			"shardtool pack photos photos-%05d.tar --size 500MB",
			"shardtool pack --class-folders --classes names.txt imagenet/train train-%05d.tfrecord --count 10000",
			"shardtool pack --list train.csv train.tar",
		},
		Flags: [][]cli.Flag{outputFlagSet(), shardFlags(), {
			&cli.StringFlag{Name: "list", Usage: "pack what this `FILE` names"},
			&cli.BoolFlag{Name: "class-folders", Usage: "the folders are classes", DisableDefaultText: true},
			&cli.StringFlag{Name: "classes", Usage: "names of the classes, a line each, in the order of their numbers; with --class-folders"},
		}, mappingFlags()},
		Run: runPack,
	}.command()
}

type packRow struct {
	Samples int64            `json:"samples"`
	Files   int64            `json:"files"`
	Bytes   int64            `json:"bytes"`
	Skipped map[string]int64 `json:"skipped"`
	Classes []string         `json:"classes"`
	Outputs []writtenRow     `json:"outputs"`
}

func runPack(c *call) error {
	folder, out := c.Args().Get(0), c.Args().Get(1)
	switch n := c.Args().Len(); {
	case n == 1 && c.IsSet("list"):
		folder, out = "", folder
	case n != 2:
		return usageError("a folder, or --list, and an output are needed; shardtool %s %s", c.Command.Name, c.Command.ArgsUsage)
	}
	for _, from := range []string{folder, c.String("list"), c.String("classes")} {
		if err := localOnly(from, "files are packed from a folder of this machine", "convert reads shards of remote stores"); err != nil {
			return err
		}
	}
	c.ReportTo(out)
	o := &shard.PackOptions{List: c.String("list"), ByFolder: c.Bool("class-folders")}
	o.Store = c.Store
	var err error
	if o.Output, err = c.output(); err != nil {
		return err
	}
	if o.Mapping, err = c.mapping(); err != nil {
		return err
	}
	if c.IsSet("classes") {
		if !o.ByFolder {
			return usageError("--classes goes with --class-folders")
		}
		if o.Classes, err = readLines(c.String("classes")); err != nil {
			return err
		}
	}
	var bar *progress
	o.Progress = func(done, total int64) {
		if done == 1 {
			bar = c.Progress("pack", total, false)
		}
		bar.Add(1)
	}
	p, err := shard.Pack(c.Context.Context, folder, out, o)
	bar.End()
	if err != nil {
		return err
	}
	if text := skippedText(p.Skipped); text != "" && !c.JSON() {
		c.Warn(strings.TrimPrefix(text, "; "))
	}
	return c.report(packRow{p.Samples, p.Files, p.Bytes, p.Skipped, p.Classes, writtenRows(p.Outputs)},
		"%s as %s in %s\n", counted(p.Files, "file"), counted(p.Samples, "sample"), counted(len(p.Outputs), "shard"))
}

// readLines reads the lines of a small file, without those that are blank.
func readLines(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, format.ReadError(err, format.In(name))
	}
	var lines []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, errors.Join(s.Err(), f.Close())
}
