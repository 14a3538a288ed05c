package events

import "time"

// Type names what an event tells.
type Type string

// The types of events.
const (
	ThresholdReached Type = "balance.threshold_reached" // a percentage of what can be used in the period is used
	Exhausted        Type = "balance.exhausted"         // nothing remains of a balance
	GrantCreated     Type = "grant.created"             // a grant was issued that no plan gives
	GrantExpiring    Type = "grant.expiring"            // a grant ends in Ahead
	GrantExpired     Type = "grant.expired"             // a grant has ended with units left
	HoldExpired      Type = "hold.expired"              // a hold has ended by itself
	PeriodOpened     Type = "period.opened"             // told only if a webhook wants it
	PlanChanged      Type = "plan.changed"              // a tenant has another plan
	TenantSuspended  Type = "tenant.suspended"
	RejectionsHigh   Type = "limit.rejections_high" // a limit refuses many requests of a tenant
	VerifyDrift      Type = "verify.drift"          // a verification has found a difference
)

// Types returns all types, in the order of the contract.
func Types() []string {
	return []string{
		string(ThresholdReached), string(Exhausted), string(GrantCreated), string(GrantExpiring), string(GrantExpired), string(HoldExpired),
		string(PeriodOpened), string(PlanChanged), string(TenantSuspended), string(RejectionsHigh), string(VerifyDrift),
	}
}

const (
	// Kept is how long events can be read.
	Kept = 90 * 24 * time.Hour

	// Ahead is how long before its end a grant is announced.
	Ahead = 7 * 24 * time.Hour
)

// Event is what happened.
type Event struct {
	Type    Type
	At      time.Time
	Tenant  string // empty: it is not about one tenant
	Meter   string // empty: it is not about one meter
	Subject string // empty: the tenant itself
	Data    any    // encoded as a JSON object
	Once    *Once  // nil: it is told whenever it happens
}

// Once says that an event is told once in a period: that of a balance, or an hour or a day of the calendar.
type Once struct {
	Start, End time.Time // of the period
	Mark       string    // what is told
}

// Reminder is the end of a grant that is to be announced.
type Reminder struct {
	Tenant, Meter, Subject, Grant string
	DueAt                         time.Time
}

// Told is what one transaction tells.
type Told struct {
	Events    []Event
	Dropped   []Reminder // which no longer hold, if they are there: removed before the new ones are made
	Reminders []Reminder
}

// Empty reports whether there is nothing to tell.
func (t *Told) Empty() bool { return len(t.Events)+len(t.Reminders)+len(t.Dropped) == 0 }

// The data of the types.
type (
	// Level is the data of ThresholdReached and Exhausted.
	Level struct {
		Threshold   int16      `json:"threshold,omitzero"` // percentage; absent on Exhausted
		Used        int64      `json:"used"`               // in the period, less what was refunded, with overage
		Limit       int64      `json:"limit"`
		Remaining   int64      `json:"remaining"`
		Held        int64      `json:"held,omitzero"`
		Plan        string     `json:"plan,omitzero"`
		PeriodStart time.Time  `json:"period_start"`
		PeriodEnd   *time.Time `json:"period_end"` // nil: the period has no end
	}

	// Grant is the data of GrantCreated, GrantExpiring and GrantExpired.
	Grant struct {
		Grant       string     `json:"grant_id"`
		Source      string     `json:"source"`
		Amount      int64      `json:"amount"`             // GrantExpired: the units that were left
		Remaining   *int64     `json:"remaining,omitzero"` // only GrantExpiring
		EffectiveAt *time.Time `json:"effective_at,omitzero"`
		ExpiresAt   *time.Time `json:"expires_at"` // nil: never
	}

	// Hold is the data of HoldExpired.
	Hold struct {
		Hold      string    `json:"hold_id"`
		Amount    int64     `json:"amount"` // units of the meter that are free again
		ExpiredAt time.Time `json:"expired_at"`
	}

	// Period is the data of PeriodOpened.
	Period struct {
		Plan        string     `json:"plan,omitzero"`
		Limit       int64      `json:"limit"`
		PeriodStart time.Time  `json:"period_start"`
		PeriodEnd   *time.Time `json:"period_end"`
	}

	// Change is the data of PlanChanged and TenantSuspended.
	Change struct {
		Plan         string `json:"plan"`
		PreviousPlan string `json:"previous_plan,omitzero"`
		Apply        string `json:"apply,omitzero"` // now or next_period
		Reason       string `json:"reason,omitzero"`
	}

	// Rejections is the data of RejectionsHigh.
	Rejections struct {
		Rule      string    `json:"rule"`
		Minute    time.Time `json:"minute"`     // its beginning
		Count     int64     `json:"rejections"` // in that minute, when the event was told
		Threshold int64     `json:"threshold"`  // from which on it is told
	}

	// Drift is the data of VerifyDrift: the first difference of a balance.
	Drift struct {
		Verification string `json:"verification_id,omitzero"` // absent: nobody asked the API for it
		What         string `json:"what"`
		Journal      string `json:"journal"`     // what the journal says
		Stored       string `json:"stored"`      // what is stored
		Differences  int    `json:"differences"` // of the balance, as far as the verification lists them
		Total        int64  `json:"total"`       // of the verification
	}
)
