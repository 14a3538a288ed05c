package ledger

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/quotasvc/quotasvc/internal/ledger/canonical"
)

// The versions of the encoding of an entry, which begin it. An entry without an actor has the first one, as it had before there were actors. A
// further column of entries needs a further version.
const (
	chainVersion      = 1
	chainVersionActor = 2 // the same, then the actor
)

// appendTexts appends texts, each after its length.
func appendTexts(b []byte, texts ...string) []byte {
	for _, t := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
	}
	return b
}

// fingerprintOf hashes a request, which begins with its kind and the version of the format.
func fingerprintOf(b []byte) [16]byte {
	full := sha256.Sum256(b)
	return [16]byte(full[:16])
}

func appendItems(b []byte, items []Item) []byte {
	b = binary.AppendVarint(b, int64(len(items)))
	for i := range items {
		b = binary.AppendVarint(appendTexts(b, items[i].Meter), items[i].Amount)
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
	b = appendTexts(b, e.Tenant, e.Meter, e.Subject)
	b = binary.AppendVarint(b, e.Seq)
	b = appendTexts(b, e.OperationID)
	b = binary.AppendVarint(b, int64(e.Line))
	b = appendTexts(b, string(e.Kind))
	b = binary.AppendVarint(b, e.PeriodStart.UnixMicro())
	b = appendTexts(b, e.Grant, string(e.Source))
	b = binary.AppendVarint(binary.AppendVarint(b, e.Amount), e.RemainingAfter)
	b = binary.AppendVarint(binary.AppendVarint(b, int64(e.Item)), e.Requested)
	b = append(binary.AppendUvarint(b, uint64(len(e.Fingerprint))), e.Fingerprint...)
	b = binary.AppendVarint(b, e.CreatedAt.UnixMicro())
	b = canonical.AppendOptional(b, e.EffectiveAt)
	b = appendTexts(b, e.OpSubject)
	b = canonical.AppendJSON(canonical.AppendJSON(b, e.Detail), e.Metadata)
	if e.Actor != "" {
		b = appendTexts(b, e.Actor)
	}
	return b
}
