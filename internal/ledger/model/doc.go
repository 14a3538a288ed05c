// Package model is a second implementation of the ledger's rules, with the code that compares both implementations.
// Only tests import it.
//
// # Model
//
// A Model is simple and slow. It was written from the documentation. It keeps whole grants, searches all events for
// the earliest due event, and copies everything before an operation. It shares no code with the decisions of package
// ledger: it uses only the requests, keys and codes of that package.
//
// The model keeps every allowance with the amounts that were in force, and every draw from it. What a change of the
// terms leaves is computed from them: the prorated sum, the units that are short, and the units that were drawn since
// another interval's nominal start.
//
// # Drivers
//
// A Program draws random requests, and changes of plans, for one tenant. Memory keeps the ledger's rows in maps
// instead of tables, so that the decisions can be tested without a database. The tests here send the same requests to
// the model and, through the memory, to package ledger. The tests of the store send the requests to several instances
// of the real ledger at once. Explain then looks for an order of the requests in which the model gives the same
// answers.
//
// # Invariants
//
//	M1  Both implementations give the same answers, balances and closed periods, for any batches and any rolls.
//	M2  Memory accepts only rows that the schema's constraints accept. The sums of its entries equal the stored sums.
//
// # Clock, concurrency, failure
//
// The clock is Model.Now, which the test sets. Nothing here is safe for concurrent use. A difference fails the test.
package model
