package events

import "time"

// Type is the kind of an event.
type Type string

// The types of events.
const (
	ThresholdReached Type = "balance.threshold_reached" // a percentage of the period's limit is used
	Exhausted        Type = "balance.exhausted"         // no units remain of a balance
	GrantsNearLimit  Type = "balance.grants_near_limit" // a balance has nearly as many open grants as it can have
	GrantCreated     Type = "grant.created"             // a grant was created that is not part of a plan
	GrantExpiring    Type = "grant.expiring"            // a grant will end within the time Ahead
	GrantExpired     Type = "grant.expired"             // a grant has ended although it had units left
	HoldExpired      Type = "hold.expired"              // a hold has expired
	PeriodOpened     Type = "period.opened"             // emitted only if a webhook subscribes to it
	PlanChanged      Type = "plan.changed"              // another plan of a tenant is in force
	TenantSuspended  Type = "tenant.suspended"

	// Another plan of a tenant is to come, and is not to come after all.
	PlanChangeScheduled Type = "plan.change_scheduled"
	PlanChangeCanceled  Type = "plan.change_canceled"

	RejectionsHigh Type = "limit.rejections_high" // a limit rejects many requests of a tenant
	VerifyDrift    Type = "verify.drift"          // a verification has found a difference
)

// Types returns all types, in the order of the REST contract.
func Types() []string {
	return []string{
		string(ThresholdReached), string(Exhausted), string(GrantsNearLimit), string(GrantCreated), string(GrantExpiring), string(GrantExpired),
		string(HoldExpired), string(PeriodOpened), string(PlanChanged), string(PlanChangeScheduled), string(PlanChangeCanceled), string(TenantSuspended), string(RejectionsHigh), string(VerifyDrift),
	}
}

const (
	// Kept is the age up to which an event can be read.
	Kept = 90 * 24 * time.Hour

	// Ahead is the time before the end of a grant when GrantExpiring is emitted.
	Ahead = 7 * 24 * time.Hour
)

// Event is an event that is to be emitted.
type Event struct {
	Type    Type
	At      time.Time
	Tenant  string // empty: the event is not about one tenant
	Meter   string // empty: the event is not about one meter
	Subject string // empty: the tenant itself
	Data    any    // encoded as a JSON object
	Once    *Once  // nil: the event may be emitted any number of times
}

// Once says that an event may be emitted only once per period, or again after it was armed. The period is that of a
// balance, or an hour or a day of the calendar.
type Once struct {
	Start, End time.Time // start and end of the period
	Mark       string    // identifies the event within the period
	Armed      bool      // the transaction has armed the event before it: it is emitted even if its mark is stored
}

// Mark names the stored mark of an event that was emitted.
type Mark struct {
	Tenant, Meter, Subject string
	Start                  time.Time // start of the period
	Name                   string
}

func (e *Event) mark() Mark { return Mark{e.Tenant, e.Meter, e.Subject, e.Once.Start, e.Once.Mark} }

// Reminder says when the end of a grant must be announced by an event.
type Reminder struct {
	Tenant, Meter, Subject, Grant string
	DueAt                         time.Time
}

// Emitted contains the events and reminders of one transaction.
type Emitted struct {
	Events    []Event    // in the order of their causes
	Armed     []Mark     // removed after the marks of Events are inserted: these events may be emitted again
	Dropped   []Reminder // removed before Reminders are inserted; a missing reminder is no error
	Reminders []Reminder
}

// Empty reports whether there are no events, no marks and no reminders to insert or remove.
func (t *Emitted) Empty() bool {
	return len(t.Events)+len(t.Armed)+len(t.Reminders)+len(t.Dropped) == 0
}

// The data of events, by type.
type (
	// Level is the data of ThresholdReached and Exhausted.
	Level struct {
		Threshold   int16      `json:"threshold,omitzero"` // percentage of Limit; absent for Exhausted
		Used        int64      `json:"used"`               // units in the period, with overage, less refunds
		Limit       int64      `json:"limit"`
		Remaining   int64      `json:"remaining"`
		Held        int64      `json:"held,omitzero"`
		Plan        string     `json:"plan,omitzero"`
		PeriodStart time.Time  `json:"period_start"`
		PeriodEnd   *time.Time `json:"period_end"` // nil: the period has no end
	}

	// Grants is the data of GrantsNearLimit.
	Grants struct {
		Open int `json:"open_grants"`
		Most int `json:"open_grants_max"` // no grant is issued to a balance with so many
	}

	// Grant is the data of GrantCreated, GrantExpiring and GrantExpired.
	Grant struct {
		Grant       string     `json:"grant_id"`
		Source      string     `json:"source"`
		Amount      int64      `json:"amount"`             // for GrantExpired: the units that remained
		Remaining   *int64     `json:"remaining,omitzero"` // only for GrantExpiring
		EffectiveAt *time.Time `json:"effective_at,omitzero"`
		ExpiresAt   *time.Time `json:"expires_at"` // nil: the grant never ends
	}

	// Hold is the data of HoldExpired.
	Hold struct {
		Hold      string    `json:"hold_id"`
		Amount    int64     `json:"amount"` // units of the meter that are available again
		ExpiredAt time.Time `json:"expired_at"`
	}

	// Period is the data of PeriodOpened.
	Period struct {
		Plan        string     `json:"plan,omitzero"`
		Limit       int64      `json:"limit"`
		PeriodStart time.Time  `json:"period_start"`
		PeriodEnd   *time.Time `json:"period_end"`
	}

	// Change is the data of PlanChanged, PlanChangeScheduled, PlanChangeCanceled and TenantSuspended.
	Change struct {
		Plan         string     `json:"plan"`
		PreviousPlan string     `json:"previous_plan,omitzero"` // PlanChangeScheduled, PlanChangeCanceled: the plan in force
		Apply        string     `json:"apply,omitzero"`         // now, next_period or effective_at: how the change was asked for
		Reason       string     `json:"reason,omitzero"`
		From         *time.Time `json:"from,omitzero"` // only PlanChangeScheduled, PlanChangeCanceled: when Plan is or was to be in force
	}

	// Rejections is the data of RejectionsHigh.
	Rejections struct {
		Rule      string    `json:"rule"`
		Minute    time.Time `json:"minute"`     // start of the minute
		Count     int64     `json:"rejections"` // number of rejections in Minute before the event
		Threshold int64     `json:"threshold"`  // number of rejections in a minute from which the event is emitted
	}

	// Drift is the data of VerifyDrift: the first difference of a balance.
	Drift struct {
		Verification string `json:"verification_id,omitzero"` // absent if the API did not start the verification
		What         string `json:"what"`
		Journal      string `json:"journal"`     // the value that follows from the journal
		Stored       string `json:"stored"`      // the stored value
		Differences  int    `json:"differences"` // of this balance; the verification may list fewer
		Total        int64  `json:"total"`       // number of differences in the whole verification
	}
)
