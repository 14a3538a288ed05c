// Package oidc lets people sign in to the console with an identity provider, by OpenID Connect.
//
// # Terms
//
//   - provider: the program that authenticates people. The service discovers its addresses and keys when the first
//     person signs in.
//   - attempt: one sign-in in progress, from this service to the provider and back. Its state, nonce and verifier are
//     in an encrypted cookie.
//   - claim: a fact about a person, from the ID token or from the provider's user endpoint.
//   - rule: gives rights to people who have a claim with a given value.
//   - person: somebody who signed in. A person has the rights of all rules that match.
//
// # Invariants
//
//  1. A person comes from an ID token of this provider for this client. go-oidc checks signature, issuer, audience
//     and time; this package checks the nonce. The code is exchanged with the verifier of its attempt (PKCE, S256).
//     An attempt ends after AttemptMax and works only in the browser that began it.
//  2. Nobody has rights without a rule. A claim `email` counts only if the provider says that the address was
//     verified.
//  3. A session reaches one tenant or all tenants, so a person whose rules name several tenants is refused. Rules
//     without a tenant take precedence over rules with one. Rights for one tenant never become rights for all
//     tenants.
//  4. A person's rights come from the rules at the time of the sign-in. A change of the rules ends all sessions of
//     people.
//  5. If the provider does not answer, only sign-ins fail. The service sends requests to the provider only for
//     sign-ins, with a time limit and with a bound for the size of the answer.
//
// # Clock, concurrency, failure
//
// The clock is this machine's, because go-oidc checks tokens with it. All methods may be called concurrently. Errors
// are *Error, with a text for the person.
package oidc
