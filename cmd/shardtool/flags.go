package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/format/compress"
)

// choiceFlag is a flag whose value is one of a few words; shell completion
// offers them.
type choiceFlag struct {
	*cli.StringFlag
	words []string
}

// choice makes a choiceFlag; the first word is the default.
func choice(name, usage string, words ...string) *choiceFlag {
	return &choiceFlag{&cli.StringFlag{
		Name:        name,
		Usage:       usage + ": " + strings.Join(words, ", "),
		Value:       words[0],
		DefaultText: words[0],
	}, words}
}

func checkChoice(f cli.Flag, value string) error {
	c, ok := f.(*choiceFlag)
	if !ok || slices.Contains(c.words, value) {
		return nil
	}
	return usageError("--%s %s: not one of %s", c.Name, value, strings.Join(c.words, ", "))
}

// word returns the place of a choice among the words that values holds, which
// is the numeric value of an enumeration.
func word[T fmt.Stringer](value string, values ...T) T {
	for _, v := range values {
		if v.String() == value {
			return v
		}
	}
	return values[0]
}

// inputFlags is how shards are read.
type inputFlags struct {
	Format       string // auto, tar or tfrecord
	Type         string // auto, example, sequence or raw: what a TFRecord holds
	OnError      format.OnError
	OnDuplicate  format.OnDuplicate
	OnMissing    string   // error, skip or fill
	KeyRaw       bool     // keep a leading ./ or / of names
	LastDot      bool     // a key ends at the last dot of a name
	Concatenated bool     // read through the end marker of a tar
	Fields       []string // asked for, each with alternatives by semicolons; nil: all
	Index        string   // file; "": IN.idx where there is one
	Jobs         int      // shards at a time, at least 1
}

// inputFlagSet is all flags that readInputFlags reads. A verb takes the parts
// that mean something to it.
func inputFlagSet() []cli.Flag {
	return slices.Concat([]cli.Flag{onErrorFlag()}, shapeFlags(), choiceFlags(), []cli.Flag{indexFlag(), jobsFlag()})
}

// shapeFlags say what shards are and how their samples are told apart.
func shapeFlags() []cli.Flag {
	return []cli.Flag{
		choice("format", "what the shards are", "auto", "tar", "tfrecord"),
		choice("type", "what records of a TFRecord are", "auto", "example", "sequence", "raw"),
		choice("on-duplicate", "when a sample has a field twice", "error", "keep-first", "keep-last"),
		choice("key", "names in a tar: clean takes off a leading ./ or /", "clean", "raw"),
		choice("key-dot", "the dot of a tar member's base name that ends the key", "first", "last"),
		&cli.BoolFlag{Name: "concatenated", Usage: "read on after the end marker of a tar", DisableDefaultText: true},
	}
}

// choiceFlags say which fields are wanted.
func choiceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "field", Usage: "only these `FIELDS`, by commas; jpg;jpeg;png takes the first present"},
		choice("on-missing", "when a sample lacks a field that was asked for", "error", "skip", "fill"),
	}
}

func onErrorFlag() cli.Flag { return choice("on-error", "at a fault", "stop", "skip", "resync") }

func indexFlag() cli.Flag {
	return &cli.StringFlag{Name: "index", Usage: "hold the shard against this index `FILE`", DefaultText: "IN.idx where there is one"}
}

func jobsFlag() cli.Flag {
	return &cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "work on `N` shards, or images, at a time", DefaultText: "one for each core"}
}

func readInputFlags(c *cli.Context) (inputFlags, error) {
	f := inputFlags{
		Format:       c.String("format"),
		Type:         c.String("type"),
		OnError:      word(c.String("on-error"), format.Stop, format.Skip, format.Resync),
		OnDuplicate:  word(c.String("on-duplicate"), format.DuplicateError, format.KeepFirst, format.KeepLast),
		OnMissing:    c.String("on-missing"),
		KeyRaw:       c.String("key") == "raw",
		LastDot:      c.String("key-dot") == "last",
		Concatenated: c.Bool("concatenated"),
		Fields:       splitFields(c.StringSlice("field")),
		Index:        c.String("index"),
	}
	var err error
	f.Jobs, err = readJobs(c)
	return f, err
}

func readJobs(c *cli.Context) (int, error) {
	const most = 1 << 16 // as of workers
	switch n := c.Int("jobs"); {
	case !c.IsSet("jobs"):
		return runtime.GOMAXPROCS(0), nil
	case n < 1 || n > most:
		return 0, usageError("--jobs %d: not within 1 to %d", n, most)
	default:
		return n, nil
	}
}

func splitFields(values []string) []string {
	var fields []string
	for _, v := range values {
		for _, name := range strings.Split(v, ",") {
			if name != "" {
				fields = append(fields, name)
			}
		}
	}
	return fields
}

// outputFlags is how shards are written.
type outputFlags struct {
	Force    bool
	Compress *compress.Kind // nil: by the suffix
	Level    int            // 0: the method's default
}

// outputFlagSet is the flags that readOutputFlags reads.
func outputFlagSet() []cli.Flag {
	return []cli.Flag{
		forceFlag(),
		choice("compress", "compression of outputs, auto goes by the suffix", "auto", "none", "gzip", "zlib", "zstd"),
		&cli.IntFlag{Name: "level", Usage: "compression `LEVEL`", DefaultText: "the method's own"},
	}
}

func forceFlag() cli.Flag {
	return &cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "replace existing files", DisableDefaultText: true}
}

func readOutputFlags(c *cli.Context) outputFlags {
	f := outputFlags{Force: c.Bool("force"), Level: c.Int("level")}
	if k, ok := compress.ParseKind(c.String("compress")); ok {
		f.Compress = &k
	}
	return f
}
