package journal

import (
	"fmt"
	"time"
)

// Month is a calendar month in UTC: years times twelve plus months, counted from January of year 0.
type Month int

// MonthOf returns the month that contains t.
func MonthOf(t time.Time) Month {
	t = t.UTC()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// ParseMonth reads a month such as 2026-01.
func ParseMonth(text string) (Month, error) {
	t, err := time.Parse("2006-01", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a month such as 2026-01", text)
	}
	return MonthOf(t), nil
}

// Start returns the month's first instant.
func (m Month) Start() time.Time {
	return time.Date(int(m)/12, time.Month(int(m)%12+1), 1, 0, 0, 0, 0, time.UTC)
}

// End returns the first instant after the month.
func (m Month) End() time.Time { return (m + 1).Start() }

// String returns the month as in 2026-01.
func (m Month) String() string { return m.Start().Format("2006-01") }

// Partition returns the name of the month's partition of entries.
func (m Month) Partition() string { return m.partitionOf(entries) }

func (m Month) partitionOf(table string) string { return table + "_" + m.Start().Format("2006_01") }
