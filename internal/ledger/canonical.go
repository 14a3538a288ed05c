package ledger

import (
	"encoding/binary"

	"github.com/quotasvc/quotasvc/internal/ledger/canonical"
)

// The versions of the encoding of an entry, which begin it. An entry without an actor has the first one, as it had before there were actors. A
// further column of entries needs a further version.
const (
	chainVersion      = 1
	chainVersionActor = 2 // the same, then the actor
)

func appendItems(b []byte, items []Item) []byte {
	b = binary.AppendVarint(b, int64(len(items)))
	for i := range items {
		b = binary.AppendVarint(canonical.AppendTexts(b, items[i].Meter), items[i].Amount)
	}
	return b
}

// appendEntry appends the canonical form of e: every column in a fixed order, texts with their length, instants in microseconds since 1970,
// JSON in a form that does not depend on how it was written.
func appendEntry(b []byte, e *Entry) []byte {
	version := byte(chainVersion)
	if e.Actor != "" {
		version = chainVersionActor
	}
	b = append(b, version)
	b = canonical.AppendTexts(b, e.Tenant, e.Meter, e.Subject)
	b = binary.AppendVarint(b, e.Seq)
	b = canonical.AppendTexts(b, e.OperationID)
	b = binary.AppendVarint(b, int64(e.Line))
	b = canonical.AppendTexts(b, string(e.Kind))
	b = binary.AppendVarint(b, e.PeriodStart.UnixMicro())
	b = canonical.AppendTexts(b, e.Grant, string(e.Source))
	b = binary.AppendVarint(binary.AppendVarint(b, e.Amount), e.RemainingAfter)
	b = binary.AppendVarint(binary.AppendVarint(b, int64(e.Item)), e.Requested)
	b = append(binary.AppendUvarint(b, uint64(len(e.Fingerprint))), e.Fingerprint...)
	b = binary.AppendVarint(b, e.CreatedAt.UnixMicro())
	b = canonical.AppendOptional(b, e.EffectiveAt)
	b = canonical.AppendTexts(b, e.OpSubject)
	b = canonical.AppendJSON(canonical.AppendJSON(b, e.Detail), e.Metadata)
	if e.Actor != "" {
		b = canonical.AppendTexts(b, e.Actor)
	}
	return b
}
