package ledger

import "testing"

// Requests that differ must not share an answer, whatever digits their meters begin with.
func TestCheckRequest_Key_DiffersForDifferentRequests(t *testing.T) {
	t.Parallel()
	item := func(meter string, amount int64) Item { return Item{Meter: meter, Amount: amount} }
	seen := map[string]int{}
	for i, q := range []CheckRequest{
		{Tenant: "a", Items: []Item{item("m", 1)}},
		{Tenant: "a", Items: []Item{item("m", 11)}},
		{Tenant: "a", Subject: "m", Items: []Item{item("m", 1)}},
		{Tenant: "a1", Subject: "m", Items: []Item{item("m", 1)}},
		{Tenant: "a", Items: []Item{item("m", 1), item("ab1234567890", 5)}},
		{Tenant: "a", Items: []Item{item("m", 11), item("ab", 12345678905)}},
	} {
		if before, known := seen[q.Key()]; known {
			t.Errorf("requests %d and %d have the key %q", before, i, q.Key())
		}
		seen[q.Key()] = i
	}
}
