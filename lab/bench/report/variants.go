package report

// These are the names of the variants.
const (
	EchoDebits       = "echo, debit shapes"
	EchoCheck        = "echo, check shapes"
	DebitsMany       = "debits, many tenants"
	DebitsHot        = "debits, one hot tenant"
	DebitsThresholds = "debits, ten thresholds, none crossed"
	DebitsPlain      = "debits, no thresholds"
	DebitBatches     = "debits in batches"
	ChecksMany       = "check, 3 limits + balance, many tenants"
	ChecksHot        = "check, 3 limits + balance, one hot tenant"
	CheckBatches     = "checks, 64 in a request"
	PLSQLMany        = "PL/pgSQL, many tenants"
	PLSQLHot         = "PL/pgSQL, one hot tenant"
	PLSQLWebMany     = "PL/pgSQL behind echo, many tenants"
	PLSQLWebHot      = "PL/pgSQL behind echo, one hot tenant"

	// These are the variants of another binary of the service (Config.Against).
	BeforeMany   = DebitsMany + ", before"
	BeforeHot    = DebitsHot + ", before"
	BeforeChecks = ChecksMany + ", before"
)

// These are the names of the loads at fixed rates.
const (
	LoadEcho  = "echo"
	LoadCheck = "check"
	LoadDebit = "debit"
)
