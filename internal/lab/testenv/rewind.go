package testenv

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
	`UPDATE balances SET chain = NULL WHERE $1::text IN ('', tenant_id) AND $2::interval IS NOT NULL`,
	`UPDATE chain_start SET at = 'infinity' WHERE $1::text IS NOT NULL AND $2::interval IS NOT NULL AND at <> 'infinity'`,
}

// RewoundHolds is a further statement to execute if a test has moved holds into the past. It changes the expiry of
// holds in the documents (detail) of entries.
const RewoundHolds = `UPDATE entries SET detail = jsonb_set(detail, '{answer,expires_at}', to_jsonb((detail #>> '{answer,expires_at}')::timestamptz - $2::interval))
		WHERE $1::text IN ('', tenant_id) AND detail #>> '{answer,expires_at}' IS NOT NULL AND kind <> 'extend_grant'`
