package testenv

import "fmt"

// Rewind returns the statements that move rows of tenants into the past by $2, as if time had passed. The condition
// selects the tenants. It has the parameter $1. The statements do not move balances without an open period, because
// such balances have no instants. The caller must execute Rewound afterwards.
func Rewind(condition string) []string {
	return []string{
		`UPDATE balances SET period_start = period_start - $2::interval, updated_at = updated_at - $2::interval, ` +
			unlessForever("period_end") + `, ` + unlessForever("next_event_at") + `, ` + unlessForever("roll_at") + `,
			` + unlessEpoch("span_end") + `, ` + unlessEpoch("carried_from") + `, ` + unlessEpoch("allowance_at") + `, ` + unlessEpoch("terms_at") + `
			WHERE period_start > 'epoch' AND ` + condition,
		`UPDATE periods SET period_start = period_start - $2::interval, period_end = period_end - $2::interval,
			closed_at = closed_at - $2::interval, terms_at = terms_at - $2::interval WHERE ` + condition,
		`UPDATE overflows SET period_start = period_start - $2::interval WHERE ` + condition,
		`UPDATE grants SET effective_at = effective_at - $2::interval, created_at = created_at - $2::interval, ` + unlessForever("expires_at") + `
			WHERE ` + condition,
		`UPDATE holds SET created_at = created_at - $2::interval WHERE ` + condition,
		`UPDATE entries SET period_start = period_start - $2::interval, created_at = created_at - $2::interval,
			effective_at = effective_at - $2::interval WHERE ` + condition,
		`UPDATE tenants SET anchor = anchor - $2::interval, pending_at = pending_at - $2::interval WHERE ` + condition,
		`UPDATE tenant_terms SET effective_at = effective_at - $2::interval, anchor = anchor - $2::interval
			WHERE ` + condition,
	}
}

// unlessForever returns an assignment that moves a column by $2. It keeps values that mean "no end".
func unlessForever(column string) string {
	return fmt.Sprintf("%[1]s = CASE WHEN %[1]s < '9999-01-01' THEN %[1]s - $2::interval ELSE %[1]s END", column)
}

// unlessEpoch returns an assignment that moves a column by $2. It keeps values that mean "none".
func unlessEpoch(column string) string {
	return fmt.Sprintf("%[1]s = CASE WHEN %[1]s > 'epoch' THEN %[1]s - $2::interval ELSE %[1]s END", column)
}

// RewindHolds is like Rewind, for the ends of holds. The caller must execute RewoundHolds afterwards.
func RewindHolds(condition string) []string {
	return []string{
		`UPDATE holds SET expires_at = expires_at - $2::interval WHERE ` + condition,
		`UPDATE hold_lines SET expires_at = expires_at - $2::interval WHERE ` + condition,
	}
}

// OfTenant selects the rows of tenant $1, or all rows if $1 is empty. It is a condition for Rewind.
const OfTenant = `$1::text IN ('', tenant_id)`

// Rewound lists the statements to execute after a test has changed the instants of rows by hand. The test has moved
// the rows of tenant $1 (empty: all tenants) into the past by $2. The statements correct the months and the documents
// (detail) of the entries. They also restart the hash chains, because the verifier would report the changed entries.
var Rewound = []string{
	`UPDATE entries SET month = date_trunc('month', created_at AT TIME ZONE 'UTC')::date
		WHERE $1::text IN ('', tenant_id) AND month <> date_trunc('month', created_at AT TIME ZONE 'UTC')::date AND $2::interval IS NOT NULL`,
	`UPDATE entries SET detail = detail || jsonb_build_object('effective_at', (detail ->> 'effective_at')::timestamptz - $2::interval)
			|| CASE WHEN detail ->> 'expires_at' < '9999-12-31T23' THEN jsonb_build_object('expires_at', (detail ->> 'expires_at')::timestamptz - $2::interval) ELSE '{}' END
		WHERE $1::text IN ('', tenant_id) AND detail ? 'effective_at'`,
	`UPDATE entries SET detail = jsonb_set(detail, '{answer}', detail -> 'answer'
			|| jsonb_build_object('previous_expires_at', (detail #>> '{answer,previous_expires_at}')::timestamptz - $2::interval)
			|| CASE WHEN detail #>> '{answer,expires_at}' IS NULL THEN '{}' ELSE jsonb_build_object('expires_at', (detail #>> '{answer,expires_at}')::timestamptz - $2::interval) END)
		WHERE $1::text IN ('', tenant_id) AND kind = 'extend_grant'`,
	`UPDATE entries SET detail = CASE WHEN detail ? 'period' THEN detail || jsonb_build_object('period', (detail ->> 'period')::timestamptz - $2::interval)
			ELSE jsonb_set(detail, '{overflow,period}', to_jsonb((detail #>> '{overflow,period}')::timestamptz - $2::interval)) END
		WHERE $1::text IN ('', tenant_id) AND (detail ? 'period' OR detail #> '{overflow,period}' IS NOT NULL)`,
	`DELETE FROM overflows WHERE $1::text IN ('', tenant_id) AND quarter > 'epoch' AND $2::interval IS NOT NULL`,
	`INSERT INTO overflows (tenant_id, meter, period_start, paid_by, quarter, units, operations)
		SELECT p.tenant_id, p.pays_for, p.period, p.meter, date_bin('15 minutes', p.created_at, 'epoch'), sum(p.units), count(DISTINCT p.operation_id) FILTER (WHERE NOT EXISTS (
			SELECT 1 FROM entries o WHERE o.tenant_id = p.tenant_id AND o.operation_id = p.operation_id AND o.month = p.month AND o.meter = p.pays_for
				AND o.subject = '' AND o.kind IN ('debit', 'capture', 'overage')))
		FROM (SELECT e.*, coalesce(e.detail -> 'overflow', e.detail) ->> 'for' AS pays_for, (coalesce(e.detail -> 'overflow', e.detail) ->> 'units')::bigint AS units,
				(coalesce(e.detail -> 'overflow', e.detail) ->> 'period')::timestamptz AS period
			FROM entries e WHERE $1::text IN ('', e.tenant_id) AND $2::interval IS NOT NULL AND e.kind IN ('debit', 'capture')) AS p
		WHERE p.period IS NOT NULL GROUP BY 1, 2, 3, 4, 5`,
	`UPDATE balances SET chain = NULL WHERE $1::text IN ('', tenant_id) AND $2::interval IS NOT NULL`,
	`DELETE FROM terms_chains WHERE $1::text IN ('', tenant_id) AND $2::interval IS NOT NULL`,
	`UPDATE chain_start SET at = 'infinity' WHERE $1::text IS NOT NULL AND $2::interval IS NOT NULL AND at <> 'infinity'`,
}

// RewoundHolds is a further statement to execute if a test has moved holds into the past. It changes the expiry of
// holds in the documents (detail) of entries.
const RewoundHolds = `UPDATE entries SET detail = jsonb_set(detail, '{answer,expires_at}', to_jsonb((detail #>> '{answer,expires_at}')::timestamptz - $2::interval))
		WHERE $1::text IN ('', tenant_id) AND detail #>> '{answer,expires_at}' IS NOT NULL AND kind <> 'extend_grant'`
