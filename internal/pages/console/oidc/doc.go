// Package oidc lets people sign in to the console with an identity provider, by OpenID Connect.
//
// # Terms
//
//   - provider: the program that knows the people. Its addresses and keys are discovered when the first person signs in.
//   - attempt: one sign-in on its way, from this service to the provider and back. Its state, nonce and verifier are in a cookie, sealed.
//   - claim: what the provider says about a person, in the ID token or its answer about the user.
//   - rule: gives rights to people who have a claim with a value.
//   - person: who signed in, with the rights of the rules that fit.
//
// # Invariants
//
//  1. A person comes from an ID token of this provider for this client: signature, issuer, audience, time and nonce are checked by go-oidc. The code is
//     exchanged with the verifier of its own attempt (PKCE, S256), which ends after AttemptMax and is used in the browser that began it.
//  2. Nobody has rights without a rule. A claim `email` counts only if the provider says that it was verified.
//  3. A person whose rules name several tenants gets none of them: a session reaches one tenant or all. Rules without a tenant go before those with one,
//     and rights for one tenant never become rights for all.
//  4. A person's rights are those of the rules at the sign-in. Changing the rules ends all sessions of people.
//  5. A provider that does not answer keeps nobody else from anything: it is asked when somebody signs in, each question has a time limit, and its
//     answers a size.
//
// # Clock, concurrency, failure
//
// This machine's clock, as go-oidc checks tokens with it. All methods may be called at once. Errors are *Error, with what to tell the person.
package oidc
