// Package feature holds the features of plans: switches and bounds of a tenant that are not counted.
//
// # Terms
//
//   - feature: a name with a value, true or false, or an integer such as the size of an upload. A plan has features;
//     a tenant may override single features.
//   - set: features by name. It is shared, and does not change after its creation.
//   - granted: true, or an integer above 0. A feature that a set lacks is not granted.
//
// The package has no clock and does no I/O. Its only errors are for text that is no value of a feature.
package feature
