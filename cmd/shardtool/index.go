package main

import "github.com/urfave/cli/v2"

func indexCommand() *cli.Command {
	return verb{
		Name:     "index",
		Args:     "IN...",
		Usage:    "write or check indexes beside shards",
		About:    "In the making.",
		Examples: []string{"shardtool index train-{000..127}.tar"},
		Run:      func(*call) error { return usageError("not yet") },
	}.command()
}
