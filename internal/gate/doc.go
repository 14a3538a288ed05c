// Package gate makes one decision out of three: rate limits, balance, debit. It also says how the service degrades when a
// backend is away, and keeps the copies of balances that checks answer from.
package gate
