package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Balances returns a tenant's balances in the order of meters. It includes meters of the plan that were never used.
func (l *Ledger) Balances(ctx context.Context, tenant, subject string) ([]ledger.Balance, error) {
	books, now, err := l.Views(ctx, tenant, subject, time.Time{})
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Balance, len(books))
	for i, b := range books {
		out[i] = b.View(now)
	}
	return out, nil
}

// Views returns all balances of a tenant and subject as View does, and the instant of the view.
func (l *Ledger) Views(ctx context.Context, tenant, subject string, at time.Time) ([]*ledger.Book, time.Time, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", tenant), ledger.ValidateSubject(subject)); e != nil {
		return nil, time.Time{}, e
	}
	if err := l.MustExist(ctx, tenant); err != nil {
		return nil, time.Time{}, err
	}
	keys, err := l.keysOf(ctx, tenant, subject)
	if err != nil {
		return nil, time.Time{}, err
	}
	m, err := l.viewBalances(ctx, at, keys...)
	if err != nil {
		return nil, time.Time{}, err
	}
	books := make([]*ledger.Book, 0, len(keys))
	for _, k := range keys {
		b, failed := m.Book(k)
		if failed != nil {
			return nil, time.Time{}, failed
		}
		if !b.Unknown() { // a balance that only refused requests have named does not exist yet
			books = append(books, b)
		}
	}
	return books, m.Now, nil
}

// BalancesOf returns the existing balances among keys, in the order of keys. On Citus it reads the balances of each
// shard group together; the groups are read at different instants.
func (l *Ledger) BalancesOf(ctx context.Context, keys []ledger.BalanceKey) ([]ledger.Balance, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	known := make(map[ledger.BalanceKey]ledger.Balance, len(keys))
	for _, group := range divide(l, keys, func(k ledger.BalanceKey) string { return k.Tenant }) {
		m, err := l.viewBalances(ctx, time.Time{}, group...)
		if err != nil {
			return nil, err
		}
		for _, k := range group {
			if b, failed := m.Book(k); failed == nil && !b.Unknown() {
				known[k] = b.View(m.Now)
			}
		}
	}
	out := make([]ledger.Balance, 0, len(keys))
	for _, k := range keys {
		if b, ok := known[k]; ok {
			out = append(out, b)
		}
	}
	return out, nil
}

// keysOf returns the keys of the balances of a tenant and subject. It includes meters of the plan that were never used.
func (l *Ledger) keysOf(ctx context.Context, tenant, subject string) ([]ledger.BalanceKey, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows, _ := l.readers.Query(ctx, l.sql["MetersOf"], tenant, subject, l.Now())
	keys := []ledger.BalanceKey{}
	var meter string
	_, err := pgx.ForEachRow(rows, []any{&meter}, func() error {
		keys = append(keys, ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject})
		return nil
	})
	if err != nil {
		return nil, unavailable("list meters", err)
	}
	return keys, nil
}

// Balance returns one balance. It returns errcode.MeterNotInPlan if the plan lacks the meter and nothing was ever
// granted.
func (l *Ledger) Balance(ctx context.Context, tenant, meter, subject string) (*ledger.Balance, error) {
	b, now, err := l.View(ctx, ledger.BalanceKey{Tenant: tenant, Meter: meter, Subject: subject}, time.Time{})
	if err != nil {
		return nil, err
	}
	out := b.View(now)
	return &out, nil
}

// View returns one balance with its open grants, advanced in memory to the instant `at` (zero means now). It also
// returns the instant of the view. It locks and writes nothing. It returns errcode.MeterNotInPlan if the plan lacks the
// meter and nothing was ever granted.
func (l *Ledger) View(ctx context.Context, k ledger.BalanceKey, at time.Time) (*ledger.Book, time.Time, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", k.Tenant), ledger.ValidateID("meter", k.Meter), ledger.ValidateSubject(k.Subject)); e != nil {
		return nil, time.Time{}, e
	}
	m, err := l.viewBalances(ctx, at, k)
	if err != nil {
		return nil, time.Time{}, err
	}
	b, failed := m.Book(k)
	if failed != nil {
		return nil, time.Time{}, failed
	}
	if b.Unknown() {
		return nil, time.Time{}, b.NotInPlan()
	}
	return b, m.Now, nil
}

// MustExist returns errcode.TenantNotFound unless the tenant exists.
func (l *Ledger) MustExist(ctx context.Context, tenant string) error {
	var exists bool
	err := l.onReader(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, l.sql["TenantExists"], tenant).Scan(&exists)
	})
	if err != nil {
		return unavailable("look up tenant", err)
	}
	if !exists {
		return errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", tenant)
	}
	return nil
}
