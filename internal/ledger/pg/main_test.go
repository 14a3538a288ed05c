package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

func TestMain(m *testing.M) {
	pg.Past.Balance, pg.Past.Statement = pastBalance, pastStatement
	testenv.Main(m)
}

func openPast(l *pg.Ledger) (*history.Reader, error) {
	return history.Open(context.Background(), l, history.Config{
		DatabaseURL: l.Readers().Config().ConnString(), Reports: 1, Metrics: prometheus.NewRegistry(),
	})
}

func pastBalance(l *pg.Ledger, k ledger.BalanceKey, at time.Time) (*ledger.Balance, error) {
	r, err := openPast(l)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Stop(context.Background()) }()
	return r.BalanceAsOf(context.Background(), k.Tenant, k.Meter, k.Subject, at)
}

func pastStatement(l *pg.Ledger, k ledger.BalanceKey, at time.Time) (*pg.PastStatement, error) {
	r, err := openPast(l)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Stop(context.Background()) }()
	s, err := r.StatementAt(context.Background(), k.Tenant, k.Meter, k.Subject, at)
	if err != nil {
		return nil, err
	}
	out := &pg.PastStatement{Sums: s.Sums, Overflow: s.Overflow, Plan: s.Plan, Start: s.Start, End: s.End, Closed: s.Closed, Closing: s.Closing}
	for _, line := range s.Lines {
		if line.Kind == history.Amend {
			out.Lines.Amended += line.Amount
			continue
		}
		out.Lines.Apply(line.Kind, line.Amount)
	}
	return out, nil
}
