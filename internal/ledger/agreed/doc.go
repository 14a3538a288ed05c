// Package agreed reads what tenants have agreed to: their terms, and the versions of their plans.
package agreed
