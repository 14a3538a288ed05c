package history

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Amend is the kind under which reports show entries of the kinds amend_up and amend_down. The ledger stores no amount
// below 0, so it has two kinds. In reports the amount of amend_down is negative.
const Amend ledger.EntryKind = "amend"

// Kinds lists the kinds that reports show.
func Kinds() []ledger.EntryKind {
	kinds := ledger.EntryKinds()
	kinds[slices.Index(kinds, ledger.EntryAmendUp)] = Amend
	return slices.DeleteFunc(kinds, func(k ledger.EntryKind) bool { return k == ledger.EntryAmendDown })
}

// Shown returns the kind and the amount that reports show for an entry.
func Shown(e *ledger.Entry) (kind ledger.EntryKind, amount int64) {
	if amount = e.Amount; e.Kind == ledger.EntryAmendDown {
		amount = -amount
	}
	return ShownKind(e.Kind), amount
}

// ShownKind returns the kind that reports show for a kind of the ledger.
func ShownKind(k ledger.EntryKind) ledger.EntryKind {
	if k == ledger.EntryAmendUp || k == ledger.EntryAmendDown {
		return Amend
	}
	return k
}

// stored returns the kinds of the ledger that reports show as k. For the empty kind it returns the empty kind.
func stored(k ledger.EntryKind) []ledger.EntryKind {
	if k == Amend {
		return []ledger.EntryKind{ledger.EntryAmendUp, ledger.EntryAmendDown}
	}
	return []ledger.EntryKind{k}
}

// shown returns sums by the kinds that reports show.
func shown(in []sum) []sum {
	out := make([]sum, len(in))
	for i, s := range in {
		s.amount = new(big.Int).Set(s.amount)
		if s.kind == ledger.EntryAmendDown {
			s.amount.Neg(s.amount)
		}
		s.kind = ShownKind(s.kind)
		out[i] = s
	}
	return merged(out)
}

// inOrder sorts entries as a list has them.
func inOrder(entries []ledger.Entry, o Order) {
	slices.SortFunc(entries, func(a, b ledger.Entry) int {
		if o == NewestFirst {
			a, b = b, a
		}
		return cmp.Or(ledger.CompareKeys(a.BalanceKey, b.BalanceKey), cmp.Compare(a.Seq, b.Seq))
	})
}
