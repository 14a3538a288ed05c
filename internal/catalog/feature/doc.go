// Package feature holds the features of plans: switches and numbers that a tenant gets, and that are not counted.
//
// # Terms
//
//   - feature: a name with a value: true, false or an integer, for example the largest size of an upload. A plan has
//     features; a tenant may override single features.
//   - set: features by name. It is shared, and does not change after its creation.
//   - granted: a feature is granted if its value is true or an integer above 0. A feature that a set lacks is not
//     granted.
//
// The package has no clock and does no I/O. Its only errors are for text that is no value of a feature.
package feature
