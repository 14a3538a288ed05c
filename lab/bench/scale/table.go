package scale

import (
	"fmt"
	"io"
	"strconv"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
)

// Rates returns the rates for which a table has rows, in debits/s.
func Rates() []float64 { return []float64{1e3, 1e4, 1e5, 1e6} }

// Way is a way to run the service, for example on Citus, with its costs.
type Way struct {
	Name   string
	Costs  Costs
	Choice Choice
}

// Measured returns the costs of single debits over HTTP, on balances that are also checked. docs/scaling.md names the
// run of each cost. Row and Transaction were computed from two results of one run. A debit took 27.3 µs in transactions
// of 500 debits, and 37.9 µs in transactions of 56 debits.
func Measured() Costs {
	return Costs{Service: 42.6, Row: 26, Transaction: 670, Redis: 4.4, WAL: 990, Journal: 425, Trips: 2, Debits: 1}
}

// citusTransaction is the cost of a transaction in a Citus cluster, in µs. Five statements are planned again in each
// transaction. Each plan takes 1.0 to 2.1 ms on a busy machine.
const citusTransaction = 5000

// Assumed returns a typical cloud machine with 16 cores and a disk of 16 TB with 500 MB/s. Its replicas are in
// another zone of the same region.
func Assumed() Machine {
	return Machine{Cores: 16, Busy: 0.6, WAL: 500e6, Disk: 16e12, Flush: 500, RoundTrip: 500, Redis: 0.6e6, CoreHour: 0.04, GBMonth: 0.1}
}

// Ways returns the ways to run the service that are compared, from the simplest to the largest.
func Ways() []Way {
	c := Measured()
	spread := c
	spread.Transaction = citusTransaction
	units := c
	units.Debits = 250 // two operations, a hold of 500 units and its capture, replace 500 debits
	one := Choice{Mean: 0.3, Months: 2, Replicas: 1, Lanes: 2}
	citus := Choice{Mean: 0.3, Months: 2, Replicas: 1, Lanes: 64, Citus: true}
	near := citus
	near.Affinity = true
	return []Way{
		{"one PostgreSQL, single debits", c, one},
		{"Citus, single debits, any instance", spread, citus},
		{"Citus, single debits, tenants sent to their instance", spread, near},
		{"one PostgreSQL, 500 units a hold", units, one},
	}
}

// Write writes a table in Markdown for each way.
func Write(out io.Writer, ways []Way, m Machine) error {
	for i := range ways {
		w := &ways[i]
		fmt.Fprintf(out, "**%s**\n\n", w.Name)
		fmt.Fprintln(out, "| debits/s | debits in a transaction | PostgreSQL, µs each | nodes | decided by | lanes | journal, 2 months | a million debits |")
		fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
		for _, rate := range Rates() {
			p, err := NewPlan(rate, w.Costs, m, w.Choice)
			if err != nil {
				return err
			}
			if !p.Fits {
				fmt.Fprintf(out, "| %s | %.1f | %s | does not fit | %s | | %s | |\n",
					chart.Figure(rate), p.Batch, short(p.Micros), p.First, bytes(p.Journal))
				continue
			}
			fmt.Fprintf(out, "| %s | %.1f | %s | %.0f | %s | %.0f | %s | %s |\n",
				chart.Figure(rate), p.Batch, short(p.Micros), p.Nodes, p.First, p.Lanes, bytes(p.Journal), short(p.Cost))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// short returns v as text with two significant digits and without an exponent.
func short(v float64) string {
	switch {
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
}

// bytes returns a number of bytes as text, in the largest unit in which the number is at least 1.
func bytes(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}} {
		if n >= u.size {
			return short(n/u.size) + " " + u.name
		}
	}
	return short(n/1e3) + " kB"
}
