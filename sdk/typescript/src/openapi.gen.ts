// The types of the contract.
// Written by scripts/generate.mjs from internal/httpapi/reference/openapi.yaml. Do not edit: npm run generate.

export interface paths {
    "/v1/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check whether a consume would be allowed
         * @description Checks limits and balances without a change. The status is 200 even if `allowed` is false. Then `code` is the code of the refusal that a consume would get.
         */
        post: operations["check"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/check/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Up to 1000 independent checks
         * @description Each result is the answer that POST /v1/check would return, or its problem, in the order of the checks. The limits of all checks are read together. A body with an invalid field, or with more than 1048576 bytes, is refused as a whole.
         */
        post: operations["checkBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/consume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Charge the rate limits and debit the balance, or neither
         * @description If one limit or one item does not permit the request, nothing is charged.
         */
        post: operations["consume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/authorize/{gateway}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The kind of the gateway. It determines the form of a refusal. */
                gateway: "nginx" | "haproxy" | "traefik" | "envoy";
            };
            cookie?: never;
        };
        /**
         * Decide whether a request may pass the gateway
         * @description Gateways call this operation before they pass on a request of their client. The gateway sends any method, no
         *     body, and all data in headers. The request consumes one item. With `X-Quota-Mode: check` it only checks. With
         *     `limit` it only charges limits, and `X-Quota-Charge` is the id of the charge. With `lease` it acquires a lease
         *     of the concurrency limit `X-Quota-Rule`. `X-Quota-Lease` is its id: the gateway ends the lease by `DELETE
         *     /v1/leases/{lease_id}` when the request has ended. With the answer 200, the gateway lets the request pass. A
         *     refusal has the status and the problem of a consume. Only for `nginx`, which would turn most statuses into 500,
         *     the status is 403 (401 stays 401). Then `X-Quota-Status` has the status of the refusal, and `X-Quota-Problem`
         *     has the problem.
         *
         *     The service trusts these headers, so the gateway must replace or remove such headers of its clients. `nginx` and
         *     `haproxy` describe the forwarded request with `X-Original-URI` and `X-Original-Method`, `traefik` with
         *     `X-Forwarded-Uri` and `X-Forwarded-Method`. If a gateway's own headers are missing, the headers of the other
         *     gateways count. Limits see the method and the path, in a normal form and without the query. `X-Quota-Route` can
         *     name a route instead of the path. Other spellings of a route count as the same route unless a limit's
         *     `normalize` says otherwise.
         *
         *     Limits per `ip` use the peer of the connection. If the peer is a trusted proxy, they use the client in
         *     `X-Forwarded-For` or `X-Real-IP`.
         *
         *     If an earlier request had the same `Idempotency-Key`, method, URI and X-Quota headers, the request passes
         *     without another charge of units. Without a key, units are charged for each request. An `X-Request-Id` is not a key.
         *
         *     Limits are charged once for the same id of a tenant: the `Idempotency-Key`, or else the `X-Request-Id`. For 10
         *     minutes after a limit was charged, requests with the id pass this limit and are not charged again, whatever their
         *     route, cost and subject. What was refused is not remembered. A repetition has no `X-Quota-Charge`. The gateway
         *     must create the id itself: a client that chooses it passes all limits.
         *
         *     A preflight passes uncharged and needs no tenant: the method of the forwarded request, in the gateway's own
         *     header, is OPTIONS, and it has `Origin` and `Access-Control-Request-Method`. Answers have
         *     `Access-Control-Expose-Headers`.
         */
        get: operations["authorize"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/authorize/envoy/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The path and the query of the forwarded request, with all its slashes. */
                path: string;
            };
            cookie?: never;
        };
        /**
         * Decide whether a request may pass Envoy
         * @description Like the operation above. Envoy sends the method of the forwarded request. Its path follows `path_prefix`.
         */
        get: operations["authorizeEnvoy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/debits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Debit the balance
         * @description All items succeed or all fail. Rate limits are not charged.
         */
        post: operations["debit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/debits/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Up to 1000 independent debits
         * @description Each debit succeeds or fails independently, with its own idempotency key. Results are in the order of the debits. A body with an invalid field is refused as a whole, before any debit is carried out. Only an object beyond the bounds of metadata refuses its own debit alone, with 400 in its result. With `dry_run`, each debit is decided as if there were no other debit.
         */
        post: operations["debitBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/holds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserve units for work that is about to start
         * @description Held units leave `remaining` at once. A capture uses them. A release or the expiry of the hold returns them to their grants. All items are held, or none. Overage cannot be held.
         */
        post: operations["hold"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/holds/{hold_id}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use held units
         * @description Without `items`, the capture uses all held units. With `items`, it uses these amounts, and the rest stays held unless `final` is true. If the amounts exceed the hold, the capture is decided like a debit. A hold without remaining units is `captured`.
         */
        post: operations["captureHold"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/holds/{hold_id}/release": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Return held units
         * @description The units that are still reserved return to the grants from which they came. For a hold that is captured, released or expired the answer is 409.
         */
        post: operations["releaseHold"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/holds/{hold_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extend a hold
         * @description The hold expires `ttl_seconds` from now. An extension never shortens a hold.
         */
        post: operations["extendHold"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/refunds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refund a debit or a capture, in whole or in part
         * @description Repeated refunds cannot exceed the debit. Units return to their grants. Units that were drawn last return first.
         */
        post: operations["refund"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/charge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Charge limits without a debit
         * @description Charges all limits that apply, or none, without an entry in the ledger. `cost` multiplies the tokens that each limit takes for a request. `rules` names the limits to charge. If another limit replaces a named limit, that other limit is charged instead. A named limit that does not apply is not charged. A limit with `match.meter` never applies here. With `after_the_fact` nothing is denied, and the limits are charged down to their `debt` below zero. If an `Idempotency-Key` is repeated within 10 minutes, nothing is charged, and the answer shows the present state of the limits. While Redis is down, only the instance that has charged knows the key.
         */
        post: operations["chargeLimits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/charge/refund": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give back the tokens of a charge
         * @description Returns the tokens that the charge took, except for tokens that have come back with time. A second refund of a charge returns nothing. For an id that was not issued the answer is 404. After 503, the refund may have been made.
         */
        post: operations["refundCharge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/charge/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change the cost of a charge
         * @description Sets the cost of a charge when it is known, for example after an estimate. Each limit then has the state that a charge of `cost` would have left. Tokens that were taken in excess come back, except for tokens that have come back with time. Missing tokens are taken, even below zero, by at most the `debt` of the limit. A charge is settled or refunded once; the next settlement changes nothing. A cost of 0 is a refund. For an id that was not issued the answer is 404. After 503, the settlement may have been made.
         */
        post: operations["settleCharge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acquire one of a limited number of leases
         * @description Returns a lease of a limit of kind `concurrency` if a lease is free. The holder releases the lease after its
         *     work, and renews it during long work. Leases that are not renewed expire, so the leases of a dead holder become
         *     free again. If limits replace the named limit, the most specific limit that applies decides.
         *
         *     The same `Idempotency-Key` returns the same lease while the lease lasts, so a retry takes no second lease.
         */
        post: operations["acquireLease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/{lease_id}/renew": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id that the acquisition returned; opaque. */
                lease_id: components["parameters"]["LeasePath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew a lease
         * @description The lease ends `ttl_seconds` from now, even if it would have lasted longer. For a lease that has ended the answer is `lease_not_found`, because another caller may hold it now. Renew after a third of the time, which leaves time for retries. If the tenant, the subject or the address has been blocked, or the tenant has been suspended, the lease ends. The answer is then `forbidden` or `tenant_suspended`.
         */
        post: operations["renewLease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/leases/{lease_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id that the acquisition returned; opaque. */
                lease_id: components["parameters"]["LeasePath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Release a lease
         * @description A release of a lease that has ended succeeds, so it can be repeated. After `unavailable` the lease still ends at its time, or earlier if the release is repeated.
         */
        delete: operations["releaseLease"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/balances": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The balances of a tenant
         * @description One balance for each meter of the plan, used or unused, and for each other meter that has a grant. With `as_of`, the balances that existed at that instant. The list is not paged.
         */
        get: operations["listBalances"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/balances/{meter}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        /**
         * One balance with its open grants
         * @description The balance now, or at the instant `as_of`.
         */
        get: operations["getBalance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * Journal entries of a tenant, by meter and in the order in which they were written
         * @description Sorted by meter, by subject, and by the number of the entry in its balance. Entries are added to the journal and never changed.
         */
        get: operations["listEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/operations/{operation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The idempotency key of the request, or the id of an operation that the ledger started, as entries show it. Percent-encode characters that a path segment cannot contain. */
                operation_id: string;
            };
            cookie?: never;
        };
        /**
         * One operation with its entries
         * @description If a key is used again after the service has forgotten it, the key names another operation. The answer is one of these operations.
         */
        get: operations["getOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/periods": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The open period and the following ones
         * @description The periods follow from the tenant's present terms.
         */
        get: operations["listPeriods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/statements": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The closed and open periods, sorted by start, latest first
         * @description The statements have no lines here. Periods with the same start are sorted by meter.
         */
        get: operations["listStatements"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/statements/{meter}/{period_start}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
                /** @description The start of the period, or one of these: `current` for the open period, `last` for the newest closed one, `at:` and a time for the period that contains that time. */
                period_start: string;
            };
            cookie?: never;
        };
        /**
         * The statement of one period
         * @description The figures add up: opening + granted + amended + refunded - used - expired + adjusted = closing. With `format=csv` or `Accept: text/csv`, the answer is CSV. The file has a header row, a row for each kind of entry and source of grants, and a row with source `total` for each figure of the sum.
         */
        get: operations["getStatement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * Use per hour, day or month
         * @description Lists the hours, days or months in [from, to) that have use, oldest first. The time is limited to 31 days by hour, 366 days by day and 3660 days by month. The list is not paged.
         */
        get: operations["listUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/denials": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The refused requests of a tenant
         * @description Refused debits, consumes, holds, captures, charges and authorizes in [from, to). The answer has the number of denials in each minute, and the last denials with explanations. It does not have checks, dry runs, faults of a request (400) and failures of the service (503). A denial is listed about a second after its answer. Counts are kept for at least 35 days. The last 100 explanations of a tenant are kept. The list is not paged.
         */
        get: operations["listDenials"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/holds": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The holds of a tenant
         * @description Sorted by id. The list has active and ended holds.
         */
        get: operations["listHolds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/holds/{hold_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        /**
         * One hold
         * @description The hold and the units that were captured from it.
         */
        get: operations["getHold"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/grants": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The grants of a tenant
         * @description Sorted by meter, subject and id. The list includes ended grants.
         */
        get: operations["listGrants"];
        put?: never;
        /**
         * Issue a grant
         * @description Adds units that can be used at once, or from `effective_at` on. Paid grants stay valid after the end of a period.
         */
        post: operations["grant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/grants/{grant_id}/void": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the grant. */
                grant_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Void the remainder of a grant
         * @description Units that were drawn or are held do not change.
         */
        post: operations["voidGrant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/grants/{grant_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the grant. */
                grant_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a grant a later end
         * @description The grant keeps its id and its remaining and held units. Only its end changes, and with it its position in the burn order. A pending grant can be extended, too. The answer is 409 for a grant that is used up, has ended, was voided, never ends, or ends with its period (an allowance or a rollover). The answer is 400 for an end that is not later than the present end.
         */
        post: operations["extendGrant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/adjustments": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Correct a balance
         * @description A positive amount adds a grant with source adjustment that does not expire. A negative amount is drawn from the grants in burn order.
         */
        post: operations["adjust"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/meters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All meters
         * @description Sorted by id.
         */
        get: operations["listMeters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/meters/{meter}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        /**
         * One meter
         * @description Returns the stored object.
         */
        get: operations["getMeter"];
        /**
         * Create or replace a meter
         * @description The answer is 201 for a new meter and 200 for an existing one.
         */
        put: operations["putMeter"];
        post?: never;
        /**
         * Delete an unused meter
         * @description A meter cannot be deleted if a version of a plan (even an old one), a limit, or a balance with entries refers to it.
         */
        delete: operations["deleteMeter"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All plans, each in its newest version
         * @description Sorted by id.
         */
        get: operations["listPlans"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans/{plan}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the plan. */
                plan: components["parameters"]["PlanPath"];
            };
            cookie?: never;
        };
        /**
         * The newest version of a plan
         * @description The allowances and limits of the plan.
         */
        get: operations["getPlan"];
        /**
         * Create a new version of a plan
         * @description Versions are immutable. A tenant has the version that was the newest at the start of its billing period, or at the last change of its terms. So a new version waits for the end of each tenant's billing period, unless it says `apply: now`. A PUT that changes nothing creates no version.
         */
        put: operations["putPlan"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All tenants, or those with a plan, a status, some metadata, or a used percentage
         * @description Sorted by id, or by remaining units. With a filter, a page may have fewer items than `limit`, or none, and further pages may follow. Continue until `next_cursor` is null. In a list sorted by id, each tenant is listed exactly once, for any changes between two pages. In a list sorted by remaining units, a tenant whose balance changes between two pages may be listed twice or be missing.
         */
        get: operations["listTenants"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * One tenant
         * @description Returns the tenant with the terms that are in force now, and the change that waits, with an ETag for If-Match.
         */
        get: operations["getTenant"];
        /**
         * Create or replace a tenant
         * @description Open periods do not change. A change of plan, anchor, zone or overrides waits for the end of the billing period, and the features of the body wait with it: the answer has it as `pending`. Fields that are not in the body get their defaults. A request for the terms that are in force, or that wait, changes no terms. Other terms beside a pending change are refused with 409 `change_pending`. With If-Match, the request replaces a tenant and never creates one.
         */
        put: operations["putTenant"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change the given fields of a tenant
         * @description Absent fields do not change. New terms, such as another plan, take effect at the end of the billing period, at once if `apply` is `now`, or at `effective_at`. Until then nothing moves: allowances, features, gauges, rate limits of plans and `match.plan`. Then all of them move together. One change can wait: another one that would wait is refused with 409 `change_pending`. A change that applies now is allowed, and the pending change stays. It keeps the members that its request named. All other members follow the change that applies now. If the request has an `Idempotency-Key`, a retry within 31 days returns the first answer and changes nothing.
         */
        patch: operations["patchTenant"];
        trace?: never;
    };
    "/v1/tenants/{tenant}/pending": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Take back the change of a tenant that waits
         * @description The terms in force stay. 404 if no change waits, also if it has just taken effect.
         */
        delete: operations["deletePending"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/gauges": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The gauges of a tenant, sorted by meter and subject
         * @description The list has the gauges of the tenant's plan, even if they were never set, and those gauges of its subjects that were set. It also has gauges that the plan no longer has, with a limit of 0, until their value is 0.
         */
        get: operations["listGauges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/gauges/{meter}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        /**
         * The present value of a gauge
         * @description A gauge that was never set is 0.
         */
        get: operations["getGauge"];
        /**
         * Set a gauge, such as the seats of a team, or change it by a difference
         * @description A value above the plan's amount is refused with 403 `gauge_limit`, and the old value stays. If a change of the plan has left the value above the amount, the value can only fall.
         */
        put: operations["setGauge"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/gauges/{meter}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        /**
         * The journal of a gauge, newest first
         * @description Each change has its key, the values before and after, and the limit at that time.
         */
        get: operations["listGaugeEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/features": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The features that a tenant has now
         * @description The features in the newest version of the tenant's plan, with the tenant's overrides. They are read from memory, as in a check of a feature.
         */
        get: operations["getFeatures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/terms": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The history of a tenant's plan, anchor, zone and overrides with their reasons, oldest first
         * @description One item for each change, with the instant from which the terms are in force.
         */
        get: operations["listTerms"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All rate limits
         * @description Sorted by id. Limits of plans are not here; they are part of their plan.
         */
        get: operations["listLimits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        /**
         * One rate limit
         * @description Returns the stored limit. With `explain=1`, it also returns an explanation in numbers.
         */
        get: operations["getLimit"];
        /**
         * Create or replace a rate limit
         * @description The answer is 201 for a new limit. Every instance applies the limit within a second.
         */
        put: operations["putLimit"];
        post?: never;
        /**
         * Delete a rate limit
         * @description Every instance stops applying the limit within a second. If another limit replaces this one, the answer is 409. Delete that limit first.
         */
        delete: operations["deleteLimit"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset a bucket
         * @description The body names one bucket by exactly the dimensions that divide the limit's buckets. The bucket returns to its state before the first charge. For a limit of a plan, or a limit that a plan's limit replaces, the reset affects the limit that applies to the tenant. For kind concurrency, all leases of the bucket end. A repetition changes nothing. The service writes the line in the audit log first, also for a repetition. If it cannot write the line, it resets nothing.
         */
        post: operations["resetLimit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/state": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        /**
         * The state of a bucket
         * @description The parameters name one bucket by the dimensions that divide the limit's buckets, as for a reset. For a limit of a plan, or a limit that a plan's limit replaces, the answer is about the limit that applies to the tenant. Nothing is charged.
         */
        get: operations["getLimitState"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/top": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        /**
         * The fullest buckets of a limit
         * @description Reads all buckets of the limit, including those of plans' limits with the same id, and returns the fullest. These are the buckets with the largest used share. Other requests are still served. An instance does this for one caller at a time. Another caller waits up to a second and then gets 503 `queue_full`. Keys that are bound to a tenant are refused.
         */
        get: operations["getLimitTop"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/shadow": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        /**
         * The denials that a limit in shadow mode would have made
         * @description For the last hour, day and week, the answer has the number of requests that the limit would have denied if it had been enforced, and the number of their tenants. It also has the number of requests that enforced limits denied, if the limit decided the same requests. Consumes, charges, authorizes and leases count. Checks, dry runs, charges after the fact, and requests that failed (400 and 503) do not. Only the time in which the limit was in shadow mode counts. A request is counted about a second after its answer. Counts are kept for at least 35 days, even if the limit is now enforced or deleted. Limits of plans with this id are added up. Keys that are bound to a tenant are refused.
         */
        get: operations["getLimitShadow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/overrides": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        /**
         * The overrides of a limit
         * @description Sorted by tenant and subject. The list does not have expired overrides.
         */
        get: operations["listLimitOverrides"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/overrides/{tenant}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        /**
         * The override of a limit for a tenant
         * @description Returns the stored object.
         */
        get: operations["getLimitOverride"];
        /**
         * Change rate and burst of a limit for a tenant
         * @description The override applies to the tenant as a whole, and to its subjects that have no override of their own.
         */
        put: operations["putLimitOverride"];
        post?: never;
        /**
         * Delete the override of a limit for a tenant
         * @description The numbers of the limit apply again.
         */
        delete: operations["deleteLimitOverride"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/limits/{rule}/overrides/{tenant}/{subject}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the subject. */
                subject: components["parameters"]["SubjectPath"];
            };
            cookie?: never;
        };
        /**
         * The override of a limit for a subject of a tenant
         * @description Returns the stored object.
         */
        get: operations["getSubjectLimitOverride"];
        /**
         * Change rate and burst of a limit for a subject of a tenant
         * @description The override applies to this subject instead of the numbers of the tenant and of the limit.
         */
        put: operations["putSubjectLimitOverride"];
        post?: never;
        /**
         * Delete the override of a limit for a subject of a tenant
         * @description The numbers of the tenant's override, or of the limit, apply again.
         */
        delete: operations["deleteSubjectLimitOverride"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blocks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All blocks in force
         * @description Blocks and exemptions that have not expired.
         */
        get: operations["listBlocks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blocks/{kind}/{value}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
            };
            cookie?: never;
        };
        /**
         * One block of a tenant, a subject or an address
         * @description Returns the stored object.
         */
        get: operations["getBlock"];
        /**
         * Block or exempt a tenant, a subject or an address
         * @description Every instance applies the block within a second. A block refuses requests. An exemption (`allow`) exempts requests from rate limits.
         */
        put: operations["putBlock"];
        post?: never;
        /**
         * Delete a block of a tenant, a subject or an address
         * @description Every instance stops applying the block within a second.
         */
        delete: operations["deleteBlock"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blocks/{kind}/{value}/{bits}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
                /** @description The number after the slash of a prefix. */
                bits: components["parameters"]["BlockBitsPath"];
            };
            cookie?: never;
        };
        /**
         * One block of a prefix of addresses
         * @description Returns the stored object.
         */
        get: operations["getBlockPrefix"];
        /**
         * Block or exempt a prefix of addresses
         * @description Like the block of one address, for all addresses that begin with these bits.
         */
        put: operations["putBlockPrefix"];
        post?: never;
        /**
         * Delete a block of a prefix of addresses
         * @description Every instance stops applying the block within a second.
         */
        delete: operations["deleteBlockPrefix"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rolls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Close due periods and open the next ones
         * @description Balances are correct without a roll: a period is closed and the next one is opened when its balance is next used. A roll does this in the background for unused balances. A repetition changes nothing.
         */
        post: operations["startRoll"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rolls/{roll_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the roll. */
                roll_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        /**
         * The progress of a roll
         * @description The numbers of balances, while the roll runs and afterwards.
         */
        get: operations["getRoll"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/verifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The verifications, newest first
         * @description Verifications that `POST /v1/verifications` started, without their differences. A single verification has its differences. The continuous verification of each instance is in its metrics. A key that is bound to a tenant sees only verifications of that tenant.
         */
        get: operations["listVerifications"];
        put?: never;
        /**
         * Verify that journal, balances, grants, periods and cached copies agree
         * @description Compares every balance with sums over the journal. This runs in the background, in chunks that do not slow down requests. The service does this continuously at a low rate. This request starts a complete pass now.
         */
        post: operations["startVerification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/verifications/{verification_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the verification. */
                verification_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        /**
         * The progress and the result of a verification
         * @description The objects that were compared, and the differences that were found.
         */
        get: operations["getVerification"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/seals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The sealed days, newest first
         * @description The list has no proofs. A single seal has its proofs.
         */
        get: operations["listSeals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/seals/{day}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A day in UTC.
                 * @example 2026-11-22
                 */
                day: string;
            };
            cookie?: never;
        };
        /**
         * The seal of a day, for somebody else to keep
         * @description The answer is the file that `quotasvc seal` writes. With this file, `quotasvc verify --seal FILE` can prove later that the journal up to that day has not changed.
         */
        get: operations["getSeal"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The present state of the service
         * @description The requests of the answering instance in the last minute, the parts that do not work and the reasons, the most frequent refusals of the last hour, and the last jobs. There is an answer even while PostgreSQL or Redis is down. Refusals and jobs are those of all instances and a few seconds old. They are absent while the service cannot read them. Keys that are bound to a tenant are refused.
         */
        get: operations["getStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/portal-sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a link to the page of a tenant, for its people
         * @description Until the link ends, it shows the tenant's units and use, read-only. It can be opened, or shown inside another page. Anybody who has the link sees the page, so give it only to people who have signed in to your own pages. A link ends at its time, when the key that created it ends, or when the links of its tenant are ended. A retry creates another link. A tenant has at most 200 links that its own keys have created, and 200 that others have created. A further link by a key of the tenant is refused with 409 `too_many`. A further link by another key ends the oldest link of these. Links that have ended do not count.
         */
        post: operations["createPortalSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{tenant}/portal-sessions": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End all links to the page of a tenant
         * @description From the next request on, open pages show nothing. A repetition changes nothing.
         */
        delete: operations["endPortalSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The keys, without secrets
         * @description The list includes revoked and expired keys.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create a key
         * @description The answer has the secret, which is shown only this time. A key with a tenant is bound to it. Such a key is refused for every other tenant, and lists show it only that tenant. A bound admin key creates only keys that are bound to the same tenant. A retry creates another key.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key, not its secret. */
                key_id: components["parameters"]["KeyPath"];
            };
            cookie?: never;
        };
        /**
         * One key, without its secret
         * @description The scopes of the key, its state, and the time of its last use.
         */
        get: operations["getKey"];
        put?: never;
        post?: never;
        /**
         * Revoke a key
         * @description Every instance refuses the key within a second. A repetition changes nothing.
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{key_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key, not its secret. */
                key_id: components["parameters"]["KeyPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a key a new secret
         * @description The key keeps its id. Its previous secrets work for another `overlap_seconds`. By default, they stop working at once. The answer has the new secret, which is shown only this time. A retry creates another secret.
         */
        post: operations["rotateKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The changes by administrators, newest first
         * @description A line is written in the transaction of its change. A key that is bound to a tenant sees only the lines of that tenant.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The events, oldest first
         * @description Events of the last 90 days. An event is written in the transaction of its change, and is listed within about a second. Events are listed in the order of their ids. So a client that passes the last `event_id` as `after` misses no event. A key that is bound to a tenant sees only the events of that tenant.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The catalogue as one document
         * @description Meters, plans in their newest version, limits and blocks, each with its defaults. POST accepts this document unchanged. It has no tenants.
         */
        get: operations["exportCatalog"];
        put?: never;
        /**
         * Change the catalogue to the content of a document
         * @description Like `quotasvc apply` for catalog.yaml. All changes are made in one transaction, or none. Objects that the document does not name do not change unless `prune` is true. A repetition changes nothing. The answer reports all faults together.
         */
        post: operations["applyCatalog"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The webhooks, without secrets
         * @description A key that is bound to a tenant sees only the webhooks of that tenant.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook that sends events to a receiver
         * @description The answer has the secret with which deliveries are signed, as in Standard Webhooks. The secret is shown only this time. A retry creates another webhook. There are at most 500 webhooks.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        /**
         * One webhook
         * @description The webhook without its secret.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description Pending deliveries are skipped.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change or pause a webhook
         * @description A paused webhook gets no events. Deliveries that are pending when it is paused are skipped. A replay can deliver them later.
         */
        patch: operations["patchWebhook"];
        trace?: never;
    };
    "/v1/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Call the receiver once, as a test
         * @description The service calls the receiver now, with an event of the type `webhook.test`, and returns the result of the call. This works for a paused webhook, too.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{webhook_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a webhook a new secret
         * @description For another `overlap_seconds`, deliveries have a signature of each previous secret. By default, the previous secrets are not used any more. The answer has the new secret, which is shown only this time. A retry creates another secret.
         */
        post: operations["rotateWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{webhook_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliver events again
         * @description Replays the events of the types and the tenant of the webhook, even events that were delivered, are dead, or happened while the webhook was paused. The `webhook-id` of an event stays the same. A replay has at most 10,000 events. `next_from` is then the start of the next replay. For a paused webhook the answer is 409.
         */
        post: operations["replayWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        /**
         * The deliveries of a webhook and their results
         * @description Sorted by event, newest first. Deliveries are kept as long as events.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/test/clock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The ledger's time
         * @description In `quotasvc dev` only; 404 elsewhere.
         */
        get: operations["getTestClock"];
        put?: never;
        /**
         * Move the ledger's time forward
         * @description In `quotasvc dev` only; 404 elsewhere. Periods close, trials and grants end, holds expire and idempotency keys are forgotten as if the time had passed. The time never goes back, not even at a restart. It can be at most 3653 days ahead in all. These stay on real time: rate limits, leases, callers' keys, overrides of limits, the audit log, seals and archives.
         */
        post: operations["advanceTestClock"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.yaml": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This document
         * @description `/v1/openapi.json` has the same document in JSON, and `/docs` shows it to people. No key is needed.
         */
        get: operations["getSpec"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This document in JSON
         * @description For tools that do not read YAML. No key is needed.
         */
        get: operations["getSpecJSON"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An id: 1 to 128 letters, digits and . _ : - ; it begins with a letter or a digit. */
        Id: string;
        /** @description The id of a tenant, subject, grant or hold, as other systems have them: `auth0|5f7c8e`, `ann@example.com`. 1 to 255 visible ASCII characters other than `"`, `%`, `\`, `?`, `#`, `<` and `>`; it does not begin with a dot. Percent-encode it in a path. */
        Name: string;
        /**
         * Format: int64
         * @description An amount in the meter's smallest unit.
         */
        Amount: number;
        /**
         * Format: int64
         * @description A sum of many entries, in the meter's smallest unit. It can exceed 2^53-1, in contrast to a single amount. 2^63-1 stands for any larger sum.
         */
        Sum: number;
        /**
         * Format: int64
         * @description A number of units, in the meter's smallest unit.
         */
        Count: number;
        /** @description A user, team, key or project of the tenant, for records, caps and limits per subject. */
        Subject: string;
        /** @description A charge of limits without a debit. */
        ChargeRequest: {
            tenant: components["schemas"]["Name"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            method?: components["schemas"]["Method"];
            /**
             * Format: int64
             * @description The number of requests that this charge stands for; 1 by default.
             */
            cost?: number;
            /** @description The work is done: the limits are charged even if nothing remains. A charge takes a bucket at most `debt` tokens below zero. `charged` is the number of tokens that were charged. */
            after_the_fact?: boolean;
            /** @description The limits to charge; all that apply by default. */
            rules?: components["schemas"]["Id"][];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description The result of a charge. */
        ChargeAnswer: {
            /** @description Always true. A denial is a problem. */
            allowed: boolean;
            /** @description The verdicts of the limits, after the charge. */
            limits: components["schemas"]["LimitVerdict"][];
            /** @description The id of the charge for a refund. Absent if no limit was charged. */
            charge_id?: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description The charge to take back. */
        ChargeRefundRequest: {
            /** @description The id that the charge returned. */
            charge_id: string;
        };
        /** @description The charge, and what it should have cost. */
        ChargeSettleRequest: {
            /** @description The id that the charge returned. */
            charge_id: string;
            /**
             * Format: int64
             * @description The cost of the charge, in the unit of the `cost` of the charge. 0 is a refund.
             */
            cost: number;
        };
        /** @description The result of a settlement of a charge. */
        ChargeSettleAnswer: {
            /** @description False if the charge was settled or refunded before, or if its tokens have come back with time. */
            settled: boolean;
            /** @description The limits after the settlement. */
            limits: components["schemas"]["LimitVerdict"][];
        };
        /** @description The result of a refund of a charge. */
        ChargeRefundAnswer: {
            /** @description False if the charge was refunded before, or if its tokens have come back with time. */
            refunded: boolean;
            /** @description The limits after the refund. */
            limits: components["schemas"]["LimitVerdict"][];
        };
        /** @description A request for a lease of a concurrency limit. */
        LeaseRequest: {
            /** @description A limit of kind `concurrency`. */
            rule: string;
            tenant: components["schemas"]["Name"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            ttl_seconds?: components["schemas"]["LeaseTtl"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description The new duration of a lease. */
        LeaseRenewal: {
            ttl_seconds?: components["schemas"]["LeaseTtl"];
        };
        /**
         * Format: int64
         * @description How long the lease lasts. The default is that of the limit: the period of its rate, or 60 seconds.
         */
        LeaseTtl: number;
        /** @description A lease, or the result of a dry run. */
        LeaseAnswer: {
            /** @description Absent after a dry run. */
            lease_id?: string;
            /** @description The limit that decided */
            rule: string;
            /** @description The limit that this one replaces */
            replaces?: string;
            /**
             * Format: date-time
             * @description When the lease ends unless it is renewed, by the clock of Redis or of the instance. Absent after a dry run.
             */
            expires_at?: string;
            /**
             * Format: int64
             * @description The time until the lease ends, for holders with another clock.
             */
            expires_in_ms?: number;
            /**
             * Format: int64
             * @description The number of leases at a time
             */
            limit: number;
            /**
             * Format: int64
             * @description The number of held leases, including this one. Absent if unknown.
             */
            in_use?: number;
            /**
             * Format: int64
             * @description The number of free leases. Absent if unknown.
             */
            remaining?: number;
            /** @description The limit is in shadow mode and denies nobody. */
            shadow?: boolean;
            /** @description Redis is down; decided by the limit's `on_backend_error`. */
            degraded?: boolean;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description Your own JSON object, which is stored with the entries. It has at most 4096 bytes without blanks and at most 16 levels. It must not contain the character U+0000, numbers with more than 64 characters, exponents with more than 3 digits, or numbers whose nearest float64 is infinite, such as 1e309. */
        Metadata: {
            [key: string]: unknown;
        };
        /** @description The called route, for limits per route. */
        Route: string;
        /** @description The HTTP method of the request, in upper case, for limits with `match.method`. */
        Method: string;
        /** @description A route in which `*` matches one or more characters without a slash, and `**` at the end matches any rest. */
        RoutePattern: string;
        /** @description The IPv4 or IPv6 address of the caller, for limits per address and blocks. IPv6 addresses with the same first 64 bits count as one caller unless a limit has its own `ip_prefix`. An IPv6 address that contains an IPv4 address (::ffff:0:0/96, 64:ff9b::/96, ::/96) counts as that IPv4 address. */
        Ip: string;
        /** @description An amount of a meter. */
        Item: {
            meter: components["schemas"]["Id"];
            amount: components["schemas"]["Amount"];
        };
        /** @description Each meter may appear once. */
        Items: components["schemas"]["Item"][];
        /**
         * @description What happens if less is available than requested. `normal` charges all or nothing. `best_effort` charges the available units and returns the rest as `shortfall`. `drain` is for finished work: it charges the available units and records the rest as overage, even above the cap, up to 2^53-1. The cap of a subject does not bound it: the tenant's units pay, and the subject's balance records the use beyond its cap as its overage.
         * @enum {string}
         */
        Mode: "normal" | "best_effort" | "drain";
        /** @description The units or features of the consume to check. Requires items, a feature, or both. */
        CheckRequest: {
            tenant: components["schemas"]["Name"];
            items?: components["schemas"]["Items"];
            feature?: components["schemas"]["Feature"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            method?: components["schemas"]["Method"];
            /**
             * Format: int64
             * @description The largest age of a balance copy that may answer. With 0, the balance is read from the ledger, and the limits are read from Redis. Otherwise both may be read from memory.
             */
            max_stale_ms?: number;
        };
        /** @description The units or features to consume. Requires items, a feature, or both. */
        ConsumeRequest: {
            tenant: components["schemas"]["Name"];
            items?: components["schemas"]["Items"];
            feature?: components["schemas"]["Feature"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            method?: components["schemas"]["Method"];
            mode?: components["schemas"]["Mode"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description The units to debit. */
        DebitRequest: {
            tenant: components["schemas"]["Name"];
            items: components["schemas"]["Items"];
            subject?: components["schemas"]["Subject"];
            mode?: components["schemas"]["Mode"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
            /**
             * Format: date-time
             * @description With `dry_run`: decide as at this instant, if nothing is used until then. It can be at most 400 days ahead. Periods, grants, holds and agreed terms begin and end as scheduled. Blocks and a suspension are those of now.
             */
            at?: string;
        };
        /** @description Independent debits. */
        DebitBatchRequest: {
            /** @description The debits. Each is decided independently. */
            debits: components["schemas"]["BatchDebit"][];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description One debit of a batch. */
        BatchDebit: {
            /** @description Like the header of POST /v1/debits. The service does not need it if `dry_run` is true. */
            idempotency_key: string;
            tenant: components["schemas"]["Name"];
            items: components["schemas"]["Items"];
            subject?: components["schemas"]["Subject"];
            mode?: components["schemas"]["Mode"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description Independent checks. */
        CheckBatchRequest: {
            /** @description The checks. Each is decided independently. */
            checks: components["schemas"]["CheckRequest"][];
        };
        /** @description One result for each check, in the order of the request. */
        CheckBatchAnswer: {
            /** @description The answer of each check, or its problem. */
            results: (components["schemas"]["CheckAnswer"] | components["schemas"]["Problem"])[];
        };
        /** @description The answer to a check. `allowed` selects the form of the answer. */
        CheckAnswer: {
            /** @description Whether a consume would be allowed. */
            allowed: boolean;
            /** @description The items of the request, in its order. Empty if the balances of a blocked request could not be read. */
            items: components["schemas"]["CheckedItem"][];
            /** @description The verdicts of the limits that apply to the request. */
            limits: components["schemas"]["LimitVerdict"][];
            /**
             * @description The source of the balances.
             * @enum {string}
             */
            source: "ledger" | "cache" | "local";
            /**
             * Format: date-time
             * @description The instant of the oldest balance that was used.
             */
            as_of: string;
            /** @description A backend was down. Balances may be older than permitted, or each instance decided limits alone. */
            degraded?: boolean;
        } & (components["schemas"]["CheckAllowed"] | components["schemas"]["CheckDenied"]);
        /** @description The members of an answer to a check that is allowed. */
        CheckAllowed: {
            /**
             * @description Always true.
             * @enum {boolean}
             */
            allowed: true;
        };
        /** @description The members of an answer to a check that is denied. */
        CheckDenied: {
            /**
             * @description Always false.
             * @enum {boolean}
             */
            allowed: false;
            code: components["schemas"]["ProblemCode"];
            limiting?: components["schemas"]["Limiting"];
            blocked?: components["schemas"]["Blocked"];
        };
        /** @description The balance of an item. */
        CheckedItem: {
            meter: components["schemas"]["Id"];
            required: components["schemas"]["Amount"];
            remaining: components["schemas"]["Count"];
            limit: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The largest amount of this meter that would be allowed now, without other items.
             */
            max_allowed_now: number;
            /**
             * Format: date-time
             * @description The first instant at which the item alone succeeds if nothing else happens: a grant takes effect, a hold expires, or a period brings enough units. Absent if there is none up to the end of the period. An answer from a copy (`source`) considers only the end of the period.
             */
            would_succeed_at?: string;
            /**
             * @description The code of the refusal of this item; absent if it would be allowed.
             * @enum {string}
             */
            code?: "quota_exceeded" | "credits_exhausted" | "meter_not_in_plan";
        };
        /** @description The decision of a limit. */
        LimitVerdict: {
            rule: components["schemas"]["Id"];
            kind: components["schemas"]["LimitKind"];
            /** @description The rule that this limit replaces; absent if there is none. */
            replaces?: string;
            /** @description Whether the limit lets the request pass. */
            allowed: boolean;
            /**
             * Format: int64
             * @description The remaining whole tokens.
             */
            remaining: number;
            /**
             * Format: int64
             * @description The bucket's capacity in tokens.
             */
            limit: number;
            /**
             * Format: int64
             * @description The time after which the same cost would pass. It is 0 if the cost passed, and null if it will never pass.
             */
            retry_after_ms: number | null;
            /**
             * Format: int64
             * @description How long an admitted request waits in a leaky bucket before it starts; absent if it need not wait.
             */
            delay_ms?: number;
            /**
             * Format: int64
             * @description The time until the bucket's ban ends; absent if the bucket is not banned.
             */
            banned_ms?: number;
            /**
             * Format: int64
             * @description Only for a charge after the fact: the tokens that the charge took.
             */
            charged?: number;
            /** @description The limit is in shadow mode. It counts requests and denies none. */
            shadow: boolean;
            /** @description Only for a limit in shadow mode: whether it would have denied the request. */
            would_deny?: boolean;
            /** @description One instance decided this limit alone, without Redis. */
            degraded?: boolean;
        };
        /** @description On `forbidden`, the blocked tenant, subject or address. */
        Blocked: {
            kind: components["schemas"]["BlockKind"];
            /** @description The id of the tenant or the subject, or the prefix that contains the address. */
            value: string;
            /**
             * Format: date-time
             * @description When the block ends; absent if never.
             */
            expires_at?: string;
            /** @description The reason that was given. */
            reason?: string;
        };
        /** @description The balance or cap that prevents the request. */
        Limiting: {
            /**
             * @description With allowance, the next period adds more units. With credit, only a grant helps.
             * @enum {string}
             */
            kind: "allowance" | "credit";
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /**
             * @description Whether the tenant's balance or the subject's cap prevents it.
             * @enum {string}
             */
            level: "tenant" | "subject";
        };
        /** @description The units that were debited. */
        DebitAnswer: {
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            tenant: components["schemas"]["Name"];
            /** @description The units that were charged, in the order of the request. */
            items: components["schemas"]["DebitedItem"][];
            /** @description The verdicts of the rate limits on a consume, after the charge. Absent if no limit applies. Absent on a replay, because a replay charges no limits. */
            limits?: components["schemas"]["LimitVerdict"][];
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description The units that were charged for an item. */
        DebitedItem: {
            meter: components["schemas"]["Id"];
            requested: components["schemas"]["Amount"];
            charged: components["schemas"]["Count"];
            shortfall: components["schemas"]["Count"];
            /** @description The grants that paid for the item, in burn order. */
            draws: components["schemas"]["Draw"][];
            overflow?: components["schemas"]["OverflowPayment"];
            remaining: components["schemas"]["Count"];
        };
        /** @description The rounding of the cost that the overflow meter paid. Present only if the price is a ratio, because a whole price needs no rounding. The draws of the overflow meter add up to `cost`. */
        OverflowPayment: {
            /** @description The overflow meter. */
            meter: string;
            /**
             * Format: int64
             * @description The number of units of the item that the overflow meter paid for.
             */
            units: number;
            price: components["schemas"]["OverflowRatio"];
            /**
             * @description The exact cost of the units: `2.345`, or `2 1/3` if the decimals do not end or are more than nine.
             * @example 2.345
             */
            exact: string;
            /**
             * @description The rule: up to the next whole unit of the overflow meter, once for the item.
             * @enum {string}
             */
            rounding: "up";
            /**
             * Format: int64
             * @description The units of the overflow meter that were charged: the exact cost, rounded.
             */
            cost: number;
        };
        /** @description The price in the plan, which is `units` of the overflow meter for `per` units of the item's meter. */
        OverflowRatio: {
            units: components["schemas"]["Amount"];
            per: components["schemas"]["Amount"];
        };
        /** @description A part of an amount that was taken from one grant. */
        Draw: {
            /** @description The grant; empty for overage. */
            grant: string;
            source: components["schemas"]["Source"];
            /** @description The item's meter, or its overflow meter. */
            meter: string;
            amount: components["schemas"]["Amount"];
        };
        /**
         * @description The source of a grant. overage is use that no grant paid for.
         * @enum {string}
         */
        Source: "allowance" | "topup" | "promo" | "rollover" | "refund" | "adjustment" | "overage";
        /** @description One result for each debit, in the order of the request. */
        DebitBatchAnswer: {
            /** @description The answer of each debit, or its problem. */
            results: components["schemas"]["BatchResult"][];
        };
        /** @description The status and the body that POST /v1/debits would return, in one object. It has `status` 200, or a `code` for a refusal. */
        BatchResult: components["schemas"]["BatchDebited"] | components["schemas"]["BatchRefused"];
        /** @description A debit of a batch that was carried out. */
        BatchDebited: {
            /**
             * Format: int32
             * @description Always 200.
             * @enum {integer}
             */
            status: 200;
            /** @description Whether this is the stored answer to an earlier request with the same key. */
            replayed: boolean;
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            tenant: components["schemas"]["Name"];
            /** @description The units that were charged, in the order of the request. */
            items: components["schemas"]["DebitedItem"][];
            /**
             * Format: date-time
             * @description The instant of the decision.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description A debit of a batch that was refused. The members after `errors` depend on `code`. */
        BatchRefused: {
            /**
             * Format: int32
             * @description The status that POST /v1/debits would return.
             * @enum {integer}
             */
            status: 400 | 402 | 403 | 404 | 409 | 410 | 422 | 429 | 500 | 503;
            /** @description Whether this is the stored denial of an earlier request with the same key. */
            replayed: boolean;
            /**
             * Format: uri
             * @description The page that describes the code, or a registered type.
             */
            type: string;
            /** @description The code in words. */
            title: string;
            /** @description What happened to this request. The text is for people and may change. */
            detail: string;
            code: components["schemas"]["ProblemCode"];
            /** @description The faults of the request, by field. */
            errors?: components["schemas"]["FieldError"][];
        } & (components["schemas"]["QuotaProblem"] | components["schemas"]["RateLimitProblem"] | components["schemas"]["CapacityProblem"] | components["schemas"]["ForbiddenProblem"] | components["schemas"]["ArchivedProblem"] | components["schemas"]["UnavailableProblem"] | components["schemas"]["OtherProblem"]);
        /** @description The units of a meter that a tenant or a subject has in the open period. */
        Balance: {
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The plan that the open period has; absent if the plan does not have the meter. */
            plan?: string;
            /**
             * Format: int32
             * @description The version of that plan.
             */
            plan_version?: number;
            /**
             * Format: int64
             * @description used + held + remaining, the total for the open period.
             */
            limit: number;
            opening: components["schemas"]["Count"];
            granted: components["schemas"]["Count"];
            amended: components["schemas"]["AmendedSum"];
            /**
             * Format: int64
             * @description Units by which the allowance of the period is smaller, because they were drawn or held before. It is 0 unless the period began with a change of the interval. null with as_of in a period that has closed.
             */
            carried: number | null;
            refunded: components["schemas"]["Count"];
            used: components["schemas"]["Count"];
            overflow: components["schemas"]["OverflowSum"];
            expired: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The sum of corrections; negative if more was taken than given.
             */
            adjusted: number;
            held: components["schemas"]["Count"];
            remaining: components["schemas"]["Count"];
            overage: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The number of the balance's newest entry, for the If-Match of an adjustment.
             */
            seq: number;
            period: components["schemas"]["BalancePeriod"];
            /** @description The grants that have units to draw, in burn order. */
            grants: components["schemas"]["Grant"][];
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
        };
        /**
         * Format: int64
         * @description Units of this meter that another meter of the tenant paid for, because the plan lets it pay when this meter is used up. No other figure includes these units. A refund does not change this figure: it is in `refunded` of the meter that had paid. In a balance of a subject it is 0, because `used` includes these units. 2^63-1 stands for any larger sum.
         */
        OverflowSum: number;
        /**
         * Format: int64
         * @description What changes of the terms inside the period added to its allowance; negative if they took more than they gave.
         */
        AmendedSum: number;
        /** @description A period. It includes its start and not its end. */
        BalancePeriod: {
            /**
             * Format: date-time
             * @description The start; null if no period is open.
             */
            start: string | null;
            /**
             * Format: date-time
             * @description The end; null if the period has no end.
             */
            end: string | null;
        };
        /** @description A page of balances. */
        BalanceList: {
            /** @description The items of this page. */
            items: components["schemas"]["Balance"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The cursor of the next page; null on the last page. */
        NextCursor: string | null;
        /** @description A line of the journal. It never changes. */
        Entry: {
            /** @description The id of the operation. */
            operation_id: string;
            /**
             * Format: int32
             * @description The number of the line in its operation, from 1.
             */
            line: number;
            /**
             * Format: int64
             * @description The number of the entry in its balance, starting at 1 and without gaps.
             */
            seq: number;
            kind: components["schemas"]["EntryKind"];
            meter: components["schemas"]["Id"];
            /** @description The subject of the balance; empty for the tenant itself. */
            subject: string;
            /**
             * Format: date-time
             * @description The start of the period to which the entry belongs.
             */
            period_start: string;
            /** @description The grant; empty if there is none. */
            grant: string;
            /** @description The source of the grant; empty if there is none. */
            source: string;
            /**
             * Format: int64
             * @description A number of units, in the meter's smallest unit. It is negative only if an `amend` lowered the allowance.
             */
            amount: number;
            remaining_after: components["schemas"]["Count"];
            /**
             * Format: int32
             * @description The index of the item in the operation, from 0.
             */
            item: number;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When an entry of the ledger's own operations was due, if it was written later.
             */
            effective_at?: string;
            /** @description The subject that the request named. */
            operation_subject?: string;
            /** @description The id of the key of the request. Absent in entries of the ledger's own operations, and in entries of earlier versions. */
            actor?: string;
            metadata?: components["schemas"]["Metadata"];
            /** @description Further data, for some kinds. */
            detail?: {
                [key: string]: unknown;
            };
        };
        /**
         * @description What an entry records. A grant takes effect (`grant`), or is issued for a later time (`schedule`). Units are used: `debit`, `capture`, `overage`. Units are reserved: `hold`, `extend`, `release`. Units are given back: `refund`, `unoverage`, `unowe`, `unsettle`, `closed_refund`. New terms raise or lower the allowance of the open period: `amend`, with an amount above or below 0. Units expire (`expire`), are taken back (`void`) or are corrected (`adjust_up`, `adjust_down`). Units move into the next period: `rollover_out`, `rollover_in`. Overage is forgiven (`forgive`), stays owed (`owe`) or is paid by the next allowance (`settle`). A grant gets a later end (`extend_grant`). A denial is stored: `denial`.
         * @enum {string}
         */
        EntryKind: "grant" | "debit" | "overage" | "refund" | "unoverage" | "forgive" | "owe" | "settle" | "unowe" | "unsettle" | "closed_refund" | "amend" | "expire" | "void" | "adjust_up" | "adjust_down" | "hold" | "capture" | "release" | "rollover_out" | "rollover_in" | "schedule" | "extend" | "extend_grant" | "denial";
        /** @description A page of entries. */
        EntryList: {
            /** @description The items of this page. */
            items: components["schemas"]["Entry"][];
            next_cursor: components["schemas"]["NextCursor"];
            /**
             * Format: date-time
             * @description Present if the list has no `from` and older entries were archived. The list begins at this instant.
             */
            archived_before?: string;
        };
        /** @description The result of one request. */
        Operation: {
            /** @description The id of the operation. */
            operation_id: string;
            tenant: components["schemas"]["Name"];
            kind: components["schemas"]["EntryKind"];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /** @description The lines of the operation in the journal. */
            entries: components["schemas"]["Entry"][];
        };
        /** @description A past or future period of a meter. */
        Period: {
            /**
             * Format: date-time
             * @description The inclusive start.
             */
            start: string;
            /**
             * Format: date-time
             * @description The end, exclusive; null if the period has no end.
             */
            end: string | null;
            /** @description The start in the tenant's time zone. */
            local_start: string;
            /** @description The end in the tenant's time zone. */
            local_end: string | null;
            allowance: components["schemas"]["Count"];
        };
        /** @description The coming periods. */
        PeriodList: {
            /** @description The items of this page. */
            items: components["schemas"]["Period"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Units to reserve. */
        HoldRequest: {
            tenant: components["schemas"]["Name"];
            hold_id: components["schemas"]["Name"];
            items: components["schemas"]["Items"];
            subject?: components["schemas"]["Subject"];
            ttl_seconds?: components["schemas"]["TtlSeconds"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /**
         * Format: int64
         * @description Seconds from now; an hour by default, a day at most.
         */
        TtlSeconds: number;
        /** @description The units of a hold to use. */
        CaptureRequest: {
            tenant: components["schemas"]["Name"];
            items?: components["schemas"]["Items"];
            /** @description Whether to release the rest of the hold. After a capture without items there is no rest. */
            final?: boolean;
            on_expired?: components["schemas"]["OnExpired"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description A hold to release. */
        ReleaseRequest: {
            tenant: components["schemas"]["Name"];
            on_expired?: components["schemas"]["OnExpired"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description A hold to extend. */
        ExtendRequest: {
            tenant: components["schemas"]["Name"];
            ttl_seconds: components["schemas"]["TtlSeconds"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /**
         * @description What happens to units whose grant has ended. With `forfeit`, the default, they expire at once. With `regrant`, they are granted again. If they were part of an allowance, the new grant ends with the period; otherwise it has no end.
         * @enum {string}
         */
        OnExpired: "forfeit" | "regrant";
        /** @description A hold after a change. */
        HoldAnswer: {
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            hold_id: components["schemas"]["Name"];
            tenant: components["schemas"]["Name"];
            status: components["schemas"]["HoldStatus"];
            /** @description The reserved amounts. */
            items: components["schemas"]["HeldItem"][];
            /**
             * Format: date-time
             * @description The instant at which the hold expires unless it is captured or released.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /**
         * @description A hold that was captured in part and then released is `captured`. A hold that was captured in part and then expired is `expired`.
         * @enum {string}
         */
        HoldStatus: "active" | "captured" | "released" | "expired";
        /** @description A page of holds. */
        HoldList: {
            /** @description The items of this page. */
            items: components["schemas"]["Hold"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Units that are reserved. */
        Hold: {
            hold_id: components["schemas"]["Name"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            status: components["schemas"]["HoldStatus"];
            /** @description The reserved amounts. */
            items: components["schemas"]["HoldPart"][];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant at which the hold expires unless it is captured or released.
             */
            expires_at: string;
        };
        /** @description The units of a meter in a hold. */
        HoldPart: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The reserved amount.
             */
            amount: number;
            /**
             * Format: int64
             * @description The used amount. It exceeds `amount` if a capture exceeded the hold.
             */
            captured: number;
            /**
             * Format: int64
             * @description The amount that is still reserved.
             */
            held: number;
        };
        /** @description The units of a meter in a hold after a change. */
        HeldItem: {
            meter: components["schemas"]["Id"];
            amount: components["schemas"]["Amount"];
            captured: components["schemas"]["Count"];
            held: components["schemas"]["Count"];
            /** @description The draws of a capture. For other operations, the draws of the held units. */
            draws: components["schemas"]["Draw"][];
            remaining: components["schemas"]["Count"];
        };
        /** @description The operation to refund, in whole or in part. */
        RefundRequest: {
            tenant: components["schemas"]["Name"];
            /** @description The idempotency key of the debit or capture. */
            operation_id: string;
            /**
             * Format: date-time
             * @description The refund is for the newest operation with this id at or before this instant. By default it is for the newest one. If a key is used again after the service has forgotten it, the key names another operation.
             */
            at?: string;
            /**
             * Format: int64
             * @description The amount in units of the item's meter. By default, it is all that was not yet refunded.
             */
            amount?: number;
            /** @description The meter of the item to refund. By default all items are refunded. Required with `amount` if the operation has several items. */
            meter?: string;
            on_expired?: components["schemas"]["OnExpired"];
            reason?: components["schemas"]["Reason"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description The reason, for the records. At most 500 bytes of UTF-8. */
        Reason: string;
        /** @description The units that were refunded. */
        RefundAnswer: {
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            /** @description The operation that was refunded. */
            refund_of: string;
            /**
             * Format: date-time
             * @description The time of the refunded operation. Absent in replayed answers of earlier versions.
             */
            refund_of_at?: string;
            tenant: components["schemas"]["Name"];
            /** @description The units that were refunded, by item. */
            items: components["schemas"]["RefundedItem"][];
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description The units that were refunded for an item. */
        RefundedItem: {
            meter: components["schemas"]["Id"];
            refunded: components["schemas"]["Amount"];
            /** @description The grants to which the units returned. */
            draws: components["schemas"]["Draw"][];
            /**
             * Format: int64
             * @description The returned units that expired at once because their grant had ended.
             */
            forfeited: number;
            remaining: components["schemas"]["Count"];
        };
        /** @description The grant to take back, and the reason. */
        VoidRequest: {
            reason: components["schemas"]["Reason"];
            /** @description The meter of the grant. Required only if grants of several meters have this id. */
            meter?: string;
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description The new end of a grant, and the reason. */
        GrantExtensionRequest: {
            /**
             * Format: date-time
             * @description The instant from which units cannot be drawn. It must be later than the grant's present end. null means that there is no end.
             */
            expires_at: string | null;
            reason: components["schemas"]["Reason"];
            /** @description The meter of the grant. Required only if grants of several meters have this id. */
            meter?: string;
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description A grant whose end was moved. */
        GrantExtension: {
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            tenant: components["schemas"]["Name"];
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The grant. */
            grant: string;
            /**
             * Format: int64
             * @description The units that can be drawn from the grant until its new end. For a pending grant, it is the amount.
             */
            units: number;
            /**
             * Format: int64
             * @description Units of the grant that are on hold. Units that return before the new end can be drawn again.
             */
            held: number;
            /**
             * Format: date-time
             * @description The end before the change.
             */
            previous_expires_at: string;
            /**
             * Format: date-time
             * @description The end after the change; null if there is none.
             */
            expires_at: string | null;
            /**
             * Format: int64
             * @description The remaining units of the balance, which an extension does not change.
             */
            remaining: number;
            /**
             * Format: int64
             * @description The number of the balance's newest entry after the change.
             */
            seq: number;
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description A correction of a balance. */
        AdjustmentRequest: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The amount to add or, if negative, to remove. Not 0.
             */
            amount: number;
            reason: components["schemas"]["Reason"];
            /** @description The subject of the balance. By default it is the tenant's own balance. */
            subject?: string;
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description A balance before and after a change. */
        ChangeAnswer: {
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            tenant: components["schemas"]["Name"];
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The grant that was voided, or issued by an adjustment. */
            grant?: string;
            /**
             * Format: int64
             * @description The change of the remaining units.
             */
            amount: number;
            /**
             * Format: int64
             * @description The remaining units before the change.
             */
            before: number;
            /**
             * Format: int64
             * @description The remaining units after the change.
             */
            remaining: number;
            /**
             * Format: int64
             * @description The number of the balance's newest entry after the change.
             */
            seq: number;
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description The statement of a period. It adds up: opening + granted + amended + refunded - used - expired + adjusted = closing. */
        Statement: {
            tenant: components["schemas"]["Name"];
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The plan of the period; absent if the plan does not have the meter. */
            plan?: string;
            /**
             * Format: int32
             * @description The version of that plan.
             */
            plan_version?: number;
            period: components["schemas"]["BalancePeriod"];
            /** @description False while the period is open. The figures are then those at as_of. */
            closed: boolean;
            opening: components["schemas"]["Count"];
            granted: components["schemas"]["Count"];
            amended: components["schemas"]["AmendedSum"];
            refunded: components["schemas"]["Count"];
            used: components["schemas"]["Count"];
            overflow: components["schemas"]["OverflowSum"];
            expired: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The sum of corrections; negative if more was taken than given.
             */
            adjusted: number;
            /**
             * Format: int64
             * @description The remaining and the held units.
             */
            closing: number;
            held: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description Use that no grant paid for. It is not part of the sum.
             */
            overage: number;
            /** @description The sums of entries, for each kind and source of grants. */
            lines: components["schemas"]["StatementLine"][];
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
        };
        /** @description A statement without its lines. */
        StatementSummary: {
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The plan of the period; absent if the plan does not have the meter. */
            plan?: string;
            /**
             * Format: int32
             * @description The version of that plan.
             */
            plan_version?: number;
            /**
             * Format: date-time
             * @description The start of the period.
             */
            period_start: string;
            /**
             * Format: date-time
             * @description Null if the period has no end.
             */
            period_end: string | null;
            /** @description False while the period is open. */
            closed: boolean;
            opening: components["schemas"]["Count"];
            granted: components["schemas"]["Count"];
            amended: components["schemas"]["AmendedSum"];
            refunded: components["schemas"]["Count"];
            used: components["schemas"]["Count"];
            overflow: components["schemas"]["OverflowSum"];
            expired: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The sum of corrections; negative if more was taken than given.
             */
            adjusted: number;
            closing: components["schemas"]["Count"];
            held: components["schemas"]["Count"];
            overage: components["schemas"]["Count"];
        };
        /** @description A page of statements. */
        StatementList: {
            /** @description The items of this page. */
            items: components["schemas"]["StatementSummary"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The sum of the entries of one kind and source. */
        StatementLine: {
            kind: components["schemas"]["EntryKind"];
            /** @description The source of the grants; empty if there is none. */
            source: string;
            /**
             * Format: int64
             * @description The sum, in the meter's smallest unit. It can exceed 2^53-1, in contrast to a single amount. 2^63-1 stands for any larger sum. It is negative only for the kind `amend`.
             */
            amount: number;
            /**
             * Format: int64
             * @description The number of entries.
             */
            entries: number;
        };
        /** @description The use in an hour, a day or a month. */
        Usage: {
            /**
             * Format: date-time
             * @description The start of the hour, day or month.
             */
            start: string;
            /**
             * Format: int64
             * @description Units drawn from grants. 2^63-1 stands for any larger sum.
             */
            used: number;
            overage: components["schemas"]["Sum"];
            overflow: components["schemas"]["OverflowSum"];
            /**
             * Format: int64
             * @description Units that were refunded, of used and overage. The net use is used + overage - refunded. 2^63-1 stands for any larger sum.
             */
            refunded: number;
            /**
             * Format: int64
             * @description The number of operations.
             */
            operations: number;
            /** @description The group, with group_by. For example {"subject":"ann"} or {"model":"small"}. */
            group?: {
                [key: string]: string;
            };
        };
        /** @description Use by time, oldest first. */
        UsageList: {
            /** @description The items of this page. */
            items: components["schemas"]["Usage"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A refused request and the reason. */
        Denial: {
            /**
             * Format: date-time
             * @description The time of the refusal.
             */
            at: string;
            code: components["schemas"]["ProblemCode"];
            /** @description The meter that did not suffice, that the plan does not have, or that was requested. Absent if there were several such meters, or none. */
            meter?: string;
            /** @description The limit that refused the request; if several did, the one with the longest wait. */
            rule?: string;
            /** @description The subject that the request named. */
            subject?: string;
            /** @description The route that the request named. */
            route?: string;
            /**
             * Format: int64
             * @description The units that were needed.
             */
            required?: number;
            /**
             * Format: int64
             * @description The units that could have been charged instead.
             */
            available?: number;
            /** @description X-Request-Id of the refusal, which is in the log, too; empty if there is none, as for Envoy over gRPC. */
            request_id: string;
        };
        /** @description The number of requests that were refused in a minute for the same reason. */
        DenialCount: {
            /**
             * Format: date-time
             * @description The start of the minute.
             */
            minute: string;
            code: components["schemas"]["ProblemCode"];
            /** @description As in Denial. `(other)` means that many meters and limits in that minute are counted together. */
            meter?: string;
            /** @description As in Denial. `(other)` has the same meaning as for meter. */
            rule?: string;
            /**
             * Format: int64
             * @description The number of requests.
             */
            n: number;
        };
        /** @description The refused requests. */
        DenialList: {
            /**
             * Format: date-time
             * @description The start of the time that the answer covers.
             */
            from: string;
            /**
             * Format: date-time
             * @description The end of this time.
             */
            to: string;
            /** @description The last denials with explanations, newest first. */
            items: components["schemas"]["Denial"][];
            /** @description The numbers of all denials by minute, newest first. There are at most 2,000 items. */
            counts: components["schemas"]["DenialCount"][];
            /**
             * Format: date-time
             * @description Present if there are more items: the first minute for which the counts are complete. For older counts, request the time before it.
             */
            counts_from?: string;
        };
        /** @description Units to add. */
        GrantRequest: {
            meter: components["schemas"]["Id"];
            amount: components["schemas"]["Amount"];
            /**
             * @description The source of the units. It determines their priority unless `priority` is given.
             * @enum {string}
             */
            source: "topup" | "promo" | "adjustment";
            /** @description The subject of the balance, if the plan has a cap per subject. By default it is the tenant's own balance. */
            subject?: string;
            /** @description An id that is unique in the balance. By default it is derived from the key. Ids of the ledger's own grants are refused: they begin with `allowance:` or `rollover:`, or consist of `adjustment-` or `regrant-` and 16 hexadecimal digits. */
            grant_id?: string;
            /**
             * Format: int32
             * @description Grants with lower values are used first. The default is 10 for allowances, 50 for promos and 100 for others.
             */
            priority?: number;
            /**
             * Format: date-time
             * @description The instant from which units can be drawn. By default, and for a past instant, it is now.
             */
            effective_at?: string;
            /**
             * Format: date-time
             * @description The instant from which units cannot be drawn. By default there is none.
             */
            expires_at?: string;
            /** @description The cost of a unit, for your own accounting. */
            cost_basis?: string;
            reason?: components["schemas"]["Reason"];
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description An amount that can be spent. */
        Grant: {
            /** @description The id of the grant. */
            grant_id: string;
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            source: components["schemas"]["Source"];
            amount: components["schemas"]["Amount"];
            remaining: components["schemas"]["Count"];
            held: components["schemas"]["Count"];
            /**
             * Format: int32
             * @description Grants with lower values are used first.
             */
            priority: number;
            /**
             * Format: date-time
             * @description The instant from which units can be drawn.
             */
            effective_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null if there is none.
             */
            expires_at: string | null;
            /** @description The cost of a unit, for your own accounting. */
            cost_basis?: string;
            /** @description The reason that was given. */
            reason?: string;
            status: components["schemas"]["GrantStatus"];
            /** @description The id of the operation. */
            operation_id: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
        };
        /**
         * @description A pending grant takes effect later. An active grant has units. An exhausted grant has none. An expired grant has ended. A voided grant was taken back.
         * @enum {string}
         */
        GrantStatus: "pending" | "active" | "exhausted" | "expired" | "voided";
        /** @description The grant and the balance after it. */
        GrantAnswer: {
            tenant: components["schemas"]["Name"];
            /** @description The id of the grant. */
            grant_id: string;
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            source: components["schemas"]["Source"];
            amount: components["schemas"]["Amount"];
            remaining: components["schemas"]["Count"];
            held: components["schemas"]["Count"];
            /**
             * Format: int32
             * @description Grants with lower values are used first.
             */
            priority: number;
            /**
             * Format: date-time
             * @description The instant from which units can be drawn.
             */
            effective_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null if there is none.
             */
            expires_at: string | null;
            /** @description The cost of a unit, for your own accounting. */
            cost_basis?: string;
            /** @description The reason that was given. */
            reason?: string;
            status: components["schemas"]["GrantStatus"];
            /** @description The idempotency key; `dry-run` for a dry run without a key. */
            operation_id: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            balance: components["schemas"]["Position"];
            /**
             * Format: date-time
             * @description The instant for which the answer holds.
             */
            as_of: string;
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description The balance after the grant. */
        Position: {
            remaining: components["schemas"]["Count"];
            limit: components["schemas"]["Count"];
            /**
             * Format: date-time
             * @description The end of the period; null if the period has no end.
             */
            reset_at: string | null;
        };
        /** @description A page of grants. */
        GrantList: {
            /** @description The items of this page. */
            items: components["schemas"]["Grant"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The unit and the kind of a meter. */
        MeterRequest: {
            /** @description The unit in which amounts are counted. Amounts are integers. */
            unit: string;
            /** @description For people. */
            description?: string;
            /**
             * @description A `counter`, the default, has units that debits use. A `gauge` is set to a value, such as a number of seats. The kind cannot change while the meter is in use.
             * @enum {string}
             */
            kind?: "counter" | "gauge";
            /** @description Whether a denial is stored with its idempotency key and replayed, like a success. */
            denial_replay?: boolean;
            /** @description The members of a request's metadata for which the usage report can group use (`group_by`). Each member may appear once. */
            dimensions?: components["schemas"]["Id"][];
        };
        /** @description A kind of use, or a value, that is counted in its smallest unit. */
        Meter: {
            meter: components["schemas"]["Id"];
            /** @description The unit in which amounts are counted. Amounts are integers. */
            unit: string;
            /** @description For people. */
            description: string;
            /**
             * @description Whether the meter has units that debits use, or a value that is set.
             * @enum {string}
             */
            kind: "counter" | "gauge";
            /** @description Whether denials are stored and replayed. */
            denial_replay: boolean;
            /** @description The members of a request's metadata for which the usage report can group use (`group_by`). */
            dimensions?: components["schemas"]["Id"][];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
        };
        /** @description A page of meters. */
        MeterList: {
            /** @description The items of this page. */
            items: components["schemas"]["Meter"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The content of a plan. Each PUT that changes the plan creates a new version. */
        PlanRequest: {
            /** @description Each meter may appear once. */
            allowances: components["schemas"]["Allowance"][];
            /** @description Rate limits for the tenants of this plan. Each rule may appear once. They replace the general limits of the same rule. */
            limits?: components["schemas"]["PlanLimit"][];
            features?: components["schemas"]["Features"];
            apply?: components["schemas"]["PlanApply"];
        };
        /**
         * @description When a new version takes effect for the tenants that are on the plan: at the end of each tenant's billing period (the default), or now. Allowances, features, gauges and rate limits move together. `now` amends the open periods of all tenants, and needs no change of the content if the newest version waits. It is not part of the content.
         * @enum {string}
         */
        PlanApply: "now" | "next_period";
        /** @description A feature that the plan must grant, in addition to items or instead of them. If the plan does not grant it, the code is `feature_not_in_plan`, and limits and balances are not read. */
        Feature: string;
        /** @description Features by name. A feature that is false, 0 or absent is not granted. */
        Features: {
            [key: string]: components["schemas"]["FeatureValue"];
        };
        /** @description True or false, or a bound such as the size of an upload. */
        FeatureValue: boolean | number;
        /** @description The tenant's own features to set. null removes the tenant's own value, so that the plan's value applies again. */
        FeaturePatch: {
            [key: string]: boolean | number | null;
        };
        /** @description The new value, or a difference. Exactly one of these is required. */
        GaugeRequest: {
            /**
             * Format: int64
             * @description The new value.
             */
            value?: number;
            /**
             * Format: int64
             * @description The difference; negative to reduce the value.
             */
            delta?: number;
            /** @description Return the result and change nothing. */
            dry_run?: boolean;
        };
        /** @description A value that is set. Debits, periods and changes of the plan do not change it. */
        Gauge: {
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant's own gauge. */
            subject: string;
            value: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The plan's amount, or the tenant's override.
             */
            limit: number;
            /**
             * Format: int64
             * @description How much the value may increase.
             */
            remaining: number;
            /**
             * Format: int64
             * @description How much the value exceeds the limit, after the limit was reduced. The value can then only decrease.
             */
            over: number;
            /**
             * Format: int64
             * @description The value before this change.
             */
            before?: number;
            /**
             * Format: date-time
             * @description The instant of the last change; absent if there was none.
             */
            changed_at?: string;
            /** @description True after a dry run. */
            dry_run?: boolean;
        };
        /** @description A page of gauges. */
        GaugeList: {
            /** @description Sorted by meter, then by subject. The tenant's own gauge is the first of its meter. */
            items: components["schemas"]["Gauge"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A change of a gauge. */
        GaugeEntry: {
            /**
             * Format: int64
             * @description The number of the change in its gauge, starting at 1 and without gaps.
             */
            seq: number;
            /** @description The Idempotency-Key. */
            operation_id: string;
            before: components["schemas"]["Count"];
            after: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The limit at that time.
             */
            limit: number;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /** @description The id of the key of the request. */
            actor: string;
        };
        /** @description A page of entries. */
        GaugeEntryList: {
            /** @description The items of this page, newest first. */
            items: components["schemas"]["GaugeEntry"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The features of a tenant. */
        TenantFeatures: {
            tenant: components["schemas"]["Name"];
            plan: components["schemas"]["Id"];
            features: components["schemas"]["Features"];
            /** @description The names of the features that the tenant overrides, sorted. */
            overridden: components["schemas"]["Id"][];
        };
        /** @description The units of a meter that a plan grants per period. */
        Allowance: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The units of each period. It is 0 for a meter that has only units of grants.
             */
            amount: number;
            /**
             * @description How often the amount is granted. Absent for a gauge, like `anchor`, because a gauge has no periods.
             * @enum {string}
             */
            every?: "hour" | "day" | "week" | "month" | "year" | "once";
            /**
             * @description With `calendar`, periods begin with the periods of the calendar in the tenant's zone. With `tenant`, they begin at the tenant's anchor instant and after each interval. In a month that is too short, they begin on its last day.
             * @enum {string}
             */
            anchor?: "calendar" | "tenant";
            rollover?: components["schemas"]["Rollover"];
            overage?: components["schemas"]["Overage"];
            overflow?: components["schemas"]["Overflow"];
            /**
             * Format: int64
             * @description The most that each subject may use per period; no cap by default.
             */
            per_subject?: number;
            /**
             * Format: int64
             * @description For a trial: the number of days after which the granted units expire. A day has 24 hours. By default the units do not expire. Only if `every` is `once`.
             */
            expires_in_days?: number;
            /**
             * @description The used percentages at which the event `balance.threshold_reached` is emitted, in ascending order. The default is 80 and 100. With an empty list there are no such events. Each is emitted once per period, and again if something, such as a top-up, has lowered the used share below it. For balances of subjects there are events only if this list is given.
             * @example [
             *       50,
             *       80,
             *       100
             *     ]
             */
            alert_at?: number[];
        };
        /** @description How many units the next period gets from the remainder of a period: the remainder, but at most `max`. If the remainder is less than `min`, the next period gets `min`. By default the remainder expires. Not if `every` is `once`, which has no next period. */
        Rollover: {
            /**
             * Format: int64
             * @description The least that the next period gets. If less remains, the difference is granted. 0 by default.
             */
            min?: number;
            max: components["schemas"]["Amount"];
        };
        /** @description Whether use may exceed the remainder; by default it may not. */
        Overage: {
            /**
             * @description `allow` lets use exceed the remainder.
             * @enum {string}
             */
            policy: "deny" | "allow";
            /**
             * Format: int64
             * @description The most overage that a balance may owe, only with `allow`. By default there is no cap.
             */
            cap?: number;
            /**
             * @description What happens to the overage at the end of a period, including overage of `drain`. With `forgive`, the default, the next period begins without it. With `preserve`, it stays owed, and the next allowance pays for it first. Not if `every` is `once`.
             * @enum {string}
             */
            at_period_end?: "forgive" | "preserve";
        };
        /** @description The meter that pays after this one is used up, before overage. It must be a different meter of this plan, with an allowance and without an overflow. The allowance is 0 if only grants pay. */
        Overflow: {
            meter: components["schemas"]["Id"];
            price: components["schemas"]["Price"];
        };
        /** @description The cost of units in units of the meter that pays: an integer for each unit, or `units` for `per` units. One credit for 1,000 tokens is `{"units": 1, "per": 1000}`. The cost of each item of a debit is rounded up to a whole unit. */
        Price: components["schemas"]["Amount"] | components["schemas"]["PriceRatio"];
        /** @description A price that need not be a whole number. Answers have an integer instead if `per` is 1. */
        PriceRatio: {
            units: components["schemas"]["Amount"];
            per: components["schemas"]["Amount"];
        };
        /** @description A version of a plan. */
        Plan: {
            plan: components["schemas"]["Id"];
            /**
             * Format: int32
             * @description 1 for the first version, one more after every change.
             */
            version: number;
            features?: components["schemas"]["Features"];
            /** @description Only in the answer to `PUT`: sentences about tenants that get less with this version, as in the answer to `POST /v1/catalog`. An example is `plan free: feature sso is lost by 31 tenants`. Absent if no tenant gets less. */
            warnings?: string[];
            /** @description Each meter may appear once. */
            allowances: components["schemas"]["Allowance"][];
            /** @description Rate limits for the tenants of this plan. */
            limits: components["schemas"]["PlanLimit"][];
            apply?: components["schemas"]["PlanApply"];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
        };
        /** @description A page of plans. */
        PlanList: {
            /** @description The items of this page. */
            items: components["schemas"]["Plan"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The content of a tenant. */
        TenantRequest: {
            plan: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description The start of tenant-anchored periods. By default it is the instant of the tenant's creation.
             */
            anchor?: string;
            /** @description An IANA zone; UTC by default. */
            timezone?: string;
            status?: components["schemas"]["TenantStatus"];
            metadata?: components["schemas"]["Metadata"];
            overrides?: components["schemas"]["Overrides"];
            features?: components["schemas"]["Features"];
        };
        /** @description Amounts that this tenant gets per period instead of the plan's amounts, by meter. The plan must have these meters. A once-only allowance is granted when the plan starts, so a later override of it has no effect until a change with `apply: now`. */
        Overrides: {
            [key: string]: components["schemas"]["OverrideAmount"];
        };
        /**
         * Format: int64
         * @description Units per period.
         */
        OverrideAmount: number;
        /** @description New amounts for these meters. null restores the amount of the plan. Other overrides do not change. */
        OverridePatch: {
            [key: string]: number | null;
        };
        /** @description `plan`, `anchor`, `timezone`, `overrides` and `features` are terms of the tenant. `apply` and `effective_at` require at least one of these fields, or `usage` with the value `reset` or `add`. `features` alone change at once, unless `apply` or `effective_at` say when. `status` and `metadata` always change at once. `reason` requires a change of terms, or `status`. */
        TenantPatch: {
            plan?: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description The start of tenant-anchored periods.
             */
            anchor?: string;
            /** @description The IANA zone of its calendar. */
            timezone?: string;
            status?: components["schemas"]["TenantStatus"];
            metadata?: components["schemas"]["Metadata"];
            /**
             * @description When new terms take effect: at the end of the billing period (the default), or now. The billing period is the open period of the longest interval that the plan in force has; if there are several, it is the one that ends last. A change of overrides alone waits for the end of the open periods of the meters that it names. If there is no such period, the change takes effect now. When it takes effect, an open period goes on, and its allowance becomes the amount of the new terms. Only a meter whose interval changes begins a new period. `now` also applies a newer version of the plan. Paid grants never change. A repetition changes nothing.
             * @enum {string}
             */
            apply?: "now" | "next_period";
            /**
             * Format: date-time
             * @description The instant at which new terms take effect: later than now, and at most 400 days ahead. Not together with `apply: now`.
             */
            effective_at?: string;
            /** @description Whether each amount counts only for its share of the open period. The allowance becomes the sum of each amount x its share of the period, rounded down, but never less than what was drawn. Requires `apply: now` or `effective_at`. */
            prorate?: boolean;
            /**
             * @description Requires `apply: now` or `effective_at`. With `carry`, the default, the units that were drawn from the allowance count against the new amount. With `reset` the whole allowance is granted again, also on the same plan, and the remaining units of the old one expire. `reset` requires a reason. `add` grants the allowance again as well, and the remaining units of the old one stay until the period ends.
             * @enum {string}
             */
            usage?: "carry" | "reset" | "add";
            overrides?: components["schemas"]["OverridePatch"];
            features?: components["schemas"]["FeaturePatch"];
            reason?: components["schemas"]["Reason"];
            /** @description Return the tenant after the change, and change nothing. */
            dry_run?: boolean;
        };
        /**
         * @description Requests of a suspended tenant are refused with 403. Its balances stay.
         * @enum {string}
         */
        TenantStatus: "active" | "suspended";
        /** @description The billed party. */
        Tenant: {
            tenant: components["schemas"]["Name"];
            plan: components["schemas"]["Id"];
            /**
             * Format: int32
             * @description The version of the plan whose allowances, features, gauges and rate limits are in force.
             */
            plan_version?: number;
            /**
             * Format: date-time
             * @description The start of the tenant's periods.
             */
            anchor: string;
            /** @description The IANA zone of its calendar. */
            timezone: string;
            status: components["schemas"]["TenantStatus"];
            metadata: components["schemas"]["Metadata"];
            overrides: components["schemas"]["Overrides"];
            features?: components["schemas"]["Features"];
            pending: components["schemas"]["PendingChange"];
            version: components["schemas"]["TenantVersion"];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
            standing?: components["schemas"]["Standing"];
        };
        /** @description A change of the tenant's terms that waits; null if there is none. The members are the whole terms from then on. If another change applies earlier, the members that this request did not name follow that change. */
        PendingChange: {
            /**
             * Format: date-time
             * @description The instant at which the change takes effect.
             */
            from: string;
            /**
             * @description When the request wanted the change: at the end of the billing period, or at an instant.
             * @enum {string}
             */
            apply: "next_period" | "effective_at";
            plan: components["schemas"]["Id"];
            /**
             * Format: int32
             * @description The newest version of that plan.
             */
            plan_version?: number;
            /**
             * Format: date-time
             * @description The start of the tenant's periods.
             */
            anchor: string;
            /** @description The IANA zone of its calendar. */
            timezone: string;
            overrides: components["schemas"]["Overrides"];
            features?: components["schemas"]["Features"];
            /** @description As in the request of the change. */
            prorate: boolean;
            /**
             * @description As in the request of the change.
             * @enum {string}
             */
            usage: "carry" | "reset" | "add";
            reason?: components["schemas"]["Reason"];
        } | null;
        /** @description The balance by which a tenant is listed, only in lists with `near`, `meter` or `sort=remaining`. It is the balance with the largest used percentage, or with the least remaining units. */
        Standing: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Units used in the open period, net of refunds.
             */
            used: number;
            remaining: components["schemas"]["Count"];
            /** @description 100 * used / (used + remaining), rounded down. */
            percent: number;
        };
        /**
         * Format: int64
         * @description 1 for the first version, one more after every change. If-Match compares it.
         */
        TenantVersion: number;
        /** @description The stored tenant. After a dry run, it is the tenant after the change. */
        TenantChange: {
            tenant: components["schemas"]["Name"];
            plan: components["schemas"]["Id"];
            /**
             * Format: int32
             * @description The version of the plan whose allowances, features, gauges and rate limits are in force.
             */
            plan_version?: number;
            /**
             * Format: date-time
             * @description The start of the tenant's periods.
             */
            anchor: string;
            /** @description The IANA zone of its calendar. */
            timezone: string;
            status: components["schemas"]["TenantStatus"];
            metadata: components["schemas"]["Metadata"];
            overrides: components["schemas"]["Overrides"];
            features?: components["schemas"]["Features"];
            pending: components["schemas"]["PendingChange"];
            version: components["schemas"]["TenantVersion"];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
            before: components["schemas"]["Tenant"];
            /**
             * @description When the terms of the request take effect, even if the request did not say so. It is `effective_at` if the request named an instant, and `now` also if the change did not have to wait. `apply`, `prorate` and `usage` are absent if the request names no terms.
             * @enum {string}
             */
            apply?: "now" | "next_period" | "effective_at";
            /** @description Whether each amount counts only for its share of the open period. */
            prorate?: boolean;
            /**
             * @description Whether earlier use counts against the amounts that this change puts in force at once.
             * @enum {string}
             */
            usage?: "carry" | "reset" | "add";
            /** @description Present and true in the answer to a dry run. */
            dry_run?: boolean;
        };
        /** @description The terms of a tenant from an instant until the next terms. Terms that wait are the last ones, with an instant in the future. */
        Terms: {
            /**
             * Format: date-time
             * @description The instant from which the terms are in force.
             */
            effective_at: string;
            plan: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description The start of the tenant's periods.
             */
            anchor: string;
            /** @description The IANA zone of its calendar. */
            timezone: string;
            overrides: components["schemas"]["Overrides"];
            /**
             * @description When the request wanted the change: now (as for a new tenant), at the end of the billing period, or at an instant. In terms that an earlier build has stored, `next_period` is the next period of each meter.
             * @enum {string}
             */
            apply: "now" | "next_period" | "effective_at";
            /** @description Whether each amount counted only for its share of the open period. */
            prorate: boolean;
            /**
             * @description Whether earlier use counted against the amounts that these terms put in force at once. For terms that an earlier build has stored, it is `reset`.
             * @enum {string}
             */
            usage: "carry" | "reset" | "add";
            reason?: components["schemas"]["Reason"];
        };
        /** @description A page of terms. */
        TermsList: {
            /** @description The items of this page. */
            items: components["schemas"]["Terms"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A page of tenants. */
        TenantList: {
            /** @description The items of this page. */
            items: components["schemas"]["Tenant"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The content of a rate limit. */
        LimitRequest: {
            /** @description Each combination of these dimensions has a bucket. Without tenant and subject, all tenants share the buckets. `global` must be the only dimension and means one bucket. */
            per: components["schemas"]["LimitPer"][];
            match?: components["schemas"]["LimitMatch"];
            kind: components["schemas"]["LimitKind"];
            /** @description Tokens per period, as in 60/s, 100/min, 5/30s, 10/day. Only kind concurrency may omit it. */
            rate?: string;
            /**
             * Format: int64
             * @description The capacity of the bucket; the count of the rate by default.
             */
            burst?: number;
            /**
             * Format: int64
             * @description Tokens per request; 1 by default.
             */
            cost?: number;
            costs?: components["schemas"]["LimitCosts"];
            cost_by?: components["schemas"]["LimitCostBy"];
            replaces?: components["schemas"]["LimitReplaces"];
            timezone?: components["schemas"]["LimitTimezone"];
            mode?: components["schemas"]["LimitMode"];
            on_backend_error?: components["schemas"]["OnBackendError"];
            region_share?: components["schemas"]["LimitRegionShare"];
            debt?: components["schemas"]["LimitDebt"];
            ban?: components["schemas"]["LimitBan"];
            counts?: components["schemas"]["LimitCounts"];
            route_key?: components["schemas"]["LimitRouteKey"];
            normalize?: components["schemas"]["LimitNormalize"];
            ip_prefix?: components["schemas"]["LimitIPPrefix"];
        };
        /** @description A rate limit of a plan. */
        PlanLimit: {
            rule: components["schemas"]["Id"];
            /** @description Each combination of these dimensions has a bucket. Tenant or subject is required, because tenants do not share limits of a plan. */
            per: components["schemas"]["LimitPer"][];
            match?: components["schemas"]["LimitMatch"];
            kind: components["schemas"]["LimitKind"];
            /** @description Tokens per period, as in 60/s, 100/min, 5/30s, 10/day. Only kind concurrency may omit it. */
            rate?: string;
            /**
             * Format: int64
             * @description The capacity of the bucket; the count of the rate by default.
             */
            burst?: number;
            /**
             * Format: int64
             * @description Tokens per request; 1 by default.
             */
            cost?: number;
            costs?: components["schemas"]["LimitCosts"];
            cost_by?: components["schemas"]["LimitCostBy"];
            replaces?: components["schemas"]["LimitReplaces"];
            timezone?: components["schemas"]["LimitTimezone"];
            mode?: components["schemas"]["LimitMode"];
            on_backend_error?: components["schemas"]["OnBackendError"];
            region_share?: components["schemas"]["LimitRegionShare"];
            debt?: components["schemas"]["LimitDebt"];
            ban?: components["schemas"]["LimitBan"];
            counts?: components["schemas"]["LimitCounts"];
            route_key?: components["schemas"]["LimitRouteKey"];
            normalize?: components["schemas"]["LimitNormalize"];
            ip_prefix?: components["schemas"]["LimitIPPrefix"];
        };
        /**
         * @description A dimension by which a limit has buckets.
         * @enum {string}
         */
        LimitPer: "tenant" | "subject" | "route" | "ip" | "global";
        /**
         * @description `token_bucket` refills continuously. `fixed_window` counts per period of the calendar. `sliding_window` counts back from now, with a weighted estimate. `sliding_log` counts back from now exactly, for small counts. `leaky_bucket` spaces requests: an admitted request waits until it may start. `concurrency` limits leases; check and consume do not use it.
         * @enum {string}
         */
        LimitKind: "token_bucket" | "fixed_window" | "sliding_window" | "sliding_log" | "leaky_bucket" | "concurrency";
        /** @description Tokens per request on some routes. If several patterns match, the most specific one counts. */
        LimitCosts: components["schemas"]["LimitCost"][];
        /** @description The cost of requests to a route. */
        LimitCost: {
            route: components["schemas"]["RoutePattern"];
            /**
             * Format: int64
             * @description Tokens per request.
             */
            cost: number;
        };
        /**
         * @description With `amount`, the cost is charged for each unit of `match.meter`, which is then required. The default is `request`.
         * @enum {string}
         */
        LimitCostBy: "request" | "amount";
        /** @description The rule that this rule replaces. If both apply to a request, only this one counts. If several rules replace the same rule, the most specific one counts. A rule of a tenant is the most specific, then a rule of a plan, then the rule with the more specific route, then a rule of a meter, then the smaller id. */
        LimitReplaces: string;
        /** @description The IANA zone of a fixed window's calendar, or `tenant` for the zone of each tenant; UTC by default. */
        LimitTimezone: string;
        /**
         * Format: int64
         * @description The percentage of rate and burst that this region's Redis gets; 100 by default.
         */
        LimitRegionShare: number;
        /**
         * @description `shadow` counts the requests that the limit would deny, and denies none. The default is `enforce`.
         * @enum {string}
         */
        LimitMode: "enforce" | "shadow";
        /**
         * @description What to do while Redis is down; `local_share` by default.
         * @enum {string}
         */
        OnBackendError: "local_share" | "open" | "closed";
        /**
         * Format: int64
         * @description The number of tokens that a charge after the fact may take below zero; 0 by default. While a bucket owes tokens, no request passes. The sum of debt and capacity has the same bound as the capacity. Not for leases.
         */
        LimitDebt: number;
        /** @description After `after` denials by a bucket within the time `within`, the bucket denies all requests for the time `for`. The last of these denials starts the ban. Denials during the ban do not count, and checks never count. Times have forms such as 90s, 10m or 24h, from 1ms to 8784h. By default there is no ban. Not for leases. */
        LimitBan: {
            /**
             * Format: int64
             * @description The number of denials that start a ban.
             */
            after: number;
            /** @description The time within which these denials count. */
            within: string;
            /** @description The duration of the ban. */
            for: string;
        };
        /**
         * @description With `attempts`, every request costs tokens, even if it is refused afterwards, is a replay, or names an unknown tenant. With `successes`, only a granted request costs tokens. The default is `attempts` if the limit is per ip, per route without tenant, or closed while Redis is down.
         * @enum {string}
         */
        LimitCounts: "attempts" | "successes";
        /**
         * @description For a limit per route. With `pattern`, all routes that match `match.route` share one bucket. With `path`, each route has its own bucket. The default is `pattern`. Without `match.route`, each route has its own bucket.
         * @enum {string}
         */
        LimitRouteKey: "pattern" | "path";
        /** @description Spellings that count as the same route. `case`: upper and lower case. `trailing_slash`: with and without slashes, blanks and control characters at the end. `matrix`: with and without parameters after a semicolon. `encoded_slash`: %2f and a slash. If absent, all of these apply to requests of gateways, and none to other requests. With an empty list, none applies. */
        LimitNormalize: ("case" | "trailing_slash" | "matrix" | "encoded_slash")[];
        /** @description The number of leading bits of an address that form a bucket of a limit per ip; by default 32 for IPv4 and 64 for IPv6. */
        LimitIPPrefix: {
            /**
             * Format: int64
             * @description The bits of IPv4 addresses.
             */
            v4?: number;
            /**
             * Format: int64
             * @description The bits of IPv6 addresses.
             */
            v6?: number;
        };
        /** @description The limit applies to requests that match all of these fields. By default it applies to every request. */
        LimitMatch: {
            /** @description The HTTP method, in upper case. The limit does not apply to a request without a method. */
            method?: string;
            route?: components["schemas"]["RoutePattern"];
            meter?: components["schemas"]["Id"];
            plan?: components["schemas"]["Id"];
            tenant?: components["schemas"]["Name"];
        };
        /** @description A rate limit. */
        Limit: {
            rule: components["schemas"]["Id"];
            /** @description The dimensions by which the limit has buckets. */
            per: components["schemas"]["LimitPer"][];
            match?: components["schemas"]["LimitMatch"];
            kind: components["schemas"]["LimitKind"];
            /** @description Tokens per period; absent for a concurrency limit without one. */
            rate?: string;
            /**
             * Format: int64
             * @description The capacity of the bucket.
             */
            burst: number;
            /**
             * Format: int64
             * @description Tokens per request.
             */
            cost: number;
            costs?: components["schemas"]["LimitCosts"];
            cost_by: components["schemas"]["LimitCostBy"];
            replaces?: components["schemas"]["LimitReplaces"];
            timezone?: components["schemas"]["LimitTimezone"];
            mode: components["schemas"]["LimitMode"];
            on_backend_error: components["schemas"]["OnBackendError"];
            region_share: components["schemas"]["LimitRegionShare"];
            debt?: components["schemas"]["LimitDebt"];
            ban?: components["schemas"]["LimitBan"];
            counts?: components["schemas"]["LimitCounts"];
            route_key?: components["schemas"]["LimitRouteKey"];
            normalize?: components["schemas"]["LimitNormalize"];
            ip_prefix?: components["schemas"]["LimitIPPrefix"];
            explain?: components["schemas"]["LimitExplanation"];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
        };
        /** @description A page of limits. */
        LimitList: {
            /** @description The items of this page. */
            items: components["schemas"]["Limit"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Other rate and burst for a limit. */
        LimitOverrideRequest: {
            /** @description The rate that replaces the limit's rate. Required, except for kind concurrency, which must not have it. */
            rate?: string;
            /**
             * Format: int64
             * @description The burst that replaces the limit's burst. By default it is the count of the rate. Required for kind concurrency.
             */
            burst?: number;
            /**
             * Format: date-time
             * @description The instant of the end; by default there is none.
             */
            expires_at?: string;
        };
        /** @description Other rate and burst of a limit, for a tenant or a subject. */
        LimitOverride: {
            /** @description The limit. */
            rule: string;
            /** @description The tenant. */
            tenant: string;
            /** @description Absent if the override is for the whole tenant. */
            subject?: string;
            /** @description The rate that replaces the limit's rate. */
            rate?: string;
            /**
             * Format: int64
             * @description The burst that replaces the limit's burst.
             */
            burst?: number;
            /**
             * Format: date-time
             * @description The instant of the end; absent if there is none.
             */
            expires_at?: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
        };
        /** @description A page of overrides. */
        LimitOverrideList: {
            /** @description The items of this page. */
            items: components["schemas"]["LimitOverride"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description An explanation of the limit, with `explain=1`. */
        LimitExplanation: {
            /** @description The limit in words. */
            summary: string;
            /**
             * Format: int64
             * @description The tokens that pass at once through an unused bucket. For kind concurrency, it is the number of leases.
             */
            capacity: number;
            /**
             * Format: int64
             * @description For token and leaky buckets, the number of internal units per token.
             */
            units_per_token?: number;
            /**
             * Format: int64
             * @description The units that return per microsecond.
             */
            units_per_microsecond?: number;
            /**
             * Format: int64
             * @description The most tokens that pass within any one second.
             */
            first_second?: number;
            /**
             * Format: int64
             * @description The most tokens that pass in any interval of the length of the rate's period.
             */
            most_per_period?: number;
            /**
             * Format: double
             * @description The tokens per second in the long run.
             */
            per_second?: number;
            /**
             * Format: int64
             * @description The approximate Redis memory of a used bucket.
             */
            bytes_per_bucket: number;
            /**
             * Format: int64
             * @description The longest time that a bucket is kept after its last charge.
             */
            kept_seconds: number;
            /**
             * Format: int64
             * @description For kind concurrency, the default duration of a lease.
             */
            lease_ttl_seconds?: number;
            /** @description For kind fixed_window, the current window. */
            window?: {
                /**
                 * Format: date-time
                 * @description The inclusive start.
                 */
                start: string;
                /**
                 * Format: date-time
                 * @description The exclusive end.
                 */
                end: string;
            };
            /** @description The override that these numbers include, for the tenant and the subject of the query. */
            override?: components["schemas"]["LimitOverride"];
            /** @description What happens while Redis is down. */
            redis_away: {
                on_backend_error: components["schemas"]["OnBackendError"];
                /**
                 * Format: int64
                 * @description The number of instances that share the limit while Redis is down, as this instance counts them.
                 */
                replicas: number;
                /**
                 * Format: int64
                 * @description For local_share, the number of instances that hold a share of a bucket. It is the number of all instances, or the number of the bucket's tokens if that is smaller. These instances differ by bucket. The other instances deny.
                 */
                holders?: number;
                /**
                 * Format: int64
                 * @description For local_share, the smallest capacity of a holder. All holders together have the whole capacity.
                 */
                capacity_each?: number;
                /**
                 * Format: double
                 * @description For local_share, the tokens per second of each holder.
                 */
                per_second_each?: number;
            };
        };
        /** @description The state of a bucket. */
        LimitState: {
            rule: components["schemas"]["Id"];
            kind: components["schemas"]["LimitKind"];
            /**
             * Format: int64
             * @description The number of whole tokens, or of free leases.
             */
            remaining: number;
            /**
             * Format: int64
             * @description Whole tokens below zero; absent if there are none. These come back before a token remains.
             */
            owed?: number;
            /**
             * Format: int64
             * @description The capacity of the bucket.
             */
            limit: number;
            /**
             * Format: int64
             * @description The time until one more token is available; 0 if the bucket is full, and for leases.
             */
            next_after_ms: number;
            /**
             * Format: int64
             * @description The time until the bucket is full. It is 0 if the bucket is full, and for leases.
             */
            reset_after_ms: number;
            /**
             * Format: int64
             * @description The time until the bucket's ban ends; absent if the bucket is not banned.
             */
            banned_ms?: number;
            /** @description Redis is down. The state is that of the instance's own share. */
            degraded?: boolean;
        };
        /** @description The fullest buckets of a limit. */
        LimitTop: {
            rule: components["schemas"]["Id"];
            /** @description The buckets, the fullest first. */
            items: components["schemas"]["LimitTopItem"][];
            /** @description Present if not all buckets could be read within 3 s, or if some moved between servers. There may be fuller buckets. */
            incomplete?: boolean;
        };
        /** @description A bucket of a limit. */
        LimitTopItem: {
            /** @description The tenant; absent for a bucket that all tenants share. */
            tenant?: string;
            /** @description The subject; absent if the limit is not per subject. */
            subject?: string;
            /** @description The limit's pattern, if all routes that match it share a bucket. */
            route?: string;
            /** @description The address, or the network that counts as one caller. */
            ip?: string;
            /** @description For limits per subject, route or ip, the hash that names the bucket in Redis. The same subject, route and network always have the same hash. */
            bucket?: string;
            /**
             * Format: int64
             * @description The tokens that a full bucket has and this one lacks, or the number of held leases. It exceeds the limit if the bucket owes tokens, or if the limit was lowered.
             */
            used: number;
            /**
             * Format: int64
             * @description The capacity of the bucket, by the numbers that apply to the tenant.
             */
            limit: number;
        };
        /** @description The denials that a limit in shadow mode would have made. */
        LimitShadow: {
            rule: components["schemas"]["Id"];
            /** @description The last hour, day and week. */
            spans: components["schemas"]["LimitShadowSpan"][];
        };
        /** @description The denials that the limit would have made in a time. */
        LimitShadowSpan: {
            /** @description The name of the time, `hour`, `day` (24 hours) or `week` (7 days). */
            span: string;
            /**
             * Format: date-time
             * @description The start of the time.
             */
            from: string;
            /**
             * Format: date-time
             * @description The end of the time and of the present minute.
             */
            to: string;
            /**
             * Format: int64
             * @description Granted requests that the limit would have denied. Expect this number of further denials if the limit is enforced.
             */
            would_deny: number;
            /**
             * Format: int64
             * @description The number of tenants of these requests.
             */
            tenants: number;
            /** @description The tenants with the most of these requests, the largest number first. */
            top: components["schemas"]["LimitShadowTenant"][];
            /**
             * Format: int64
             * @description Requests that were refused, but not by a limit (for example, because of an empty balance), and that this limit would have denied, too.
             */
            would_deny_refused: number;
            /** @description The enforced limits that denied requests about which this limit also decided. Limits with the most denials come first. */
            limits: components["schemas"]["LimitShadowLimit"][];
        };
        /** @description One of the tenants with the most requests that the limit would have denied. */
        LimitShadowTenant: {
            tenant: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The tenant's granted requests that the limit would have denied.
             */
            would_deny: number;
        };
        /** @description An enforced limit that denied requests about which the shadow limit also decided. */
        LimitShadowLimit: {
            rule: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The requests that this limit denied. If several limits denied a request, it counts for the limit with the longest wait.
             */
            denied: number;
            /**
             * Format: int64
             * @description The number of these requests that the shadow limit would have denied, too.
             */
            would_deny: number;
            /**
             * Format: int64
             * @description The number of the other requests, which would pass if the shadow limit replaced this limit.
             */
            would_pass: number;
        };
        /** @description The bucket to reset. */
        ResetRequest: {
            tenant?: components["schemas"]["Name"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
        };
        /** @description The result of a reset. */
        ResetAnswer: {
            rule: components["schemas"]["Id"];
            /** @description Whether the bucket had been charged. */
            existed: boolean;
        };
        /**
         * @description The kind of the blocked or exempt object.
         * @enum {string}
         */
        BlockKind: "tenant" | "subject" | "ip";
        /**
         * @description `block` refuses every check and consume with `forbidden`. `allow` exempts requests from rate limits; balances still count. A block takes precedence over an `allow` of another kind. If several prefixes contain an address, the longest one counts. The default is `block`.
         * @enum {string}
         */
        BlockAction: "block" | "allow";
        /** @description The content of a block. */
        BlockRequest: {
            action?: components["schemas"]["BlockAction"];
            /** @description The tenant of the subject; required for kind subject, and absent for others. */
            tenant?: string;
            /**
             * Format: date-time
             * @description The instant of the end; by default there is none.
             */
            expires_at?: string;
            /** @description Refused clients see it. */
            reason?: string;
        };
        /** @description The content of a block of a prefix. */
        BlockPrefixRequest: {
            action?: components["schemas"]["BlockAction"];
            /**
             * Format: date-time
             * @description The instant of the end; by default there is none.
             */
            expires_at?: string;
            /** @description Refused clients see it. */
            reason?: string;
        };
        /** @description A block, or an exemption from rate limits. */
        Block: {
            kind: components["schemas"]["BlockKind"];
            /** @description The id; or the address or prefix in normal form. */
            value: string;
            /** @description The tenant of the subject. */
            tenant?: string;
            action: components["schemas"]["BlockAction"];
            /**
             * Format: date-time
             * @description The instant of the end; absent if there is none.
             */
            expires_at?: string;
            /** @description The reason that was given. */
            reason?: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
        };
        /** @description A page of blocks. */
        BlockList: {
            /** @description The items of this page. */
            items: components["schemas"]["Block"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The periods to close. */
        RollRequest: {
            /**
             * Format: date-time
             * @description The roll processes the balances that had something due at this instant, which must not be in the future. By default it is now.
             */
            as_of?: string;
        };
        /** @description A roll closes due periods of unused balances. */
        Roll: {
            roll_id: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description Periods that were due at this instant are closed.
             */
            as_of: string;
            /**
             * @description The process of an abandoned roll has died. The next roll continues at the same position.
             * @enum {string}
             */
            status: "running" | "done" | "failed" | "abandoned";
            /**
             * Format: int64
             * @description The number of balances that were due at the start.
             */
            total: number;
            /**
             * Format: int64
             * @description The number of balances that were closed so far.
             */
            processed: number;
            /**
             * Format: int64
             * @description The number of balances that could not be written. The service's log names each of these balances. Their periods stay due for the next roll.
             */
            set_aside: number;
            /** @description The cause of the failure. */
            error?: string;
            /**
             * Format: date-time
             * @description The instant of the start.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null until then.
             */
            finished_at: string | null;
        };
        /** @description The state of the service. */
        ServiceStatus: {
            /**
             * Format: date-time
             * @description The ledger's time.
             */
            at: string;
            /**
             * Format: date-time
             * @description The instant at which the answering instance started.
             */
            started_at: string;
            requests: components["schemas"]["StatusRequests"];
            /** @description The parts of this instance that do not work correctly. Empty means that everything works. */
            degraded: components["schemas"]["StatusFault"][];
            refusals?: components["schemas"]["StatusRefusals"];
            verification?: components["schemas"]["LastVerification"];
            roll?: components["schemas"]["LastRoll"];
            seal?: components["schemas"]["LastSeal"];
            archive?: components["schemas"]["LastArchive"];
        };
        /** @description Requests that the instance has answered since an instant, about a minute ago. */
        StatusRequests: {
            /**
             * Format: date-time
             * @description The instant from which requests are counted.
             */
            from: string;
            /**
             * Format: int64
             * @description The number of all requests.
             */
            answered: number;
            /**
             * Format: int64
             * @description The number of requests that were answered with 402, 403 or 429.
             */
            refused: number;
            /**
             * Format: int64
             * @description The number of requests that were answered with 500 or above.
             */
            failed: number;
        };
        /** @description A part that does not work correctly. */
        StatusFault: {
            /**
             * @description The name of the part, as in /readyz.
             * @example redis
             */
            part: string;
            /** @description The fault of the part. */
            reason: string;
        };
        /** @description The requests that all instances have refused. They are counted as in the denials of a tenant. */
        StatusRefusals: {
            /**
             * Format: date-time
             * @description The first minute that is counted.
             */
            from: string;
            /**
             * Format: date-time
             * @description The end of the last minute.
             */
            to: string;
            /**
             * Format: int64
             * @description The number of refused requests.
             */
            total: number;
            /** @description The refused requests of each minute, oldest first. A minute without refusals is not listed. */
            minutes: components["schemas"]["RefusedMinute"][];
            /** @description The ten tenants with the most refused requests, the largest number first. */
            tenants: components["schemas"]["RefusedTenant"][];
        };
        /** @description A minute with refusals. */
        RefusedMinute: {
            /**
             * Format: date-time
             * @description The start of the minute.
             */
            minute: string;
            /**
             * Format: int64
             * @description How many requests were refused.
             */
            n: number;
        };
        /** @description One of the tenants with the most refused requests. */
        RefusedTenant: {
            tenant: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description The number of the tenant's refused requests.
             */
            n: number;
            /**
             * @description The most frequent code of these refusals.
             * @example quota_exceeded
             */
            code: string;
        };
        /** @description The newest verification that a client started. The continuous verification of each instance is in its metrics. */
        LastVerification: {
            verification_id: components["schemas"]["Id"];
            tenant?: components["schemas"]["Name"];
            /**
             * @description The status as in Verification.
             * @enum {string}
             */
            status: "running" | "clean" | "drift" | "failed" | "abandoned";
            /**
             * Format: date-time
             * @description The instant of the start.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null until then.
             */
            finished_at: string | null;
        };
        /** @description The newest roll. */
        LastRoll: {
            roll_id: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description Periods that were due at this instant are closed.
             */
            as_of: string;
            /**
             * @description The status as in Roll.
             * @enum {string}
             */
            status: "running" | "done" | "failed" | "abandoned";
            /**
             * Format: int64
             * @description The balances that were due at its start.
             */
            total: number;
            /**
             * Format: int64
             * @description The balances that were closed so far.
             */
            processed: number;
            /**
             * Format: date-time
             * @description The instant of the start.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null until then.
             */
            finished_at: string | null;
        };
        /** @description The newest sealed day. */
        LastSeal: {
            /**
             * @description The day in UTC.
             * @example 2026-11-22
             */
            day: string;
            /**
             * Format: int64
             * @description The position in the log of seals, starting at 0.
             */
            position: number;
            /**
             * Format: int64
             * @description The number of balances with new entries and of changed terms and plans.
             */
            heads: number;
            /**
             * Format: date-time
             * @description When it was sealed.
             */
            sealed_at: string;
        };
        /** @description The newest month that was archived. */
        LastArchive: {
            /**
             * @description The month.
             * @example 2025-10
             */
            month: string;
            /**
             * Format: date-time
             * @description When it was archived.
             */
            archived_at: string;
            /**
             * Format: date-time
             * @description The instant of the removal from PostgreSQL; null until then.
             */
            removed_at: string | null;
        };
        /** @description The tenants to verify. */
        VerificationRequest: {
            /** @description The only tenant to verify. By default all tenants are verified. */
            tenant?: string;
        };
        /** @description A verification compares the journal with all data that is derived from it. */
        Verification: {
            verification_id: components["schemas"]["Id"];
            tenant?: components["schemas"]["Name"];
            /**
             * @description `clean`: everything was read, and there are no differences. `drift`: there are differences. `failed`: the verification could not finish, or could not read everything; see `error`. `abandoned`: the process of the verification has died; start another one.
             * @enum {string}
             */
            status: "running" | "clean" | "drift" | "failed" | "abandoned";
            /**
             * Format: int64
             * @description The number of balances that were compared so far.
             */
            balances: number;
            /**
             * Format: int64
             * @description The number of entries that were read so far.
             */
            entries: number;
            /**
             * Format: int64
             * @description The number of grants that were compared so far.
             */
            grants: number;
            /**
             * Format: int64
             * @description The number of periods that were compared so far.
             */
            periods: number;
            /** @description Whether only entries since the last clean verification were read. */
            incremental: boolean;
            /**
             * Format: int64
             * @description The number of balances that were not read, because nothing has changed since the last clean verification.
             */
            unchanged: number;
            /**
             * Format: int64
             * @description The number of cached copies that were compared.
             */
            copies: number;
            /** @description Whether cached copies were compared; false without Redis. */
            copies_compared: boolean;
            /**
             * Format: int64
             * @description The number of copies that are older than their balance and will be renewed. They do not count as differences.
             */
            stale_copies: number;
            /**
             * Format: int64
             * @description The number of balances that could not be read, because of a time-out or a lock. These count neither as clean nor as different.
             */
            unread: number;
            /** @description The first 100 of these balances. */
            unread_balances: components["schemas"]["UnreadBalance"][];
            /** @description Sums over all balances, by meter: issued + refunded + adjusted = used + expired + remaining + held. 2^63-1 stands for any larger sum. The comparison is exact. */
            totals: components["schemas"]["VerifiedMeter"][];
            /**
             * Format: int64
             * @description The number of differences.
             */
            difference_count: number;
            /** @description The first 100 differences. */
            differences: components["schemas"]["Difference"][];
            /** @description The cause of the failure. */
            error?: string;
            /**
             * Format: date-time
             * @description The instant of the start.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null until then.
             */
            finished_at: string | null;
        };
        /** @description A verification without its differences. While it runs, the numbers are those so far. */
        VerificationSummary: {
            verification_id: components["schemas"]["Id"];
            tenant?: components["schemas"]["Name"];
            /**
             * @description The status as in Verification.
             * @enum {string}
             */
            status: "running" | "clean" | "drift" | "failed" | "abandoned";
            /**
             * Format: int64
             * @description The number of balances that were compared.
             */
            balances: number;
            /**
             * Format: int64
             * @description The number of entries that were read.
             */
            entries: number;
            /** @description Whether only entries since the last clean verification were read. */
            incremental: boolean;
            /**
             * Format: int64
             * @description The number of balances that could not be read.
             */
            unread: number;
            /**
             * Format: int64
             * @description The number of differences.
             */
            difference_count: number;
            /** @description The cause of the failure. */
            error?: string;
            /**
             * Format: date-time
             * @description The instant of the start.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null until then.
             */
            finished_at: string | null;
        };
        /** @description A page of verifications. */
        VerificationList: {
            /** @description The items of this page. */
            items: components["schemas"]["VerificationSummary"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A balance that could not be read. */
        UnreadBalance: {
            tenant: components["schemas"]["Name"];
            /** @description The meter. Absent: the refunds and holds of the tenant could not be read. */
            meter?: string;
            /** @description The subject; empty for the tenant itself. */
            subject?: string;
        };
        /** @description The sums of a meter. */
        VerifiedMeter: {
            /** @description Whether some balances could not be read. The sums then do not include these balances and are not compared. */
            partial: boolean;
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Units of grants.
             */
            issued: number;
            /**
             * Format: int64
             * @description Units that were used.
             */
            used: number;
            /**
             * Format: int64
             * @description Units that came back by refunds.
             */
            refunded: number;
            /**
             * Format: int64
             * @description Units that expired.
             */
            expired: number;
            /**
             * Format: int64
             * @description The sum of corrections and of what changes of the terms added to allowances.
             */
            adjusted: number;
            /**
             * Format: int64
             * @description Units that remain.
             */
            remaining: number;
            /**
             * Format: int64
             * @description Units that are reserved.
             */
            held: number;
        };
        /** @description A page of seals. */
        SealList: {
            /** @description The items of this page. */
            items: components["schemas"]["SealSummary"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /**
         * @description The rights of a key. `admin` includes both other scopes.
         * @enum {string}
         */
        KeyScope: "use" | "read" | "admin";
        /** @description A key to create. */
        KeyRequest: {
            /** @description For people; shown in the audit log. */
            name: string;
            /** @description The scopes of the key. */
            scopes: components["schemas"]["KeyScope"][];
            tenant?: components["schemas"]["Name"];
            /**
             * Format: date-time
             * @description The instant of the end. It must be in the future. By default there is none.
             */
            expires_at?: string;
        };
        /** @description The time for which the previous secrets still work. */
        KeyRotation: {
            /**
             * Format: int64
             * @description The number of seconds for which the previous secrets still work.
             * @default 0
             */
            overlap_seconds?: number;
        };
        /** @description A key without its secret. */
        Key: {
            key_id: components["schemas"]["Id"];
            /** @description For people. */
            name: string;
            /** @description The scopes of the key. */
            scopes: components["schemas"]["KeyScope"][];
            /** @description The only tenant that the key reaches; null for all tenants. */
            tenant: string | null;
            /**
             * @description The first characters of its newest secret.
             * @example qk_4jJx8aQm
             */
            prefix: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the end; null if there is none.
             */
            expires_at: string | null;
            /**
             * @description Only an active key works.
             * @enum {string}
             */
            status: "active" | "expired" | "revoked";
            /**
             * Format: date-time
             * @description The time of the last use; up to a minute late if another instance was used; null if there was none.
             */
            last_used_at: string | null;
        };
        /** @description A key with its secret, which is shown only this time. */
        NewKey: {
            key_id: components["schemas"]["Id"];
            /** @description For people. */
            name: string;
            /** @description The scopes of the key. */
            scopes: components["schemas"]["KeyScope"][];
            /** @description The only tenant that the key reaches; null for all tenants. */
            tenant: string | null;
            /** @description The first characters of the secret. */
            prefix: string;
            /** @description The secret. Send it as `Authorization: Bearer <secret>`. */
            secret: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ends; null for never.
             */
            expires_at: string | null;
        };
        /** @description A new link to the page of a tenant. */
        PortalSessionRequest: {
            /** @description The tenant of the page. The link reaches no other tenant. */
            tenant: components["schemas"]["Name"];
            /**
             * Format: int64
             * @description How many seconds the link works; an hour by default.
             * @default 3600
             */
            expires_in_seconds?: number;
            /**
             * @description The URL of the link back from the page: http or https, without user and password. By default there is no link back.
             * @example https://app.example.com/billing
             */
            return_url?: string;
        };
        /** @description A link to the page of a tenant. It is shown only this time. */
        PortalSession: {
            /**
             * @description The link. When it is opened, its secret is exchanged for a cookie and does not stay in the address of the page.
             * @example https://quota.example.com/portal/pkz3q.../9x...
             */
            url: string;
            /**
             * Format: date-time
             * @description The instant at which the link ends.
             */
            expires_at: string;
        };
        /** @description A page of keys. */
        KeyList: {
            /** @description The items of this page. */
            items: components["schemas"]["Key"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A page of the audit log. */
        AuditList: {
            /** @description The items of this page. */
            items: components["schemas"]["AuditLine"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description One change by an administrator. */
        AuditLine: {
            /** @description The id of the line. */
            audit_id: string;
            /**
             * Format: date-time
             * @description When the change was made.
             */
            at: string;
            actor: components["schemas"]["AuditActor"];
            /**
             * @description The kind of the object and the kind of the change.
             * @example limit.put
             */
            action: string;
            object: components["schemas"]["AuditObject"];
            /** @description The object before the change; null if it did not exist. */
            before: unknown;
            /** @description The object after the change; null if it was deleted. */
            after: unknown;
            /** @description The reason that was given. */
            reason?: string;
            /** @description The id of the request; empty for a command on the database. */
            request_id: string;
            /** @description The client's address. Empty for a command on the database. */
            ip: string;
        };
        /** @description The author of the change. */
        AuditActor: {
            /** @description The id of the key; `bootstrap` for the key in the configuration; `command` for a command on the database. */
            key_id: string;
            /** @description The name of the key. */
            name: string;
        };
        /** @description The object that was changed. */
        AuditObject: {
            /**
             * @description The kind of object.
             * @example limit
             */
            kind: string;
            /** @description The id of the object. */
            id: string;
            /** @description The tenant to which the object belongs; absent if there is none. */
            tenant?: string;
        };
        /**
         * @description The id of an event. Ids sort in the order in which the events are listed.
         * @example evt_1764104445123456
         */
        EventId: string;
        /**
         * @description The type of an event.
         * @enum {string}
         */
        EventType: "balance.threshold_reached" | "balance.exhausted" | "balance.grants_near_limit" | "grant.created" | "grant.expiring" | "grant.expired" | "hold.expired" | "period.opened" | "plan.changed" | "plan.change_scheduled" | "plan.change_canceled" | "tenant.suspended" | "limit.rejections_high" | "verify.drift";
        /** @description An event. */
        Event: {
            event_id: components["schemas"]["EventId"];
            type: components["schemas"]["EventType"];
            /**
             * Format: date-time
             * @description The time of the event.
             */
            at: string;
            /** @description The tenant of the event; null if there is none. */
            tenant: string | null;
            /** @description The meter of the event; absent if there is none. */
            meter?: string;
            /** @description The subject of the event; absent if the event is about the tenant itself. */
            subject?: string;
            /** @description The data of the event. docs/events.md lists it for each type. */
            data: {
                [key: string]: unknown;
            };
        };
        /** @description A page of events. */
        EventList: {
            /** @description The items of this page. */
            items: components["schemas"]["Event"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The sections of catalog.yaml. Objects are named by their keys. There are at most 10000 objects. */
        CatalogRequest: {
            /** @description Meters by id. */
            meters?: {
                [key: string]: components["schemas"]["MeterRequest"];
            };
            /** @description Plans by id. A plan that is changed gets a new version. */
            plans?: {
                [key: string]: components["schemas"]["PlanRequest"];
            };
            /** @description Limits by rule. */
            limits?: {
                [key: string]: components["schemas"]["LimitRequest"];
            };
            /** @description Tenants by id. */
            tenants?: {
                [key: string]: components["schemas"]["TenantRequest"];
            };
            /** @description Blocks and exemptions. */
            blocks?: components["schemas"]["CatalogBlock"][];
            /** @description Return the changes and change nothing. */
            dry_run?: boolean;
            /** @description Whether to delete the meters, limits and blocks that the document does not name. This affects only sections that the document has. A meter in use stays, with a warning. Plans and tenants are never deleted. */
            prune?: boolean;
        };
        /** @description A block in a catalogue. */
        CatalogBlock: {
            kind: components["schemas"]["BlockKind"];
            /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. */
            value: string;
            tenant?: components["schemas"]["Name"];
            action?: components["schemas"]["BlockAction"];
            /**
             * Format: date-time
             * @description The instant of the end; absent if there is none.
             */
            expires_at?: string;
            /** @description The reason. */
            reason?: string;
        };
        /** @description The catalogue, without tenants. */
        Catalog: {
            /** @description Meters by id. */
            meters: {
                [key: string]: Record<string, never>;
            };
            /** @description Plans by id. */
            plans: {
                [key: string]: Record<string, never>;
            };
            /** @description Limits by rule. */
            limits: {
                [key: string]: Record<string, never>;
            };
            /** @description Blocks and exemptions. */
            blocks: Record<string, never>[];
        };
        /** @description The changes that were made, or would be made. */
        CatalogDiff: {
            /** @description True after a dry run. */
            dry_run: boolean;
            /** @description All objects except the unchanged ones, by kind. */
            changes: components["schemas"]["CatalogChange"][];
            counts: components["schemas"]["CatalogCounts"];
            /** @description Sentences about changes that may not be intended, such as tenants that get less. */
            warnings: string[];
            /** @description More tenants than `changes` has are not in the document. */
            more_tenants: boolean;
            /** @description More blocks than `changes` has are not in the document. */
            more_blocks: boolean;
        };
        /** @description The numbers of objects. */
        CatalogCounts: {
            /**
             * Format: int64
             * @description The number of new objects.
             */
            created: number;
            /**
             * Format: int64
             * @description The number of objects that differ.
             */
            changed: number;
            /**
             * Format: int64
             * @description The number of objects without a difference.
             */
            unchanged: number;
            /**
             * Format: int64
             * @description The number of objects that `prune` deleted.
             */
            deleted: number;
            /**
             * Format: int64
             * @description The number of objects that are not in the document and stay.
             */
            unlisted: number;
        };
        /** @description The change of one object. */
        CatalogChange: {
            /**
             * @description The kind of the object.
             * @example plan
             */
            kind: string;
            /** @description The id of the object; for a block its kind, tenant and value. */
            id: string;
            /**
             * @description The kind of the change. An `unlisted` object was not changed.
             * @enum {string}
             */
            action: "created" | "changed" | "deleted" | "unlisted";
            /** @description All fields of a created object. For a changed object, the fields that differ. */
            fields?: components["schemas"]["CatalogField"][];
        };
        /** @description A field before and after. */
        CatalogField: {
            /** @description The path, as in `allowances[api_calls].amount`. */
            field: string;
            /** @description The value before; absent if there was none. */
            before?: unknown;
            /** @description The value after; absent if there is none. */
            after?: unknown;
        };
        /**
         * @description A paused webhook gets no events.
         * @enum {string}
         */
        WebhookStatus: "active" | "paused";
        /** @description A new webhook. */
        WebhookRequest: {
            /**
             * @description The URL to which events are sent: http or https, without user, password and fragment. No redirect is followed.
             * @example https://example.com/hooks
             */
            url: string;
            /** @description The types of events that are sent. */
            types: components["schemas"]["EventType"][];
            /** @description The only tenant whose events are sent; all tenants by default. */
            tenant?: components["schemas"]["Name"];
            status?: components["schemas"]["WebhookStatus"];
        };
        /** @description The changes to a webhook. */
        WebhookPatch: {
            /**
             * @description The URL to which events are sent: http or https, without user, password and fragment. No redirect is followed.
             * @example https://example.com/hooks
             */
            url?: string;
            /** @description The types of events that are sent. */
            types?: components["schemas"]["EventType"][];
            status?: components["schemas"]["WebhookStatus"];
        };
        /** @description A webhook without its secret. */
        WebhookEndpoint: {
            webhook_id: components["schemas"]["Id"];
            /** @description The URL to which events are sent. */
            url: string;
            /** @description The types of events that are sent. */
            types: components["schemas"]["EventType"][];
            /** @description The only tenant whose events are sent; null for all tenants. */
            tenant: string | null;
            status: components["schemas"]["WebhookStatus"];
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
        };
        /** @description A webhook with its secret, which is shown only this time. */
        NewWebhookEndpoint: {
            webhook_id: components["schemas"]["Id"];
            /** @description The URL to which events are sent. */
            url: string;
            /** @description The types of events that are sent. */
            types: components["schemas"]["EventType"][];
            /** @description The only tenant whose events are sent; null for all tenants. */
            tenant: string | null;
            status: components["schemas"]["WebhookStatus"];
            /** @description Verifies deliveries: `whsec_` and base64. */
            secret: string;
            /**
             * Format: date-time
             * @description The instant of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description The instant of the last change.
             */
            updated_at: string;
        };
        /** @description A page of webhooks. */
        WebhookEndpointList: {
            /** @description The items of this page. */
            items: components["schemas"]["WebhookEndpoint"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The result of a test call. */
        WebhookTest: {
            /** @description The `webhook-id` of the call. */
            message_id: string;
            /** @description Whether the receiver has accepted it. */
            delivered: boolean;
            /** @description The status of the answer; absent if there was none. */
            status_code?: number;
            /**
             * Format: int64
             * @description How long the call took.
             */
            latency_ms: number;
            /** @description The cause of the failure; absent if there was none. */
            error?: string;
        };
        /** @description The events to deliver again. */
        WebhookReplayRequest: {
            /**
             * Format: date-time
             * @description The inclusive start.
             */
            from: string;
            /**
             * Format: date-time
             * @description The exclusive end; now by default.
             */
            to?: string;
        };
        /** @description The events that a replay has queued. */
        WebhookReplay: {
            /**
             * Format: int64
             * @description The number of events that are delivered again. It does not include events that were already pending.
             */
            queued: number;
            /**
             * Format: date-time
             * @description The start of the next replay; absent if all events were queued.
             */
            next_from?: string;
        };
        /**
         * @description `pending`: the delivery waits for its next attempt. `delivered`: the receiver has accepted it. `dead`: all attempts in three days failed. `skipped`: the webhook was paused or deleted.
         * @enum {string}
         */
        DeliveryStatus: "pending" | "delivered" | "dead" | "skipped";
        /** @description The delivery of one event to one webhook. */
        Delivery: {
            event_id: components["schemas"]["EventId"];
            type: components["schemas"]["EventType"];
            /** @description The tenant of the event; null if there is none. */
            tenant: string | null;
            status: components["schemas"]["DeliveryStatus"];
            /**
             * Format: int64
             * @description The number of calls since the delivery was last queued.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description The instant at which the delivery was last queued.
             */
            queued_at: string;
            /**
             * Format: date-time
             * @description When the next attempt is due; null if there is none.
             */
            next_at: string | null;
            /**
             * Format: date-time
             * @description The instant of the newest attempt; null if there was none.
             */
            attempted_at: string | null;
            /** @description The status of the newest answer; absent if there was none. */
            status_code?: number;
            /**
             * Format: int64
             * @description How long the newest call took; absent if there was none.
             */
            latency_ms?: number;
            /** @description The cause of the failure of the newest attempt; absent if there was none. */
            error?: string;
        };
        /** @description A page of deliveries. */
        DeliveryList: {
            /** @description The items of this page. */
            items: components["schemas"]["Delivery"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A sealed day, without its proofs. */
        SealSummary: {
            /**
             * @description The day in UTC.
             * @example 2026-11-22
             */
            day: string;
            /**
             * Format: int64
             * @description The position in the log of seals, starting at 0.
             */
            position: number;
            /**
             * Format: int64
             * @description The number of balances with new entries and of changed terms and plans.
             */
            heads: number;
            root: components["schemas"]["SealHash"];
            /**
             * Format: date-time
             * @description When it was sealed.
             */
            sealed_at: string;
        };
        /** @description A sealed day. Its record is in a log of all seals. The log is a Merkle tree as in RFC 6962, and only grows. */
        Seal: {
            /**
             * @description The version of this format.
             * @example 1
             */
            format: number;
            /** @description The database whose journal was sealed. */
            database_id: string;
            /**
             * @description The day in UTC.
             * @example 2026-11-22
             */
            day: string;
            /**
             * Format: int64
             * @description The position in the log of seals, starting at 0.
             */
            position: number;
            /**
             * Format: int64
             * @description The number of balances with new entries and of changed terms and plans.
             */
            heads: number;
            root: components["schemas"]["SealHash"];
            /**
             * Format: date-time
             * @description When it was sealed.
             */
            sealed_at: string;
            /** @description The log with this seal as its newest record. It is a note (golang.org/x/mod/sumdb/note), which is signed if there was a key. */
            checkpoint: string;
            /** @description Proves that the checkpoint's log contains this seal. */
            inclusion_proof: components["schemas"]["SealHash"][];
            /** @description The log before this seal; null for the first seal. */
            previous: {
                /**
                 * Format: int64
                 * @description The number of seals in the log.
                 */
                size: number;
                root: components["schemas"]["SealHash"];
            } | null;
            /** @description Proves that the checkpoint's log begins with the previous one. */
            consistency_proof: components["schemas"]["SealHash"][];
        };
        /** @description A step of the ledger's time. */
        TestClockRequest: {
            /** @description A duration such as 90s, 36h, 31d or 1d12h, at least 1s. A day has 24 hours. */
            advance: string;
        };
        /** @description The ledger's time. */
        TestClock: {
            /**
             * Format: date-time
             * @description The instant that decisions use.
             */
            now: string;
            /**
             * Format: int64
             * @description The number of seconds by which `now` is ahead of real time. It is below 0 while the first start writes the demo's past.
             */
            offset_seconds: number;
        };
        /** @description SHA-256 of a Merkle tree, in base64. */
        SealHash: string;
        /** @description Two records of the same fact that differ. */
        Difference: {
            /** @description The tenant; empty for the sums of a meter over all tenants. */
            tenant: string;
            /** @description The meter. */
            meter: string;
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The fact for which the records differ. */
            what: string;
            /** @description The value according to the journal. */
            journal: string;
            /** @description The stored value. */
            stored: string;
        };
        /** @description RFC 9457. The members after `errors` depend on `code`. */
        Problem: {
            /**
             * Format: int32
             * @description The status of the answer.
             */
            status: number;
            /** @description The id of the request, as in X-Request-Id. */
            request_id: string;
            /**
             * Format: uri
             * @description The page that describes the code, or a registered type.
             */
            type: string;
            /** @description The code in words. */
            title: string;
            /** @description What happened to this request. The text is for people and may change. */
            detail: string;
            code: components["schemas"]["ProblemCode"];
            /** @description The faults of the request, by field. */
            errors?: components["schemas"]["FieldError"][];
        } & (components["schemas"]["QuotaProblem"] | components["schemas"]["RateLimitProblem"] | components["schemas"]["CapacityProblem"] | components["schemas"]["ForbiddenProblem"] | components["schemas"]["ArchivedProblem"] | components["schemas"]["UnavailableProblem"] | components["schemas"]["OtherProblem"]);
        /**
         * @description The reason of a refusal. The guide has a section for each code, with advice. New codes may be added. Treat an unknown code by its status.
         * @enum {string}
         */
        ProblemCode: "invalid_argument" | "idempotency_key_missing" | "unauthenticated" | "credits_exhausted" | "forbidden" | "tenant_suspended" | "meter_not_in_plan" | "feature_not_in_plan" | "gauge_limit" | "not_found" | "tenant_not_found" | "grant_not_found" | "hold_not_found" | "operation_not_found" | "charge_not_found" | "lease_not_found" | "method_not_allowed" | "precondition_failed" | "change_pending" | "too_many" | "too_many_grants" | "hold_not_active" | "archived" | "idempotency_key_reused" | "amount_out_of_range" | "refund_exceeds_debit" | "cost_exceeds_capacity" | "too_many_limits" | "quota_exceeded" | "rate_limited" | "internal" | "queue_full" | "report_too_slow" | "unavailable" | "outcome_unknown";
        /** @description The balance does not suffice. The answer is 429 `quota_exceeded` if the same request succeeds later without any other change, and 402 `credits_exhausted` if no waiting helps. The answer is about the whole request. `limiting`, `required`, `available` and `reset_at` are those of the balance that lacks units the longest. */
        QuotaProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "quota_exceeded" | "credits_exhausted";
            limiting: components["schemas"]["Limiting"];
            /**
             * Format: int64
             * @description The units of that meter that are required.
             */
            required: number;
            /**
             * Format: int64
             * @description The units of that meter that are available.
             */
            available: number;
            /**
             * Format: date-time
             * @description The end of the period; null if the next period brings no units.
             */
            reset_at: string | null;
            /**
             * Format: date-time
             * @description The first instant at which the request, with all its items, succeeds if nothing else happens. Absent if there is none up to the latest end of a period that brings units. Then a later period brings enough units, or, with 402, no period does.
             */
            would_succeed_at?: string;
            /** @description Every balance that has too few units for the request. Absent from denials that were stored before this member existed. */
            lacking?: components["schemas"]["Lack"][];
        };
        /** @description A balance that has too few units for a request. */
        Lack: {
            /** @description The meter. */
            meter: string;
            /** @description The subject whose cap lacks units. Absent if the tenant lacks them. */
            subject?: string;
            /**
             * Format: int64
             * @description The units of that meter that are required.
             */
            required: number;
            /**
             * Format: int64
             * @description The units of that meter that are available, with overflow and overage.
             */
            available: number;
            /**
             * Format: date-time
             * @description The end of the period. Absent if the next period brings no units.
             */
            reset_at?: string;
        };
        /** @description 429. A rate limit was reached, or too many wrong keys came from this address. */
        RateLimitProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "rate_limited";
            /** @description The limits that denied. Absent after too many wrong keys. */
            "violated-policies"?: string[];
            /**
             * Format: int64
             * @description The milliseconds until a retry can succeed, which is finer than Retry-After. Absent after too many wrong keys.
             */
            retry_after_ms?: number;
        };
        /** @description 422. The request costs more than a limit ever permits, or more limits apply than one decision can have. Waiting does not help. */
        CapacityProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "cost_exceeds_capacity" | "too_many_limits";
            /** @description The limits that denied. For `too_many_limits`, all limits that apply. */
            "violated-policies": string[];
        };
        /** @description 403. The key lacks the scope, is bound to another tenant, or the caller is blocked. */
        ForbiddenProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "forbidden";
            blocked?: components["schemas"]["Blocked"];
        };
        /** @description 410. The requested data was archived, or never existed. */
        ArchivedProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "archived";
            /**
             * Format: date-time
             * @description The oldest instant that a request can name.
             */
            oldest: string;
        };
        /** @description 503. A backend did not answer in time. This attempt changed nothing. */
        UnavailableProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "unavailable";
            /** @description The limits that cannot be decided without Redis. Absent if another backend is down. */
            "violated-policies"?: string[];
            /**
             * Format: int64
             * @description The milliseconds until a retry can succeed, with `violated-policies`.
             */
            retry_after_ms?: number;
        };
        /** @description All other codes. They have no members of their own. */
        OtherProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "invalid_argument" | "idempotency_key_missing" | "unauthenticated" | "tenant_suspended" | "meter_not_in_plan" | "feature_not_in_plan" | "gauge_limit" | "not_found" | "tenant_not_found" | "grant_not_found" | "hold_not_found" | "operation_not_found" | "charge_not_found" | "lease_not_found" | "method_not_allowed" | "precondition_failed" | "change_pending" | "too_many" | "too_many_grants" | "hold_not_active" | "idempotency_key_reused" | "amount_out_of_range" | "refund_exceeds_debit" | "internal" | "queue_full" | "report_too_slow" | "outcome_unknown";
        };
        /** @description A fault of the request. */
        FieldError: {
            /** @description A path such as items[0].amount, a header, a query parameter, or body. */
            field: string;
            /** @description What the field must be. */
            message: string;
        };
    };
    responses: {
        /** @description The debit. A replay returns the earlier debit, a dry run returns the expected one. */
        Debited: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "X-Quota-Limit": components["headers"]["QuotaLimit"];
                "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                "X-Quota-Reset": components["headers"]["QuotaReset"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["DebitAnswer"];
            };
        };
        /** @description The request may pass. */
        Passed: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "X-Quota-Limit": components["headers"]["QuotaLimit"];
                "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                "X-Quota-Reset": components["headers"]["QuotaReset"];
                "X-Quota-Operation": components["headers"]["QuotaOperation"];
                "X-Quota-Charge": components["headers"]["QuotaCharge"];
                "X-Quota-Lease": components["headers"]["QuotaLease"];
                "Access-Control-Expose-Headers": components["headers"]["Exposed"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The request must not pass. For `nginx` every refusal has this status, and `X-Quota-Status` has the status of the refusal. */
        NotPassed: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "X-Quota-Status": components["headers"]["QuotaStatus"];
                "X-Quota-Problem": components["headers"]["QuotaProblem"];
                "Access-Control-Expose-Headers": components["headers"]["Exposed"];
                "X-Quota-Limit": components["headers"]["QuotaLimit"];
                "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                "X-Quota-Reset": components["headers"]["QuotaReset"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                /** @description Seconds after which a retry can succeed, if `X-Quota-Status` is 429 or 503. */
                "Retry-After"?: number;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The hold after the change. A replay returns the earlier answer. The status 200 on creation means a dry run. */
        Held: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "X-Quota-Limit": components["headers"]["QuotaLimit"];
                "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                "X-Quota-Reset": components["headers"]["QuotaReset"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["HoldAnswer"];
            };
        };
        /** @description The balance before and after. A replay returns the earlier answer, a dry run returns the expected one. */
        Changed: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ChangeAnswer"];
            };
        };
        /** @description The document has the ETag in If-None-Match. */
        NotModified: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                ETag: components["headers"]["SpecETag"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Deleted. */
        Gone: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description `invalid_argument`, or `idempotency_key_missing`. Nothing was done. */
        Invalid: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated`. */
        Unauthenticated: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                /** @description How to authenticate. */
                "WWW-Authenticate": string;
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `credits_exhausted`. Waiting does not help. Nothing was charged. */
        CreditsExhausted: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "X-Quota-Limit": components["headers"]["QuotaLimit"];
                "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                "X-Quota-Reset": components["headers"]["QuotaReset"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden` (blocked, or the key lacks the scope or is bound to another tenant), `tenant_suspended`, `meter_not_in_plan`, `feature_not_in_plan` or `gauge_limit`. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden`: the key lacks the scope of this request, or is bound to another tenant. */
        KeyForbidden: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `rate_limited`: too many invented keys, links and cookies from this address. */
        TooManyWrongKeys: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Retry-After": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found`, `tenant_not_found`, `grant_not_found`, `hold_not_found`, `operation_not_found`, `charge_not_found` or `lease_not_found`. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `archived`. The requested data is older than `oldest` and was removed from the database, or it never existed. Nothing was done. */
        Archived: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `precondition_failed`, `change_pending`, `too_many`, `too_many_grants` or `hold_not_active`. The present state does not permit the request. Nothing was done. */
        Conflict: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `idempotency_key_reused`, `amount_out_of_range`, `refund_exceeds_debit`, `cost_exceeds_capacity` or `too_many_limits`. Nothing was done. */
        Impossible: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `quota_exceeded` or `rate_limited`. Retry later. Nothing was charged. */
        Denied: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Retry-After": components["headers"]["RetryAfter"];
                "X-Quota-Limit": components["headers"]["QuotaLimit"];
                "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                "X-Quota-Reset": components["headers"]["QuotaReset"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal`. An error of the service; the request id identifies it in the log. */
        Internal: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `queue_full`, `unavailable` or `outcome_unknown`: retry with the same key. Reports: `report_too_slow`. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "Retry-After": components["headers"]["RetryAfter"];
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: {
        /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
        IdempotencyKeyHeader: string;
        /** @description Identifies a repeated request. Use an id that the gateway creates for each request of a client. A client that chooses the id can repeat it for 10 minutes without a charge. So use the client's id only if the service behind the gateway recognises repeated requests by it. */
        PassageKeyHeader: string;
        /** @description Without an `Idempotency-Key`, identifies a repeated request for limits and leases. The gateway must create it for each request of a client. The service ignores a value that is not 1 to 128 visible ASCII characters. */
        PassageIDHeader: string;
        /** @description The tenant that pays. */
        QuotaTenantHeader: components["schemas"]["Name"];
        /** @description The meter to consume. Required unless `X-Quota-Mode` is `limit` or `lease`, which ignore it. */
        QuotaMeterHeader: components["schemas"]["Id"];
        /** @description The units to consume. */
        QuotaAmountHeader: number;
        /** @description The subject of the tenant for which the request is made. */
        QuotaSubjectHeader: components["schemas"]["Name"];
        /** @description The route for limits, if it is not the path. */
        QuotaRouteHeader: components["schemas"]["Route"];
        /** @description `limit` charges limits only. It uses no units and needs no meter. `X-Quota-Amount` is then the cost. `lease` acquires a lease and charges nothing. */
        QuotaModeHeader: "consume" | "check" | "limit" | "lease";
        /** @description The limit of kind concurrency. Required if `X-Quota-Mode` is `lease`, refused otherwise. */
        QuotaRuleHeader: components["schemas"]["Id"];
        /** @description The key of a gateway that passes on its clients' `Authorization`. It takes precedence over that header. */
        QuotaKeyHeader: string;
        /** @description 1 to 255 visible ASCII characters, new for every lease. */
        LeaseKeyHeader: string;
        /** @description 1 to 255 visible ASCII characters. A second charge with the same key within 10 minutes charges nothing. */
        ChargeKeyHeader: string;
        /** @description 1 to 255 visible ASCII characters. A retry with the key returns the first answer and changes nothing. A request without a key is always another request. */
        ChangeKeyHeader: string;
        /** @description 1 to 255 visible ASCII characters. A request with the key of the previous step does not move the time. A request without a key always moves it. */
        ClockKeyHeader: string;
        /** @description The id that the acquisition returned; opaque. */
        LeasePath: string;
        /** @description The ETag of the catalogue that the caller has seen. If meters, plans or limits have changed since then, the answer is 409. */
        CatalogIfMatch: string;
        /** @description The ETag of the tenant that the caller has seen. If the tenant has changed since then, the answer is 409. */
        TenantIfMatch: string;
        /** @description The id of the tenant. */
        TenantPath: components["schemas"]["Name"];
        /** @description The id of the key, not its secret. */
        KeyPath: components["schemas"]["Id"];
        /** @description The id of the webhook. */
        WebhookPath: components["schemas"]["Id"];
        /** @description The id of the meter. */
        MeterPath: components["schemas"]["Id"];
        /** @description The id of the plan. */
        PlanPath: components["schemas"]["Id"];
        /** @description The id of the subject. */
        SubjectPath: components["schemas"]["Name"];
        /** @description The id of the limit. */
        RulePath: components["schemas"]["Id"];
        /** @description The kind of the blocked or exempt object. */
        BlockKindPath: components["schemas"]["BlockKind"];
        /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
        BlockValuePath: string;
        /** @description The number after the slash of a prefix. */
        BlockBitsPath: number;
        /** @description The tenant of the subject. Required only if subjects of several tenants have this id. */
        BlockTenant: components["schemas"]["Name"];
        /** @description The largest number of items in the page. */
        PageLimit: number;
        /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
        PageCursor: string;
    };
    requestBodies: never;
    headers: {
        /** @description The id of the request. */
        RequestId: string;
        /** @description The version of the stored tenant in quotes, for an If-Match. */
        TenantETag: string;
        /** @description The version of the document, for If-None-Match. */
        SpecETag: string;
        /** @description The limit, in the open period, of the item that runs out first if the request is repeated. If the request has a subject, and less remains of the subject's cap than of the tenant's balance, it is the limit of the cap. */
        QuotaLimit: number;
        /** @description The remaining units of the item that runs out first if the request is repeated, or of the subject's cap if less remains of the cap. */
        QuotaRemaining: number;
        /** @description Seconds until the period of this item ends; absent if the period has no end. */
        QuotaReset: number;
        /** @description The source of the balances. */
        QuotaSource: "ledger" | "cache" | "local";
        /** @description The answer was read from a replica. It includes everything that was committed until this number of seconds ago: about a second if the replica keeps up. The header is absent if the answer was read from the database itself, or if the replica's lag is not known. */
        ReportLag: number;
        /** @description The id of the operation that charged the units, for a refund; absent if nothing was charged. */
        QuotaOperation: string;
        /** @description With `X-Quota-Mode: limit`, the `charge_id` for `POST /v1/limits/charge/refund`. Absent if no limit was charged, or if the id is longer than 3 KiB, as for a charge of a dozen limits with the longest names. */
        QuotaCharge: string;
        /** @description With `X-Quota-Mode: lease`, the `lease_id` for `DELETE /v1/leases/{lease_id}`. If nobody ends the lease, it ends by itself after the limit's time. */
        QuotaLease: string;
        /** @description The headers of answers that pages of other origins may read, for gateways that pass the answer on. */
        Exposed: string;
        /** @description The status of the refusal. */
        QuotaStatus: number;
        /** @description The problem, in ASCII. Absent if it is longer than 3 KiB. */
        QuotaProblem: string;
        /** @description The enforced limits that applied, at most five, the most restrictive first. The value is a List of structured fields (RFC 9651). Each item is the name of the rule with `q` and `w`: `q` is the capacity of a bucket, and `w` is the number of seconds in which an empty bucket fills. For leases, `q` is the number of leases at a time (`qu="concurrent-requests"`). */
        RateLimitPolicy: string;
        /**
         * @description The state of the same limits, in the same order: `r` is the remainder, `t` is the number of seconds until more
         *     is available. After a denial, only limits that denied have a `t`, and only if waiting helps: a cost above the
         *     capacity never passes. A concurrency limit has a `t` only after a denial, because its holders decide when leases
         *     return.
         *
         *     If configured, `X-RateLimit-Limit`, `-Remaining` and `-Reset`, and `RateLimit-Limit`, `-Remaining` and `-Reset`
         *     describe the most restrictive limit to older clients. Reset is the time at which its bucket is full.
         */
        RateLimit: string;
        /** @description Present if Redis is down, so that limits were decided by the `on_backend_error` of each rule. */
        RateLimitMode: "local";
        /** @description The answer is the stored answer to an earlier request with the same key. */
        IdempotentReplayed: "true";
        /** @description Seconds after which a retry can succeed, never less than a `t` of `RateLimit`. If a window denied, a random time is added, because all denied clients wait for the same instant. It is up to a tenth of the wait and at most a minute. */
        RetryAfter: number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    check: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "items": [
                 *         {
                 *           "meter": "api_calls",
                 *           "amount": 1
                 *         }
                 *       ],
                 *       "route": "/search",
                 *       "max_stale_ms": 1000
                 *     }
                 */
                "application/json": components["schemas"]["CheckRequest"];
            };
        };
        responses: {
            /** @description The answer, allowed or not. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Limit": components["headers"]["QuotaLimit"];
                    "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                    "X-Quota-Reset": components["headers"]["QuotaReset"];
                    "X-Quota-Source": components["headers"]["QuotaSource"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    checkBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "checks": [
                 *         {
                 *           "tenant": "acme",
                 *           "items": [
                 *             {
                 *               "meter": "api_calls",
                 *               "amount": 1
                 *             }
                 *           ]
                 *         },
                 *         {
                 *           "tenant": "acme",
                 *           "items": [
                 *             {
                 *               "meter": "api_calls",
                 *               "amount": 3
                 *             }
                 *           ],
                 *           "route": "/search"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CheckBatchRequest"];
            };
        };
        responses: {
            /** @description One result for each check. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckBatchAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    consume: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "items": [
                 *         {
                 *           "meter": "api_calls",
                 *           "amount": 1
                 *         }
                 *       ],
                 *       "subject": "user_42",
                 *       "route": "/search"
                 *     }
                 */
                "application/json": components["schemas"]["ConsumeRequest"];
            };
        };
        responses: {
            200: components["responses"]["Debited"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["CreditsExhausted"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    authorize: {
        parameters: {
            query?: never;
            header: {
                /** @description The tenant that pays. */
                "X-Quota-Tenant": components["parameters"]["QuotaTenantHeader"];
                /** @description The meter to consume. Required unless `X-Quota-Mode` is `limit` or `lease`, which ignore it. */
                "X-Quota-Meter"?: components["parameters"]["QuotaMeterHeader"];
                /** @description The units to consume. */
                "X-Quota-Amount"?: components["parameters"]["QuotaAmountHeader"];
                /** @description The subject of the tenant for which the request is made. */
                "X-Quota-Subject"?: components["parameters"]["QuotaSubjectHeader"];
                /** @description The route for limits, if it is not the path. */
                "X-Quota-Route"?: components["parameters"]["QuotaRouteHeader"];
                /** @description `limit` charges limits only. It uses no units and needs no meter. `X-Quota-Amount` is then the cost. `lease` acquires a lease and charges nothing. */
                "X-Quota-Mode"?: components["parameters"]["QuotaModeHeader"];
                /** @description The limit of kind concurrency. Required if `X-Quota-Mode` is `lease`, refused otherwise. */
                "X-Quota-Rule"?: components["parameters"]["QuotaRuleHeader"];
                /** @description The key of a gateway that passes on its clients' `Authorization`. It takes precedence over that header. */
                "X-Quota-Key"?: components["parameters"]["QuotaKeyHeader"];
                /** @description Identifies a repeated request. Use an id that the gateway creates for each request of a client. A client that chooses the id can repeat it for 10 minutes without a charge. So use the client's id only if the service behind the gateway recognises repeated requests by it. */
                "Idempotency-Key"?: components["parameters"]["PassageKeyHeader"];
                /** @description Without an `Idempotency-Key`, identifies a repeated request for limits and leases. The gateway must create it for each request of a client. The service ignores a value that is not 1 to 128 visible ASCII characters. */
                "X-Request-Id"?: components["parameters"]["PassageIDHeader"];
            };
            path: {
                /** @description The kind of the gateway. It determines the form of a refusal. */
                gateway: "nginx" | "haproxy" | "traefik" | "envoy";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Passed"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["CreditsExhausted"];
            403: components["responses"]["NotPassed"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    authorizeEnvoy: {
        parameters: {
            query?: never;
            header: {
                /** @description The tenant that pays. */
                "X-Quota-Tenant": components["parameters"]["QuotaTenantHeader"];
                /** @description The meter to consume. Required unless `X-Quota-Mode` is `limit` or `lease`, which ignore it. */
                "X-Quota-Meter"?: components["parameters"]["QuotaMeterHeader"];
                /** @description The units to consume. */
                "X-Quota-Amount"?: components["parameters"]["QuotaAmountHeader"];
                /** @description The subject of the tenant for which the request is made. */
                "X-Quota-Subject"?: components["parameters"]["QuotaSubjectHeader"];
                /** @description The route for limits, if it is not the path. */
                "X-Quota-Route"?: components["parameters"]["QuotaRouteHeader"];
                /** @description `limit` charges limits only. It uses no units and needs no meter. `X-Quota-Amount` is then the cost. `lease` acquires a lease and charges nothing. */
                "X-Quota-Mode"?: components["parameters"]["QuotaModeHeader"];
                /** @description The limit of kind concurrency. Required if `X-Quota-Mode` is `lease`, refused otherwise. */
                "X-Quota-Rule"?: components["parameters"]["QuotaRuleHeader"];
                /** @description The key of a gateway that passes on its clients' `Authorization`. It takes precedence over that header. */
                "X-Quota-Key"?: components["parameters"]["QuotaKeyHeader"];
                /** @description Identifies a repeated request. Use an id that the gateway creates for each request of a client. A client that chooses the id can repeat it for 10 minutes without a charge. So use the client's id only if the service behind the gateway recognises repeated requests by it. */
                "Idempotency-Key"?: components["parameters"]["PassageKeyHeader"];
                /** @description Without an `Idempotency-Key`, identifies a repeated request for limits and leases. The gateway must create it for each request of a client. The service ignores a value that is not 1 to 128 visible ASCII characters. */
                "X-Request-Id"?: components["parameters"]["PassageIDHeader"];
            };
            path: {
                /** @description The path and the query of the forwarded request, with all its slashes. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Passed"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["CreditsExhausted"];
            403: components["responses"]["NotPassed"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    debit: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "items": [
                 *         {
                 *           "meter": "api_calls",
                 *           "amount": 1
                 *         }
                 *       ],
                 *       "metadata": {
                 *         "invoice": "17"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["DebitRequest"];
            };
        };
        responses: {
            200: components["responses"]["Debited"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["CreditsExhausted"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    debitBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "debits": [
                 *         {
                 *           "idempotency_key": "job-1",
                 *           "tenant": "acme",
                 *           "items": [
                 *             {
                 *               "meter": "api_calls",
                 *               "amount": 1
                 *             }
                 *           ]
                 *         },
                 *         {
                 *           "idempotency_key": "job-2",
                 *           "tenant": "acme",
                 *           "items": [
                 *             {
                 *               "meter": "api_calls",
                 *               "amount": 3
                 *             }
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["DebitBatchRequest"];
            };
        };
        responses: {
            /** @description One result for each debit. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Limit": components["headers"]["QuotaLimit"];
                    "X-Quota-Remaining": components["headers"]["QuotaRemaining"];
                    "X-Quota-Reset": components["headers"]["QuotaReset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DebitBatchAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    hold: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "hold_id": "job-17",
                 *       "items": [
                 *         {
                 *           "meter": "api_calls",
                 *           "amount": 50
                 *         }
                 *       ],
                 *       "ttl_seconds": 600
                 *     }
                 */
                "application/json": components["schemas"]["HoldRequest"];
            };
        };
        responses: {
            200: components["responses"]["Held"];
            201: components["responses"]["Held"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["CreditsExhausted"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    captureHold: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "items": [
                 *         {
                 *           "meter": "api_calls",
                 *           "amount": 42
                 *         }
                 *       ],
                 *       "final": true
                 *     }
                 */
                "application/json": components["schemas"]["CaptureRequest"];
            };
        };
        responses: {
            200: components["responses"]["Held"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["CreditsExhausted"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            410: components["responses"]["Archived"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    releaseHold: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme"
                 *     }
                 */
                "application/json": components["schemas"]["ReleaseRequest"];
            };
        };
        responses: {
            200: components["responses"]["Held"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            410: components["responses"]["Archived"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    extendHold: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "ttl_seconds": 600
                 *     }
                 */
                "application/json": components["schemas"]["ExtendRequest"];
            };
        };
        responses: {
            200: components["responses"]["Held"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            410: components["responses"]["Archived"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    refund: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "operation_id": "order-17",
                 *       "amount": 2,
                 *       "reason": "wrong result"
                 *     }
                 */
                "application/json": components["schemas"]["RefundRequest"];
            };
        };
        responses: {
            /** @description The refund; a replay returns the earlier one. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RefundAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    chargeLimits: {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 255 visible ASCII characters. A second charge with the same key within 10 minutes charges nothing. */
                "Idempotency-Key"?: components["parameters"]["ChargeKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "subject": "user_42",
                 *       "route": "/search",
                 *       "method": "GET"
                 *     }
                 */
                "application/json": components["schemas"]["ChargeRequest"];
            };
        };
        responses: {
            /** @description All limits permit the request and were charged. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChargeAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    refundCharge: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChargeRefundRequest"];
            };
        };
        responses: {
            /** @description The tokens are back, or were back before. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChargeRefundAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    settleCharge: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChargeSettleRequest"];
            };
        };
        responses: {
            /** @description The cost is changed, or was changed before. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChargeSettleAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    acquireLease: {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 255 visible ASCII characters, new for every lease. */
                "Idempotency-Key"?: components["parameters"]["LeaseKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "rule": "exports",
                 *       "tenant": "acme",
                 *       "ttl_seconds": 60
                 *     }
                 */
                "application/json": components["schemas"]["LeaseRequest"];
            };
        };
        responses: {
            /** @description A dry run; a lease is available. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaseAnswer"];
                };
            };
            /** @description The lease; a replay returns the earlier one. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaseAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["Denied"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    renewLease: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id that the acquisition returned; opaque. */
                lease_id: components["parameters"]["LeasePath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ttl_seconds": 60
                 *     }
                 */
                "application/json": components["schemas"]["LeaseRenewal"];
            };
        };
        responses: {
            /** @description The lease with its new end. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaseAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    releaseLease: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id that the acquisition returned; opaque. */
                lease_id: components["parameters"]["LeasePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listBalances: {
        parameters: {
            query?: {
                /** @description The balance of this subject. Without it, the tenant's own balance. */
                subject?: components["schemas"]["Name"];
                /** @description The balance at this past instant. The answer then has no grants. */
                as_of?: string;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The balances, by meter. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BalanceList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getBalance: {
        parameters: {
            query?: {
                /** @description The balance of this subject. Without it, the tenant's own balance. */
                subject?: components["schemas"]["Name"];
                /** @description The balance at this past instant. The answer then has no grants. */
                as_of?: string;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The balance. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    /** @description The seq of the balance in quotes, for the If-Match of an adjustment; absent with `as_of`. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Balance"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEntries: {
        parameters: {
            query?: {
                /** @description Only entries of this meter. */
                meter?: components["schemas"]["Id"];
                /** @description Only entries of this subject's balances, and entries of requests that named this subject. */
                subject?: components["schemas"]["Name"];
                /** @description Only entries of this kind. */
                kind?: components["schemas"]["EntryKind"];
                /** @description Only entries made at this instant or later. */
                from?: string;
                /** @description Only entries made before this instant. */
                to?: string;
                /** @description `desc` lists the newest entries first. In both orders, the entries of a balance (meter and subject) are together. For the newest entries of one balance, name its meter and subject. */
                order?: "asc" | "desc";
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntryList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getOperation: {
        parameters: {
            query?: {
                /** @description The answer is the newest operation with this id at or before this instant. By default it is the newest. */
                at?: string;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The idempotency key of the request, or the id of an operation that the ledger started, as entries show it. Percent-encode characters that a path segment cannot contain. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation and its entries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listPeriods: {
        parameters: {
            query: {
                /** @description The id of the meter. */
                meter: components["schemas"]["Id"];
                /** @description The number of periods, including the open one. */
                next?: number;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The periods in order. There are fewer than requested if the last one has no end. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PeriodList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listStatements: {
        parameters: {
            query?: {
                /** @description Only periods of this meter. */
                meter?: components["schemas"]["Id"];
                /** @description The balances of this subject. Without it, the tenant's own balances. */
                subject?: components["schemas"]["Name"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of periods. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatementList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getStatement: {
        parameters: {
            query?: {
                /** @description The balance of this subject. Without it, the tenant's own balance. */
                subject?: components["schemas"]["Name"];
                /** @description By default, the format that Accept prefers, or JSON. */
                format?: "json" | "csv";
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
                /** @description The start of the period, or one of these: `current` for the open period, `last` for the newest closed one, `at:` and a time for the period that contains that time. */
                period_start: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The statement. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    /** @description The answer depends on Accept. */
                    Vary: "Accept";
                    /** @description The file name, for CSV. */
                    "Content-Disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Statement"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listUsage: {
        parameters: {
            query: {
                /** @description The id of the meter. */
                meter: components["schemas"]["Id"];
                /** @description Only use of this subject. If the plan has no cap per subject, this is the use of requests that named the subject. It then has no refunds, because refunds name no subject. */
                subject?: components["schemas"]["Name"];
                /** @description The start, inclusive. */
                from: string;
                /** @description The end, exclusive. */
                to: string;
                /** @description The length of the intervals. */
                by?: "hour" | "day" | "month";
                /** @description With `subject`, there is one item for each interval and each subject that requests named. The empty subject has the use of requests that named none, and refunds. With `metadata.` and one of the meter's `dimensions`, there is one item for each interval and each value of that member in the metadata of requests. The empty value has the use of requests without the member, and refunds. A capture has the value of its hold. The 100 values with the most use are named, truncated to 128 characters. All other values are `(other)`. There are at most 10,000 items. Their sum equals the use without `group_by`. */
                group_by?: string;
                /** @description The IANA zone of the days and months. */
                timezone?: string;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The intervals. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDenials: {
        parameters: {
            query?: {
                /** @description The start, inclusive. Counts start with the minute that contains it. By default, it is a day before `to`. */
                from?: string;
                /** @description The end, exclusive. By default, it is the end of the present minute. */
                to?: string;
                /** @description The largest number of explanations. A tenant has at most 100. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The denials. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DenialList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listHolds: {
        parameters: {
            query?: {
                /** @description Only holds with this status. */
                status?: components["schemas"]["HoldStatus"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of holds. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HoldList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getHold: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The hold. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Hold"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Archived"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listGrants: {
        parameters: {
            query?: {
                /** @description Only grants of this meter. */
                meter?: components["schemas"]["Id"];
                /** @description Only grants in this state. `open` means pending or active. A page may then have fewer grants than the limit, or none, even if there is a `next_cursor`. */
                status?: "open" | "pending" | "active" | "exhausted" | "expired" | "voided";
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of grants. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GrantList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    grant: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "meter": "api_calls",
                 *       "amount": 1000,
                 *       "source": "topup",
                 *       "expires_at": "2027-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["GrantRequest"];
            };
        };
        responses: {
            /** @description A dry run; the grant that would be issued. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GrantAnswer"];
                };
            };
            /** @description The grant. A replay returns the grant as it was issued. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GrantAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    voidGrant: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the grant. */
                grant_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "payment failed"
                 *     }
                 */
                "application/json": components["schemas"]["VoidRequest"];
            };
        };
        responses: {
            200: components["responses"]["Changed"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    extendGrant: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the grant. */
                grant_id: components["schemas"]["Name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "expires_at": "2027-03-01T00:00:00Z",
                 *       "reason": "paid late"
                 *     }
                 */
                "application/json": components["schemas"]["GrantExtensionRequest"];
            };
        };
        responses: {
            /** @description The grant's end before and after the change. A replay returns the earlier answer, a dry run returns the expected one. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GrantExtension"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    adjust: {
        parameters: {
            query?: never;
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
                /** @description The ETag of the balance that the caller has seen. If the balance has changed since then, the answer is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "meter": "api_calls",
                 *       "amount": -20,
                 *       "reason": "counted twice on May 3"
                 *     }
                 */
                "application/json": components["schemas"]["AdjustmentRequest"];
            };
        };
        responses: {
            200: components["responses"]["Changed"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listMeters: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of meters, by id. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MeterList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getMeter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The meter. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Meter"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putMeter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "unit": "call",
                 *       "description": "Calls of the public API"
                 *     }
                 */
                "application/json": components["schemas"]["MeterRequest"];
            };
        };
        responses: {
            /** @description The meter as it is stored. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Meter"];
                };
            };
            /** @description The meter, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Meter"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteMeter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listPlans: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of plans, by id. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlanList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getPlan: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the plan. */
                plan: components["parameters"]["PlanPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The plan. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putPlan: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the plan. */
                plan: components["parameters"]["PlanPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "allowances": [
                 *         {
                 *           "meter": "api_calls",
                 *           "amount": 10000,
                 *           "every": "month",
                 *           "anchor": "tenant"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PlanRequest"];
            };
        };
        responses: {
            /** @description The plan's newest version. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            /** @description The plan, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listTenants: {
        parameters: {
            query?: {
                /** @description Only tenants whose ids begin with this prefix, as in `acme`. Upper and lower case differ. It can be combined only with `limit`, `cursor` and `sort=tenant`. */
                prefix?: components["schemas"]["Name"];
                /** @description Only tenants on this plan. */
                plan?: components["schemas"]["Id"];
                /** @description Only tenants with this status. */
                status?: "active" | "suspended";
                /** @description Only tenants with these members of their metadata. Each member is a separate parameter, named `metadata.` and the name of the member, as in `metadata.segment=gold`. Numbers, true and false are written as in JSON. In the SDKs, names of members do not have `metadata.`. */
                metadata?: {
                    [key: string]: string;
                };
                /** @description Only tenants with a balance of which at least this percentage is used in the open period. The percentage is used / (used + remaining), where used is net of refunds and remaining includes top-ups. `standing` of an item has the balance. */
                near?: number;
                /** @description Only balances of this meter. Without `near`, tenants that have a balance of it in the open period. */
                meter?: components["schemas"]["Id"];
                /** @description `remaining` sorts by remaining units, least first. They are the units of `meter`, or of the meter with the least units. */
                sort?: "tenant" | "remaining";
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tenants. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tenant. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["TenantETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putTenant: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the tenant that the caller has seen. If the tenant has changed since then, the answer is 409. */
                "If-Match"?: components["parameters"]["TenantIfMatch"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "starter",
                 *       "anchor": "2026-01-31T00:00:00Z",
                 *       "timezone": "Europe/Berlin"
                 *     }
                 */
                "application/json": components["schemas"]["TenantRequest"];
            };
        };
        responses: {
            /** @description The stored tenant. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["TenantETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            /** @description The tenant, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["TenantETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    patchTenant: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the tenant that the caller has seen. If the tenant has changed since then, the answer is 409. */
                "If-Match"?: components["parameters"]["TenantIfMatch"];
                /** @description 1 to 255 visible ASCII characters. A retry with the key returns the first answer and changes nothing. A request without a key is always another request. */
                "Idempotency-Key"?: components["parameters"]["ChangeKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "pro",
                 *       "apply": "now",
                 *       "reason": "upgraded by the customer"
                 *     }
                 */
                "application/json": components["schemas"]["TenantPatch"];
            };
        };
        responses: {
            /** @description The tenant before and after the change. After a dry run, it shows the expected change. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["TenantETag"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantChange"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deletePending: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listGauges: {
        parameters: {
            query?: {
                /** @description Only gauges of this meter. */
                meter?: components["schemas"]["Id"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of gauges. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GaugeList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getGauge: {
        parameters: {
            query?: {
                /** @description The gauge of this subject. Without it, the tenant's own gauge. */
                subject?: components["schemas"]["Name"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gauge. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gauge"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    setGauge: {
        parameters: {
            query?: {
                /** @description The gauge of this subject. Without it, the tenant's own gauge. */
                subject?: components["schemas"]["Name"];
            };
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does not need it if `dry_run` is true. The contract always requires it, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GaugeRequest"];
            };
        };
        responses: {
            /** @description The gauge after the change. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Gauge"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["Impossible"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listGaugeEntries: {
        parameters: {
            query?: {
                /** @description The gauge of this subject. Without it, the tenant's own gauge. */
                subject?: components["schemas"]["Name"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GaugeEntryList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getFeatures: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The features. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantFeatures"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listTerms: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of terms. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TermsList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listLimits: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of limits, by rule. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getLimit: {
        parameters: {
            query?: {
                /** @description With 1, the answer has an explanation of the limit. */
                explain?: "1";
                /** @description With explain, the answer explains the limit that applies to this tenant, with its override and its calendar. It may be a limit of the tenant's plan. */
                tenant?: components["schemas"]["Name"];
                /** @description The subject whose override applies; requires tenant. */
                subject?: components["schemas"]["Name"];
                /** @description The plan whose limit is returned, in the plan's newest version, instead of the general limit. */
                plan?: components["schemas"]["Id"];
            };
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The limit. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limit"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putLimit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "per": [
                 *         "tenant"
                 *       ],
                 *       "match": {
                 *         "route": "/search"
                 *       },
                 *       "kind": "token_bucket",
                 *       "rate": "60/s",
                 *       "burst": 120
                 *     }
                 */
                "application/json": components["schemas"]["LimitRequest"];
            };
        };
        responses: {
            /** @description The stored limit. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limit"];
                };
            };
            /** @description The limit, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limit"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteLimit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    resetLimit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "subject": "user_42"
                 *     }
                 */
                "application/json": components["schemas"]["ResetRequest"];
            };
        };
        responses: {
            /** @description The bucket is reset. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResetAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getLimitState: {
        parameters: {
            query?: {
                /** @description For a limit per tenant. */
                tenant?: components["schemas"]["Name"];
                /** @description For a limit per subject. */
                subject?: components["schemas"]["Subject"];
                /** @description For a limit per route. */
                route?: components["schemas"]["Route"];
                /** @description For a limit per ip. */
                ip?: components["schemas"]["Ip"];
            };
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitState"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getLimitTop: {
        parameters: {
            query?: {
                /** @description The largest number of buckets in the answer. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The buckets, the fullest first. Equally full buckets are sorted by used tokens, largest first, then by tenant and bucket. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitTop"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getLimitShadow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The counts. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "X-Quota-Report-Lag": components["headers"]["ReportLag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitShadow"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listLimitOverrides: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the overrides in force, by tenant and subject. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverrideList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getLimitOverride: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The override. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverride"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putLimitOverride: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "rate": "500/s",
                 *       "burst": 1000,
                 *       "expires_at": "2030-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["LimitOverrideRequest"];
            };
        };
        responses: {
            /** @description The stored override. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverride"];
                };
            };
            /** @description The override, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverride"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteLimitOverride: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getSubjectLimitOverride: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the subject. */
                subject: components["parameters"]["SubjectPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The override. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverride"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putSubjectLimitOverride: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the subject. */
                subject: components["parameters"]["SubjectPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "rate": "500/s",
                 *       "burst": 1000,
                 *       "expires_at": "2030-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["LimitOverrideRequest"];
            };
        };
        responses: {
            /** @description The stored override. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverride"];
                };
            };
            /** @description The override, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitOverride"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteSubjectLimitOverride: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the limit. */
                rule: components["parameters"]["RulePath"];
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the subject. */
                subject: components["parameters"]["SubjectPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listBlocks: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of blocks, by kind, tenant and value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BlockList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getBlock: {
        parameters: {
            query?: {
                /** @description The tenant of the subject. Required only if subjects of several tenants have this id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The block. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Block"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putBlock: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "abuse",
                 *       "expires_at": "2030-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["BlockRequest"];
            };
        };
        responses: {
            /** @description The stored block. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Block"];
                };
            };
            /** @description The block, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Block"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteBlock: {
        parameters: {
            query?: {
                /** @description The tenant of the subject. Required only if subjects of several tenants have this id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getBlockPrefix: {
        parameters: {
            query?: {
                /** @description The tenant of the subject. Required only if subjects of several tenants have this id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
                /** @description The number after the slash of a prefix. */
                bits: components["parameters"]["BlockBitsPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The block. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Block"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    putBlockPrefix: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
                /** @description The number after the slash of a prefix. */
                bits: components["parameters"]["BlockBitsPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "abuse",
                 *       "expires_at": "2030-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["BlockPrefixRequest"];
            };
        };
        responses: {
            /** @description The stored block. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Block"];
                };
            };
            /** @description The block, created. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Block"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteBlockPrefix: {
        parameters: {
            query?: {
                /** @description The tenant of the subject. Required only if subjects of several tenants have this id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description The kind of the blocked or exempt object. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. The slash may be written as %2F. */
                value: components["parameters"]["BlockValuePath"];
                /** @description The number after the slash of a prefix. */
                bits: components["parameters"]["BlockBitsPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: components["responses"]["Gone"];
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    startRoll: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["RollRequest"];
            };
        };
        responses: {
            /** @description The roll has started. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    /** @description The URL of its progress. */
                    Location: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Roll"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getRoll: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the roll. */
                roll_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The roll. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Roll"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listVerifications: {
        parameters: {
            query?: {
                /** @description Only verifications of this tenant. By default, the list also has verifications of all tenants. */
                tenant?: components["schemas"]["Name"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of verifications. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VerificationList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    startVerification: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme"
                 *     }
                 */
                "application/json": components["schemas"]["VerificationRequest"];
            };
        };
        responses: {
            /** @description The verification has started. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    /** @description The URL of its result. */
                    Location: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Verification"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getVerification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the verification. */
                verification_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The verification. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Verification"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listSeals: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of seals. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SealList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getSeal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description A day in UTC.
                 * @example 2026-11-22
                 */
                day: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The seal. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Seal"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getStatus: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of the service. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceStatus"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createPortalSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tenant": "acme",
                 *       "expires_in_seconds": 3600,
                 *       "return_url": "https://app.example.com/billing"
                 *     }
                 */
                "application/json": components["schemas"]["PortalSessionRequest"];
            };
        };
        responses: {
            /** @description The link. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortalSession"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    endPortalSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The links are ended. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of keys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "gateway eu-1",
                 *       "scopes": [
                 *         "use"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["KeyRequest"];
            };
        };
        responses: {
            /** @description The key with its secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewKey"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key, not its secret. */
                key_id: components["parameters"]["KeyPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key, not its secret. */
                key_id: components["parameters"]["KeyPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is revoked. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    rotateKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the key, not its secret. */
                key_id: components["parameters"]["KeyPath"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "overlap_seconds": 86400
                 *     }
                 */
                "application/json": components["schemas"]["KeyRotation"];
            };
        };
        responses: {
            /** @description The key with its new secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewKey"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description Only changes of objects that belong to this tenant. */
                tenant?: components["schemas"]["Name"];
                /** @description Only changes by the key with this id. */
                actor?: components["schemas"]["Id"];
                /**
                 * @description Only changes of this kind, as in `limit.put`.
                 * @example limit.put
                 */
                action?: components["schemas"]["Id"];
                /** @description The start, inclusive. */
                from?: string;
                /** @description The end, exclusive. */
                to?: string;
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of lines. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Only events of this tenant. */
                tenant?: components["schemas"]["Name"];
                /** @description Only events of this type. */
                type?: components["schemas"]["EventType"];
                /** @description The `event_id` after which the list begins. By default, it begins with the oldest event. */
                after?: components["schemas"]["EventId"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    exportCatalog: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The catalogue. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    /** @description The state of meters, plans and limits in quotes, for the If-Match of a change. It does not include blocks. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Catalog"];
                };
            };
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    applyCatalog: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the catalogue that the caller has seen. If meters, plans or limits have changed since then, the answer is 409. */
                "If-Match"?: components["parameters"]["CatalogIfMatch"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "meters": {
                 *         "api_calls": {
                 *           "unit": "call"
                 *         }
                 *       },
                 *       "plans": {
                 *         "starter": {
                 *           "allowances": [
                 *             {
                 *               "meter": "api_calls",
                 *               "amount": 1000,
                 *               "every": "month",
                 *               "anchor": "calendar"
                 *             }
                 *           ]
                 *         }
                 *       },
                 *       "dry_run": true
                 *     }
                 */
                "application/json": components["schemas"]["CatalogRequest"];
            };
        };
        responses: {
            /** @description The changes that were made, or would be made. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CatalogDiff"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of webhooks. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpointList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://example.com/hooks",
                 *       "types": [
                 *         "balance.threshold_reached",
                 *         "balance.exhausted"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["WebhookRequest"];
            };
        };
        responses: {
            /** @description The webhook with its secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewWebhookEndpoint"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook is deleted. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    patchWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "status": "paused"
                 *     }
                 */
                "application/json": components["schemas"]["WebhookPatch"];
            };
        };
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result of the call, whether it succeeded or failed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookTest"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    rotateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "overlap_seconds": 86400
                 *     }
                 */
                "application/json": components["schemas"]["KeyRotation"];
            };
        };
        responses: {
            /** @description The webhook with its new secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewWebhookEndpoint"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    replayWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "from": "2026-11-25T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["WebhookReplayRequest"];
            };
        };
        responses: {
            /** @description The events that were queued. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookReplay"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Only deliveries in this state. */
                status?: components["schemas"]["DeliveryStatus"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the previous page. It is opaque, and valid only with the same filters. */
                cursor?: components["parameters"]["PageCursor"];
            };
            header?: never;
            path: {
                /** @description The id of the webhook. */
                webhook_id: components["parameters"]["WebhookPath"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getTestClock: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The ledger's time, and how far it was moved. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestClock"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    advanceTestClock: {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 255 visible ASCII characters. A request with the key of the previous step does not move the time. A request without a key always moves it. */
                "Idempotency-Key"?: components["parameters"]["ClockKeyHeader"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "advance": "31d"
                 *     }
                 */
                "application/json": components["schemas"]["TestClockRequest"];
            };
        };
        responses: {
            /** @description The time after the step. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestClock"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["KeyForbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getSpec: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["SpecETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/yaml": string;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
        };
    };
    getSpecJSON: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["SpecETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            304: components["responses"]["NotModified"];
            400: components["responses"]["Invalid"];
            500: components["responses"]["Internal"];
        };
    };
}
