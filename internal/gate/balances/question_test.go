package balances

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Different questions must not share an answer, even if their meters begin with digits.
func TestQuestionKey_DiffersForDifferentQuestions(t *testing.T) {
	t.Parallel()
	item := func(meter string, amount int64) ledger.Item { return ledger.Item{Meter: meter, Amount: amount} }
	seen := map[string]int{}
	for i, q := range []ledger.CheckRequest{
		{Tenant: "a", Items: []ledger.Item{item("m", 1)}},
		{Tenant: "a", Items: []ledger.Item{item("m", 11)}},
		{Tenant: "a", Subject: "m", Items: []ledger.Item{item("m", 1)}},
		{Tenant: "a1", Subject: "m", Items: []ledger.Item{item("m", 1)}},
		{Tenant: "a", Items: []ledger.Item{item("m", 1), item("ab1234567890", 5)}},
		{Tenant: "a", Items: []ledger.Item{item("m", 11), item("ab", 12345678905)}},
	} {
		key := QuestionKey(q.Tenant, q.Subject, q.Items)
		before, known := seen[key]
		assert.False(t, known, "questions %d and %d have the key %q", before, i, key)
		seen[key] = i
	}
}
