package main

import (
	"os"

	"github.com/quotasvc/quotasvc/lab/bench/scale"
)

// scaleCmd is the command that prints the results of the load model.
type scaleCmd struct {
	Flush     float64 `default:"500" help:"µs of a flush of the WAL."`
	RoundTrip float64 `default:"500" help:"µs between an instance and PostgreSQL."`
	Cores     float64 `default:"16" help:"Cores of a machine."`
	WAL       float64 `name:"wal" default:"500" help:"MB/s of WAL that a disk takes."`
	Disk      float64 `default:"16" help:"TB of a disk for the journal."`
	CoreHour  float64 `default:"0.04" help:"Price of a core for an hour."`
	GBMonth   float64 `name:"gb-month" default:"0.1" help:"Price of a GB of disk for a month."`
}

// Run prints tables in Markdown.
func (c *scaleCmd) Run() error {
	m := scale.Assumed()
	m.Flush, m.RoundTrip, m.Cores = c.Flush, c.RoundTrip, c.Cores
	m.WAL, m.Disk = c.WAL*1e6, c.Disk*1e12
	m.CoreHour, m.GBMonth = c.CoreHour, c.GBMonth
	return scale.Write(os.Stdout, scale.Ways(), m)
}
