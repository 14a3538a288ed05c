// Package feature holds the features of plans: switches and bounds that a tenant has or has not, beside what is counted.
//
// # Terms
//
//   - feature: a name with a value, true or false, or an integer such as the size of an upload. A plan has features; a tenant may override single ones.
//   - set: features by name. It is shared, and not changed after it was made.
//   - granted: true, or an integer above 0. What a set lacks is not granted.
//
// The package is pure: no clock, no I/O. Nothing of it fails but the reading of text that is no value.
package feature
