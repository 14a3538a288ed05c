package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger/agreed"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// tenantFacts reads the facts that requests need about the tenants in ids, in one round trip, and in a second one if a
// version of a plan may wait. It returns a map by id.
// It uses a generic query plan, which is the same for any ids, because planning each read took five times as long as
// running it.
func (s *Store) tenantFacts(ctx context.Context, ids []string) (found map[string]TenantFacts, err error) {
	var waiting []string
	err = s.db.In(pgstore.Memory).Send(ctx, "read tenants", func() *pgx.Batch {
		found, waiting = make(map[string]TenantFacts, len(ids)), nil
		out := &pgx.Batch{}
		out.Queue("BEGIN READ ONLY")
		if s.db.Target() != namedsql.Citus {
			out.Queue("SET LOCAL plan_cache_mode = force_generic_plan")
		}
		out.Queue(s.queries["Standings"], ids, s.db.Now()).Query(func(rows pgx.Rows) (err error) {
			waiting, err = scanTenantFacts(rows, found)
			return err
		})
		out.Queue("COMMIT")
		return out
	})
	if err != nil {
		return nil, err
	}
	return found, s.addVersions(ctx, found, waiting)
}

// scanTenantFacts adds the tenants of the statement Standings to found. It returns the tenants for which a version of
// their plan may wait.
func scanTenantFacts(rows pgx.Rows, found map[string]TenantFacts) (waiting []string, err error) {
	var s TenantFacts
	var p pendingRow
	var waits bool
	_, err = pgx.ForEachRow(rows, []any{
		&s.ID, &s.Plan, &s.Timezone, &s.Suspended, &s.CreatedAt, &s.UpdatedAt,
		&s.RuleOverrides, &s.SubjectOverrides, &s.Features,
		&s.PlanVersion, &s.newest, &waits, &p.from, &p.plan, &p.zone, &p.features, &p.version,
	}, func() error {
		if len(s.Features) == 0 {
			s.Features = nil
		}
		if waits {
			waiting = append(waiting, s.ID)
		}
		s.next = p.next(s.Features)
		found[s.ID], s.Features, p.features = s, nil, nil
		return nil
	})
	return waiting, wrap("select tenants", err)
}

// versionFrom is a version that a tenant has from an instant on.
type versionFrom struct {
	from    time.Time
	version int32
}

// addVersions reads the versions that the tenants in waiting have and will have, and adds them to found.
func (s *Store) addVersions(ctx context.Context, found map[string]TenantFacts, waiting []string) error {
	if len(waiting) == 0 {
		return nil
	}
	var terms *agreed.Terms
	err := s.db.In(pgstore.Memory).Send(ctx, "read terms of tenants", func() *pgx.Batch {
		out := &pgx.Batch{}
		out.Queue("BEGIN READ ONLY")
		terms = agreed.QueueVersions(out, s.queries, waiting)
		out.Queue("COMMIT")
		return out
	})
	if err != nil {
		return err
	}
	for id, list := range terms.Agreements() {
		f := found[id]
		f.versions = make([]versionFrom, len(list))
		for i := range list {
			f.versions[i] = versionFrom{list[i].Since, list[i].Version.Version}
		}
		found[id] = f
	}
	return nil
}
