// Package oidc lets people sign in to the console at an identity provider, with OpenID Connect.
//
// # Terms
//
//   - provider: the program that authenticates people. The service reads the provider's addresses and keys when the
//     first person signs in.
//   - attempt: one sign-in in progress. The browser goes from this service to the provider and back. The attempt's
//     state, nonce and verifier are in an encrypted cookie.
//   - claim: a fact about a person, from the ID token or from the provider's user endpoint.
//   - rule: a setting that gives rights to people who have a claim with a given value.
//   - person: somebody who has signed in. A person has the rights of all rules that match the person's claims.
//
// # Invariants
//
//  1. A person is read from an ID token that this provider has issued for this client. go-oidc checks the token's
//     signature, issuer, audience and time; this package checks the nonce. The code is exchanged with the verifier of
//     its attempt (PKCE, S256). An attempt ends after AttemptMax. It is valid only in the browser that began it.
//  2. Nobody has rights without a rule. The claims `email` and `phone_number` are ignored unless the provider says that
//     it has verified them, in the document that the value is from. Nobody signs in without a subject.
//  3. A session reaches one tenant or all tenants. Rules without a tenant take precedence over rules with a tenant.
//     If a person has rules for several tenants, and no rule without a tenant, the sign-in is refused. Rights for one
//     tenant never become rights for all tenants.
//  4. A person has the rights of the rules at the time of the sign-in. After a change of the rules, all sessions of
//     people end.
//  5. If the provider does not answer, only sign-ins fail. The service sends requests to the provider only for
//     sign-ins. The time of these requests and the size of the answers are bounded.
//
// # Clock, concurrency, failure
//
// The clock is this machine's clock, with which go-oidc also checks tokens. All methods may be called concurrently.
// Errors that people see are *Error, with a text for the person.
package oidc
