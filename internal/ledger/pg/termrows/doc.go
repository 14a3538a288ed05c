// Package termrows reads the terms of tenants, and the versions of the plans that they name, from the rows that ledger/pg selects. It asks for nothing
// itself.
package termrows
