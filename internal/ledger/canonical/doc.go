// Package canonical writes values as bytes that do not depend on how they were written before, for hashes: fingerprints of requests and the chains
// of the journal. It is pure.
//
// Every text has its length before it, so that no two lists of values have the same bytes. What is written here stays as it is: stored hashes depend
// on it. A document that is not JSON makes it panic: callers have checked it.
package canonical
