package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/shard"
)

func verifyCommand() *cli.Command {
	return verb{
		Name:  "verify",
		Args:  "IN...",
		Usage: "read shards from end to end and report all of their faults",
		About: `Checks every checksum, length and header, the grouping of samples, the end of
compressed streams, and the index beside a shard, if there is one. It goes on
after a fault and reports them all. What a reader would only warn of, such as a
missing end marker, is a fault here. IN may be a manifest (@train.json, see index
--manifest), for all shards that it names.`,
		Examples: []string{
			"shardtool verify train-{000..127}.tar",
			"shardtool verify --json --max-errors 10 train-*.tfrecord",
		},
		Flags: [][]cli.Flag{shapeFlags(), {
			indexFlag(), jobsFlag(),
			&cli.IntFlag{Name: "max-errors", Usage: "report no more than `N` faults of a shard", Value: 100},
		}},
		Run: runVerify,
	}.command()
}

type verifyRow struct {
	Shard       string           `json:"shard"`
	Format      *string          `json:"format"`
	Compression string           `json:"compression"`
	Bytes       int64            `json:"bytes"`
	Records     int64            `json:"records"`
	Samples     int64            `json:"samples"`
	Skipped     map[string]int64 `json:"skipped"`
	Errors      []faultRow       `json:"errors"`
	ErrorsTotal int64            `json:"errors_total"`
	OK          bool             `json:"ok"`
	// KeyCheckStopped: there were more keys than are remembered.
	KeyCheckStopped bool `json:"key_check_stopped,omitempty"`
}

func runVerify(c *call) error {
	names, o, indexName, err := c.inputs()
	if err != nil {
		return err
	}
	if c.Int("max-errors") < 1 {
		return usageError("--max-errors %d: at least 1", c.Int("max-errors"))
	}
	var end func()
	o.Store, end = c.watched("verify", names)
	defer end()
	good := 0
	err = shard.Verify(c.Context.Context, names, &shard.VerifyOptions{
		Options: o, Index: indexName, MaxErrors: c.Int("max-errors"),
	}, func(v *shard.Verification) error {
		for _, err := range v.Errors {
			c.Mark(err)
		}
		if v.OK() {
			good++
		}
		if v.KeyCheckStopped {
			c.Warn(format.Redact(v.Shard) + ": more keys than are remembered; one that comes back late may have gone unnoticed")
		}
		if c.JSON() {
			return c.Row(verifyRow{
				Shard: format.Redact(v.Shard), Format: formatWord(v.Format), Compression: v.Compression.String(), Bytes: v.Bytes,
				Records: v.Records, Samples: v.Samples, Skipped: v.Skipped,
				Errors: faultRows(v.Errors), ErrorsTotal: v.ErrorsTotal, OK: v.OK(), KeyCheckStopped: v.KeyCheckStopped,
			})
		}
		return printVerification(c, v)
	})
	end()
	if err == nil && !c.JSON() && len(names) > 1 {
		err = c.Printf("%d of %d shards are sound\n", good, len(names))
	}
	return err
}

func printVerification(c *call, v *shard.Verification) error {
	if v.OK() {
		return c.Printf("%s: ok: %s, %s%s\n", shown(v.Shard), kindOf(v), counted(v.Samples, "sample"), skippedText(v.Skipped))
	}
	if err := c.Printf("%s: %s, %s can be read%s\n", shown(v.Shard), counted(v.ErrorsTotal, "fault"), counted(v.Samples, "sample"), skippedText(v.Skipped)); err != nil {
		return err
	}
	for _, err := range v.Errors {
		if err := c.Printf("    %s\n", visible(err.Error())); err != nil {
			return err
		}
	}
	if more := v.ErrorsTotal - int64(len(v.Errors)); more > 0 {
		return c.Printf("    and %d more\n", more)
	}
	return nil
}

func kindOf(v *shard.Verification) string {
	if k := v.Compression.String(); k != "none" {
		return v.Format.String() + " in " + k
	}
	return v.Format.String()
}

// counted is a number of things in words.
func counted[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// skippedText says what was left out, by reason.
func skippedText(skipped map[string]int64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		if reason == tarshard.SkipGlobal {
			continue // it was applied
		}
		parts = append(parts, fmt.Sprintf("%d %s", skipped[reason], reason))
	}
	if parts == nil {
		return ""
	}
	return "; left out: " + strings.Join(parts, ", ")
}
