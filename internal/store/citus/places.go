package citus

// Place says on which nodes the rows of a table are stored.
type Place string

// The places.
const (
	Distributed Place = "distributed" // divided by tenant_id, colocated with tenants
	Reference   Place = "reference"   // a copy on every node
	Local       Place = "local"       // on the coordinator only
)

// TableIn is a table and its place.
type TableIn struct {
	Table string
	Place Place
}

// Tables returns all tables in the order in which Distribute places them. A table comes after the tables to which it
// refers. docs/decisions/citus.md gives the reason for each place.
func Tables() []TableIn {
	return []TableIn{
		// The shared catalogue, and other tables that statements on every shard read.
		{"meters", Reference},
		{"plans", Reference},
		{"plan_allowances", Reference},
		{"journal_months", Reference},
		{"archives", Reference},
		// The audit log. A line is written in the transaction of the change. With a copy on every node, Citus commits
		// either both the line and the change, or neither of them.
		{"audit", Reference},
		// The transaction that inserts an event reads whether a webhook subscribes to the event.
		{"webhooks", Reference},
		// Tables whose rows belong to a tenant.
		{"tenants", Distributed},
		{"tenant_terms", Distributed},
		{"terms_chains", Distributed},
		{"tenant_changes", Distributed},
		{"limit_overrides", Distributed},
		{"balances", Distributed},
		{"periods", Distributed},
		{"grants", Distributed},
		{"holds", Distributed},
		{"hold_lines", Distributed},
		{"refunds", Distributed},
		{"overflows", Distributed},
		{"rollups", Distributed},
		{"checkpoints", Distributed},
		{"sealed_heads", Distributed},
		{"denial_counts", Distributed},
		{"denials_recent", Distributed},
		{"shadow_counts", Distributed},
		{"entries", Distributed},
		{"events", Distributed},
		{"event_marks", Distributed},
		{"grant_reminders", Distributed},
		{"gauges", Distributed},
		{"gauge_entries", Distributed},
		// Small tables that no statement joins with tables of tenants.
		{"limits", Local},
		{"blocks", Local},
		{"keys", Local},
		{"key_secrets", Local},
		{"signing_keys", Local},
		{"event_listing", Local},
		{"webhook_secrets", Local},
		{"webhook_deliveries", Local},
		{"river_job", Local},
		{"river_leader", Local},
		{"river_migration", Local},
		{"river_notification", Local},
		{"river_queue", Local},
		{"console_sessions", Local},
		{"portal_sessions", Local},
		{"rolls", Local},
		{"roll_turn", Local},
		{"verifications", Local},
		{"full_pass", Local},
		{"chain_start", Local},
		{"seals", Local},
		{"database_identity", Local},
		{"goose_db_version", Local},
	}
}
