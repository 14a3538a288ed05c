// Package words has the texts of the customer's page in each of its languages.
//
// # Terms
//
//   - message: a text with a key. Its places, such as {amount}, are filled in.
//   - language: the messages of one file in messages/, and how it writes numbers and dates.
//
// # Invariants
//
// Every language has the same messages, each with the same places. A test compares them, and those that the pages ask for.
//
// # Clock, concurrency, failure
//
// Pure. Languages do not change. A browser that asks for none of them gets English.
package words
