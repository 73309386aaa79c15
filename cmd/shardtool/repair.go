package main

import (
	"github.com/urfave/cli/v2"

	"shardtool/shard"
)

func repairCommand() *cli.Command {
	return verb{
		Name:  "repair",
		Args:  "IN OUT",
		Usage: "write a sound shard from a damaged one, and say what was lost",
		About: `Reads IN over its faults, looking for the next sound record or member where the
structure is broken, and writes what is sound to OUT in the same format and
compression. What was lost is reported; the exit code is 0 once OUT is written.`,
		Examples: []string{
			"shardtool repair train-000003.tar train-000003.fixed.tar",
			"shardtool repair --json train.tfrecord fixed.tfrecord",
		},
		Flags: [][]cli.Flag{shapeFlags(), outputFlagSet()},
		Run:   runRepair,
	}.command()
}

func runRepair(c *call) error {
	ins, out, err := c.outAndIns()
	if err != nil {
		return err
	}
	if len(ins) != 1 {
		return usageError("one shard at a time; shardtool %s %s", c.Command.Name, c.Command.ArgsUsage)
	}
	c.ReportTo(out)
	o := &shard.RepairOptions{}
	if o.Options, _, err = c.options(); err != nil {
		return err
	}
	f := readOutputFlags(c.Context)
	o.Compress, o.Force, o.Level = f.Compress, f.Force, f.Level
	var end func()
	o.Store, end = c.watched("repair", ins)
	defer end()
	r, err := shard.Repair(c.Context.Context, ins[0], out, o)
	end()
	if err != nil {
		return err
	}
	if !c.JSON() {
		c.sayReading(&r.Reading)
	}
	return c.report(newConvertRow(r), "%s: %s, %s of the input lost\n", shown(out), counted(r.Samples, "sample"), counted(r.Lost, "part"))
}
