package main

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/shard"
)

func catCommand() *cli.Command {
	return verb{
		Name:  "cat",
		Args:  "IN...",
		Usage: "list samples and their fields",
		About: `Lists each sample: its number, offset, key, and the fields with their sizes; of
features that are numbers, the first values. With --json each field has the
SHA-256 of its data, too. --raw takes a TFRecord's records as they are.`,
		Examples: []string{
			"shardtool cat --limit 10 train-000000.tar",
			"shardtool cat --keys 'n0144*' --field 'jpg;png,cls' --json train-{000..127}.tar",
		},
		Flags: [][]cli.Flag{inputFlagSet(), {
			&cli.Int64Flag{Name: "skip", Usage: "leave out the first `N` samples of all"},
			&cli.Int64Flag{Name: "limit", Aliases: []string{"n"}, Usage: "no more than `N` samples", DefaultText: "all"},
			keysFlag(),
			&cli.BoolFlag{Name: "raw", Usage: "records as they are, in one field named record", DisableDefaultText: true},
		}},
		Run: runCat,
	}.command()
}

func keysFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "keys", Usage: "only samples whose key matches `PATTERN`; * stays within a folder, ** does not"}
}

type catRow struct {
	Shard  string     `json:"shard"`
	Index  int64      `json:"index"`
	Offset int64      `json:"offset"`
	Key    *[]byte    `json:"key"`
	Fields []catField `json:"fields"`
}

type catField struct {
	Name   string  `json:"name"`
	Bytes  int64   `json:"bytes"`
	Offset *int64  `json:"offset"`
	SHA256 *string `json:"sha256"` // null for a field that is not there
	Type   string  `json:"type,omitempty"`
	Count  *int    `json:"count,omitempty"`  // of all values, where not all are given
	Values any     `json:"values,omitempty"` // of a field that is not bytes
}

func runCat(c *call) error {
	names, o, indexName, err := c.inputs()
	if err != nil {
		return err
	}
	if c.Int64("skip") < 0 || c.Int64("limit") < 0 {
		return usageError("--skip and --limit count samples: 0 or more")
	}
	if c.Bool("raw") {
		o.Read.Type = reader.Raw
	}
	o.Read.HeadersOnly = !c.JSON() // text tells nothing of the data of tar members
	o.Read.OnLoss = c.sayLosses()
	return shard.List(c.Context.Context, names, &shard.ListOptions{
		Options: o,
		Index:   indexName,
		Skip:    c.Int64("skip"),
		Limit:   c.Int64("limit"),
		Keys:    c.StringSlice("keys"),
		Hash:    c.JSON(),
	}, func(s *shard.Listed) error {
		if c.JSON() {
			return c.Row(newCatRow(s))
		}
		return printSample(c, s)
	})
}

func newCatRow(s *shard.Listed) catRow {
	row := catRow{Shard: format.Redact(s.Shard), Index: s.Index, Offset: s.Offset, Fields: make([]catField, len(s.Fields))}
	if s.Key != nil {
		row.Key = &s.Key
	}
	for i := range s.Fields {
		row.Fields[i] = newCatField(&s.Fields[i])
	}
	return row
}

func newCatField(f *shard.ListedField) catField {
	row := catField{Name: f.Name, Bytes: f.Bytes, Offset: known(f.Offset)}
	if f.Offset != format.Unknown {
		sum := hex.EncodeToString(f.SHA256[:])
		row.SHA256 = &sum
	}
	if f.Kind == format.Bytes {
		return row
	}
	row.Type, row.Values = f.Kind.String(), f.Values
	if f.Kind == format.BytesList {
		// As texts they are base64 together, if any of them is not UTF-8.
		texts := make([][]byte, len(f.Values))
		for i, v := range f.Values {
			texts[i], _ = v.([]byte)
		}
		row.Values = texts
	}
	if f.Count > len(f.Values) {
		row.Count = &f.Count
	}
	return row
}

func printSample(c *call, s *shard.Listed) error {
	key := "-"
	if s.Key != nil {
		key = printable(s.Key)
	}
	fields := make([]string, len(s.Fields))
	for i := range s.Fields {
		fields[i] = fieldText(&s.Fields[i])
	}
	return c.Printf("%s\t%d\t%d\t%s\t%s\n", shown(s.Shard), s.Index, s.Offset, key, strings.Join(fields, "  "))
}

// fieldText is name:bytes, or name=values of a feature that is not bytes.
func fieldText(f *shard.ListedField) string {
	name := printable([]byte(f.Name))
	switch {
	case f.Offset == format.Unknown && f.Kind == format.Bytes:
		return name + ":absent"
	case f.Kind == format.Bytes:
		return fmt.Sprintf("%s:%d", name, f.Bytes)
	case f.Kind == format.FeatureList || f.Kind == format.NoKind:
		return fmt.Sprintf("%s:%s[%d]", name, f.Kind, f.Count)
	}
	const most = 4
	var values []string
	for i, v := range f.Values {
		if i == most {
			break
		}
		if b, ok := v.([]byte); ok {
			values = append(values, fmt.Sprintf("%dB", len(b)))
			continue
		}
		values = append(values, fmt.Sprint(v))
	}
	if f.Count > len(values) {
		values = append(values, fmt.Sprintf("… %d in all", f.Count))
	}
	return name + "=[" + strings.Join(values, " ") + "]"
}

// shown is a path for text: without secrets, and quoted where it is not made of
// characters that print.
func shown(path string) string {
	path = format.Redact(path)
	if utf8.ValidString(path) && !strings.ContainsFunc(path, isControl) {
		return path
	}
	return strconv.Quote(path)
}

func isControl(r rune) bool { return !unicode.IsPrint(r) }

// visible writes what does not print in a line, such as a path in an error, in
// the way of strconv.Quote.
func visible(line string) string {
	if utf8.ValidString(line) && !strings.ContainsFunc(line, isControl) {
		return line
	}
	var b strings.Builder
	for len(line) > 0 {
		r, n := utf8.DecodeRuneInString(line)
		if r == utf8.RuneError && n == 1 || isControl(r) {
			q := strconv.Quote(line[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(line[:n])
		}
		line = line[n:]
	}
	return b.String()
}

// printable keeps control characters of hostile names off the terminal.
func printable(b []byte) string {
	q := fmt.Sprintf("%q", b)
	if plain := q[1 : len(q)-1]; plain == string(b) && plain != "" {
		return plain
	}
	return q
}
