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
         * @description Checks limits and balances and changes neither. The status is 200 even if `allowed` is false; `code` is then the code that a consume would fail with.
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
         * @description Each result is the answer that POST /v1/check would return, or its problem, in the order of the checks. The limits of all checks are asked together. A body with an invalid field is refused as a whole, as is one of more than 1048576 bytes.
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
         * @description All limits and all items must allow it; otherwise nothing is charged.
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
                /** @description The kind of the gateway; it decides the form of a refusal. */
                gateway: "nginx" | "haproxy" | "traefik" | "envoy";
            };
            cookie?: never;
        };
        /**
         * Decide whether a request may pass the gateway
         * @description For gateways that hold back a request of their client and ask whether it may pass: any method, no body, everything in
         *     headers. It consumes one item; with `X-Quota-Mode: check` it only checks, with `limit` it only charges limits, and `X-Quota-Charge` names the charge. 200 lets the request pass. A refusal has
         *     the status and the problem of a consume, except for `nginx`, which would turn most statuses into 500: there it is 403
         *     (401 stays 401), with the status in `X-Quota-Status` and the problem in `X-Quota-Problem`.
         *
         *     The service trusts these headers, so the gateway must replace or remove those that its clients send. `nginx` and
         *     `haproxy` describe the forwarded request with `X-Original-URI` and `X-Original-Method`, `traefik` with
         *     `X-Forwarded-Uri` and `X-Forwarded-Method`. If a gateway's own headers are missing, the others count. Limits see the
         *     method, and the path in a normal form, without the query, unless `X-Quota-Route` names the route. Other spellings of a route
         *     count as the same one unless a limit's `normalize` says otherwise.
         *
         *     Limits per `ip` use the peer of the connection or, if that is a trusted proxy, the client in `X-Forwarded-For` or
         *     `X-Real-IP`.
         *
         *     A request with an `Idempotency-Key` that was used before, for the same method, URI and X-Quota headers, passes
         *     without being charged units again. Limits are charged each time. Without a key each request is charged. An
         *     `X-Request-Id` is not a key.
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
         * @description Like the operation above. Envoy sends the method of the forwarded request, and its path after `path_prefix`.
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
         * @description All items succeed or none does. Rate limits are not charged.
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
         * @description Each debit succeeds or fails alone, under its own idempotency key. Results are in the order of the debits. A body with an invalid field is refused as a whole, before anything is done. With `dry_run` each debit is decided as if it were the only one.
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
         * @description Held units leave `remaining` at once. A capture uses them. A release or the expiry of the hold returns them to their grants. All items are held or none is. Overage cannot be held.
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
                hold_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use held units
         * @description Without `items` the capture uses all held units. With `items` it uses those; the rest stays held unless `final` is true. A capture of more than is held is decided like a debit. A hold without remaining units is `captured`.
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
                hold_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Return held units
         * @description Everything that is still reserved returns to the grants it came from. A hold that is captured, released or expired is 409.
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
                hold_id: components["schemas"]["Id"];
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
         * @description Repeated refunds add up to at most the debit. Units return to their grants, the last drawn first.
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
         * @description Charges the limits that apply, all or none, and writes nothing to the ledger. `cost` multiplies what each limit takes of a request. `rules` names the limits to charge; a limit that replaces one of them is charged in its place. A limit of them that does not apply is not charged. A limit with `match.meter` does not apply. With `after_the_fact` nothing is denied: the limits are charged down to their `debt` below zero. With an `Idempotency-Key` a repetition within 10 minutes charges nothing and shows the limits as they are; while Redis is down, only the instance that has charged knows the key.
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
         * @description Gives back what the charge took and what has not come back by itself. A second refund of a charge gives nothing back. An id that was not issued is 404. After 503 the refund may have been made.
         */
        post: operations["refundCharge"];
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
         * @description Returns a lease of a limit of kind `concurrency`, if fewer are held than the limit allows. The holder releases it
         *     after its work, and renews it during long work. Other leases expire, so that those of a dead holder become available
         *     again. If limits replace the named one, the most specific that applies decides.
         *
         *     The same `Idempotency-Key` returns the same lease while it lasts, so a retry takes no second one.
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
                /** @description The id from the acquisition; opaque. */
                lease_id: components["parameters"]["LeasePath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Renew a lease
         * @description The lease ends `ttl_seconds` from now, even if it would have lasted longer. A lease that has ended is `lease_not_found`: someone else may hold that place by now. Renew after a third of the time, which leaves time for retries. If the tenant, the subject or the address is blocked by now, or the tenant is suspended, the lease ends: `forbidden` or `tenant_suspended`.
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
                /** @description The id from the acquisition; opaque. */
                lease_id: components["parameters"]["LeasePath"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Release a lease
         * @description A release of a lease that has ended succeeds, so it can be repeated. After `unavailable` the lease ends at its time, unless a repetition releases it earlier.
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
         * @description One for each meter of the plan, used or not, and one for each other meter with a grant; with `as_of`, those that existed then. Not paged.
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
         * @description The balance at this instant, or at the one of `as_of`.
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
         * @description In the order of meter, subject and the number of the entry in its balance. The journal only grows.
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
                /** @description The idempotency key of the request, or an id of the ledger's own operations from the entries. Percent-encode characters that a path segment cannot hold. */
                operation_id: string;
            };
            cookie?: never;
        };
        /**
         * One operation with its entries
         * @description A key that is used again after its memory has ended names another operation. The answer is one of them.
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
         * @description According to the tenant's present terms.
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
         * The closed and open periods, those that began last first
         * @description Without the lines of the statements. Periods that began together are in the order of their meters.
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
                /** @description The start of the period; `current`: the open period; `last`: the newest closed one; `at:` and a time: the period that contains it. */
                period_start: string;
            };
            cookie?: never;
        };
        /**
         * The statement of one period
         * @description The figures add up: opening + granted + refunded - used - expired + adjusted = closing. As CSV, with `format=csv` or `Accept: text/csv`, it has a header row, a row per kind of entry and source of grants, and a row of source `total` for each figure of the sum.
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
         * @description The hours, days or months of [from, to) with any use, oldest first. At most 31 days by hour, 366 days by day and 3660 days by month. Not paged.
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
         * Why requests were refused
         * @description Refused debits, consumes, holds, captures, charges and authorizes of [from, to): how many there were in each minute, and the last ones with their explanation. Checks and dry runs are not among them, nor are faults of a request (400) and failures of the service (503). A denial is listed about a second after its answer. Counts are kept for 35 days at least, and the last 100 explanations of a tenant. Not paged.
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
         * @description In the order of their ids, active ones and those that ended.
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
                hold_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        /**
         * One hold
         * @description The hold with what was captured of it.
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
         * @description In the order of meter, subject and id, those that ended included.
         */
        get: operations["listGrants"];
        put?: never;
        /**
         * Issue a grant
         * @description Adds units that can be spent at once, or from `effective_at` on. Paid grants survive the end of a period.
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
                grant_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Void the remainder of a grant
         * @description Units that were drawn or are held stay so.
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
                grant_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a grant a later end
         * @description The grant keeps its id and all that is left of it or on hold; only its end, and with it its place in burn order, changes. A pending grant can be extended too. Refused with 409 for a grant that is used up, has ended or was taken back, that never ends, or that ends with its period (allowances and what is carried over of them), and with 400 for an end that is not later than the one it has.
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
         * @description A positive amount adds a grant of source adjustment that does not expire. A negative amount draws from the grants in burn order.
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
         * @description In the order of their ids.
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
         * @description As it is stored.
         */
        get: operations["getMeter"];
        /**
         * Create or replace a meter
         * @description 201 if it is new, 200 if it was there.
         */
        put: operations["putMeter"];
        post?: never;
        /**
         * Delete an unused meter
         * @description Refused if a version of a plan, even an old one, a limit, or a balance with entries refers to it.
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
         * @description In the order of their ids.
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
         * @description Its allowances and limits.
         */
        get: operations["getPlan"];
        /**
         * Create a new version of a plan
         * @description Versions are immutable. Open periods keep the version that they were opened with; the next ones open with the newest. A PUT that changes nothing creates no version.
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
         * All tenants, or those of a plan, with a status, with some metadata, or near their end
         * @description In the order of their ids, or of what remains. With a filter a page may have fewer items than `limit`, or none, and be followed by others: go on until `next_cursor` is null. By id each tenant is listed once, whatever changes meanwhile; by what remains, one whose balance changes between two pages may come twice or be missing.
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
         * @description As it is stored, with an ETag for If-Match.
         */
        get: operations["getTenant"];
        /**
         * Create or replace a tenant
         * @description Open periods keep the terms that they were opened with; the next ones open under the new plan, anchor, zone and overrides. Fields that the body omits get their defaults. With If-Match it replaces and never creates.
         */
        put: operations["putTenant"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change the given fields of a tenant
         * @description Fields that are absent stay as they are. New terms, such as another plan, apply at the next period of each meter unless `apply` is `now`.
         */
        patch: operations["patchTenant"];
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
         * The gauges of a tenant, in order of meters and subjects
         * @description Those of its plan, also if they were never set; those of its subjects that were set; and those that its plan no longer has, with a limit of 0, until their value is 0.
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
         * @description One that was never set is 0.
         */
        get: operations["getGauge"];
        /**
         * Set a gauge, such as the seats of a team, or change it by a difference
         * @description Above the plan's amount it is 403 `gauge_limit`, and the value stays. A value that is above the amount because the plan was changed can only fall.
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
         * @description Each change with its key, its values before and after, and what was allowed at that moment.
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
         * @description Those of the newest version of its plan, with those that the tenant overrides. Answered from memory, as a check of a feature is.
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
         * @description One line for each change, with the instant from which on it is in force.
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
         * @description In the order of their ids. Limits of plans are part of their plan.
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
         * @description As it is stored; with `explain=1` also what it means in numbers.
         */
        get: operations["getLimit"];
        /**
         * Create or replace a rate limit
         * @description 201 if it is new. Every instance applies it within a second.
         */
        put: operations["putLimit"];
        post?: never;
        /**
         * Delete a rate limit
         * @description Every instance stops applying it within a second. A limit that another one replaces stays until that one is gone: 409.
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
         * @description The body names one bucket, by the dimensions that divide the limit's buckets and by nothing else. The bucket becomes as it was before its first charge. For a limit of a plan, or one that a plan's limit replaces, the limit that applies to the tenant counts. For kind concurrency all its leases end. A repetition changes nothing.
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
         * @description The parameters name one bucket, by the dimensions that divide the limit's buckets, as for a reset. For a limit of a plan, or one that a plan's limit replaces, the limit that applies to the tenant counts. Nothing is charged.
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
         * @description Looks at all buckets of the limit as they are now, those of plans that have a limit of this id included, and answers with the fullest: those of which the largest part is used. All requests are served meanwhile. An instance looks for one caller at a time; another one waits up to a second, then it gets 503 `queue_full`. Keys that are bound to a tenant are refused.
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
         * What a limit in shadow mode would have denied
         * @description How many requests the limit would have denied in the last hour, day and week, had it been enforced, of how many tenants, and how many requests the enforced limits denied that decide the same requests. Consumes, charges, authorizes and leases count; checks, dry runs and charges after the fact do not, nor do requests that failed (400 and 503). A request counts about a second after its answer, in the time in which the limit was in shadow mode. Counts are kept for 35 days at least, also of a limit that is enforced or deleted now. Limits of plans that have this id are added up. Keys that are bound to a tenant are refused.
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
         * @description In the order of tenants and subjects. Expired overrides are left out.
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
         * @description As it is stored.
         */
        get: operations["getLimitOverride"];
        /**
         * Change rate and burst of a limit for a tenant
         * @description It applies to the tenant as a whole, and to its subjects that have none of their own.
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
         * @description As it is stored.
         */
        get: operations["getSubjectLimitOverride"];
        /**
         * Change rate and burst of a limit for a subject of a tenant
         * @description It applies to this subject instead of those of the tenant and of the limit.
         */
        put: operations["putSubjectLimitOverride"];
        post?: never;
        /**
         * Delete the override of a limit for a subject of a tenant
         * @description The numbers of the tenant, or of the limit, apply again.
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
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
                value: components["parameters"]["BlockValuePath"];
            };
            cookie?: never;
        };
        /**
         * One block of a tenant, a subject or an address
         * @description As it is stored.
         */
        get: operations["getBlock"];
        /**
         * Block or exempt a tenant, a subject or an address
         * @description Every instance applies it within a second. A block refuses; an exemption (`allow`) passes the rate limits.
         */
        put: operations["putBlock"];
        post?: never;
        /**
         * Delete a block of a tenant, a subject or an address
         * @description Every instance lifts it within a second.
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
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
                value: components["parameters"]["BlockValuePath"];
                /** @description The number after the slash of a prefix. */
                bits: components["parameters"]["BlockBitsPath"];
            };
            cookie?: never;
        };
        /**
         * One block of a prefix of addresses
         * @description As it is stored.
         */
        get: operations["getBlockPrefix"];
        /**
         * Block or exempt a prefix of addresses
         * @description As for one address, for all that begin with these bits.
         */
        put: operations["putBlockPrefix"];
        post?: never;
        /**
         * Delete a block of a prefix of addresses
         * @description Every instance lifts it within a second.
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
         * @description Balances are right without a roll: a period is closed and opened when its balance is next used. A roll does this in the background for idle balances. A repetition changes nothing.
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
         * @description Counts of balances, while it runs and afterwards.
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
         * @description Those that `POST /v1/verifications` started, without their differences; a single one has them. The continuous verification of each instance is in its metrics. A key that is bound to a tenant sees those of its tenant.
         */
        get: operations["listVerifications"];
        put?: never;
        /**
         * Verify that journal, balances, grants, periods and cached copies agree
         * @description Compares every balance with sums over the journal, in the background, in chunks that do not slow down requests. The service does this continuously at a low rate; this starts a pass now.
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
         * @description What was compared, and the differences that were found.
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
         * @description Without their proofs; a single seal has them.
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
         * The seal of a day, to be held by somebody else
         * @description The answer is the file that `quotasvc seal` writes. `quotasvc verify --seal FILE` proves later that the journal still is what was sealed until that day.
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
         * How the service is now
         * @description What the instance that answers did in the last minute, what does not work and why, who was refused most in the last hour, and the last jobs. It answers also while PostgreSQL or Redis is away. Refusals and jobs are those of all instances, a few seconds old; they are missing while they cannot be read. A key that is bound to a tenant may not ask.
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
         * Make a link to the page of a tenant, for its people
         * @description The link shows what the tenant has and uses, read only, until it ends: to be opened, or shown inside a page of yours. Whoever has it sees the page, so give it to people who have signed in to your own pages. It ends at its time, with the key that made it, and when the links of its tenant are ended. A retry makes another link. A tenant has at most 200; one more ends the oldest.
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
         * @description Pages that are open show nothing more from their next question on. Ending them again changes nothing.
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
         * @description Revoked and expired keys included.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create a key
         * @description The answer has the secret, which is shown this once. A key with a tenant is bound to it: it is refused for every other tenant, and lists show it that tenant only. A bound admin key creates only keys bound to the same tenant. A retry creates another key.
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
         * @description Its scopes, its state, and when it was last used.
         */
        get: operations["getKey"];
        put?: never;
        post?: never;
        /**
         * Revoke a key
         * @description Every instance refuses the key within a second. Revoking it again changes nothing.
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
         * @description The key keeps its id. Its secrets so far work for `overlap_seconds` more, at once no longer by default. The answer has the new secret, which is shown this once. A retry makes another one.
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
         * What administrators changed, newest first
         * @description A line is written in the transaction of its change. A key bound to a tenant sees the lines of that tenant.
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
         * What happened, oldest first
         * @description Events of the last 90 days. An event is written in the transaction of what it tells, and appears here within about a second. Events appear in the order of their ids: whoever asks again with the last `event_id` as `after` misses none. A key bound to a tenant sees the events of that tenant.
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
         * @description Meters, plans in their newest version, limits and blocks, each with its defaults. POST accepts it as it is. Tenants are not in it.
         */
        get: operations["exportCatalog"];
        put?: never;
        /**
         * Change the catalogue to what a document says
         * @description What `quotasvc apply` does with catalog.yaml: all of it or nothing, in one transaction. What the document does not name stays as it is, unless `prune` is true. Sending it again changes nothing. All faults are reported at once.
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
         * @description A key bound to a tenant sees the webhooks of that tenant.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Tell events to a receiver
         * @description The answer has the secret with which deliveries are signed, as Standard Webhooks has it. It is shown this once. A retry makes another webhook. At most 500.
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
         * @description Without its secret.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description What is pending is skipped.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change or pause a webhook
         * @description A paused webhook is told nothing. What is pending when it is paused is skipped; a replay catches up.
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
         * Call the receiver once
         * @description It is called now, with an event of the type `webhook.test`, and the answer says how it went. Works on a paused webhook, too.
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
         * @description Deliveries carry a signature of each secret so far for `overlap_seconds` more, at once no longer by default. The answer has the new secret, which is shown this once. A retry makes another one.
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
         * @description Events of the types and the tenant of the webhook, also those that were delivered, are dead, or happened while it was paused. The `webhook-id` of an event stays the same. At most 10,000 at once: `next_from` says where to go on. A paused webhook is refused (409).
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
         * Deliveries and how they went
         * @description The newest event first. Kept as long as events.
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
         * @description In `quotasvc dev` only; 404 elsewhere. Periods close, trials and grants end and holds expire as if the time had passed, and idempotency keys are forgotten. It never goes back, not even at a restart, and at most 3653 days ahead in all. Rate limits, leases, callers' keys, overrides of limits, the audit log, seals and archives stay on real time.
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
         * @description `/v1/openapi.json` is the same in JSON, and `/docs` shows it to people. No key is needed.
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
        /**
         * Format: int64
         * @description In the meter's smallest unit.
         */
        Amount: number;
        /**
         * Format: int64
         * @description A sum of many entries, in the meter's smallest unit. It may exceed 2^53-1, which single amounts do not. 2^63-1 stands for any larger sum.
         */
        Sum: number;
        /**
         * Format: int64
         * @description In the meter's smallest unit.
         */
        Count: number;
        /** @description Someone below the tenant, for records, caps and limits per subject. */
        Subject: string;
        /** @description Charges limits without a debit. */
        ChargeRequest: {
            tenant: components["schemas"]["Id"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            method?: components["schemas"]["Method"];
            /**
             * Format: int64
             * @description How many requests this is; 1 by default.
             */
            cost?: number;
            /** @description The work is done: the limits are charged whatever is left. What would take a limit further below zero than its `debt` is not charged; `charged` says what was. */
            after_the_fact?: boolean;
            /** @description The limits to charge; all that apply by default. */
            rules?: components["schemas"]["Id"][];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description What was charged. */
        ChargeAnswer: {
            /** @description Always true. A denial is a problem. */
            allowed: boolean;
            /** @description The verdicts of the limits, after the charge. */
            limits: components["schemas"]["LimitVerdict"][];
            /** @description Names the charge in a refund. Absent if no limit was charged. */
            charge_id?: string;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description The charge to take back. */
        ChargeRefundRequest: {
            /** @description The id that the charge returned. */
            charge_id: string;
        };
        /** @description What came of a refund of a charge. */
        ChargeRefundAnswer: {
            /** @description False if the charge was refunded before, or its tokens have come back by themselves. */
            refunded: boolean;
            /** @description The limits after the refund. */
            limits: components["schemas"]["LimitVerdict"][];
        };
        /** @description Asks for a lease of a concurrency limit. */
        LeaseRequest: {
            /** @description A limit of kind `concurrency`. */
            rule: string;
            tenant: components["schemas"]["Id"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            ttl_seconds?: components["schemas"]["LeaseTtl"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description How much longer a lease lasts. */
        LeaseRenewal: {
            ttl_seconds?: components["schemas"]["LeaseTtl"];
        };
        /**
         * Format: int64
         * @description How long the lease lasts. The default is that of the limit: the period of its rate, or 60.
         */
        LeaseTtl: number;
        /** @description A lease, or what a dry run found. */
        LeaseAnswer: {
            /** @description Absent after a dry run. */
            lease_id?: string;
            /** @description The limit that decided */
            rule: string;
            /** @description The limit that it replaces */
            replaces?: string;
            /**
             * Format: date-time
             * @description When the lease ends unless it is renewed, by the clock that decides. Absent after a dry run.
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
             * @description The number of held leases, this one included. Absent if unknown.
             */
            in_use?: number;
            /**
             * Format: int64
             * @description Leases that are free. Absent if unknown.
             */
            remaining?: number;
            /** @description The limit is in shadow mode and denies nobody. */
            shadow?: boolean;
            /** @description Redis is down; decided by the limit's `on_backend_error`. */
            degraded?: boolean;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description Your own JSON object, kept with the entries: at most 4096 bytes without blanks, 16 levels deep, without the character U+0000 and without numbers beyond 64 characters or an exponent beyond 3 digits. */
        Metadata: {
            [key: string]: unknown;
        };
        /** @description The called route, for limits per route. */
        Route: string;
        /** @description The HTTP method of the request, in upper case, for limits with `match.method`. */
        Method: string;
        /** @description A route in which `*` matches one or more characters without a slash, and `**` at the end matches any rest. */
        RoutePattern: string;
        /** @description The address of the caller, for limits per address and blocks. IPv4 or IPv6; IPv6 addresses with the same first 64 bits count as one caller unless a limit has its own `ip_prefix`. An IPv6 address that has an IPv4 address in it (::ffff:0:0/96, 64:ff9b::/96, ::/96) counts as the IPv4 address. */
        Ip: string;
        /** @description An amount of a meter. */
        Item: {
            meter: components["schemas"]["Id"];
            amount: components["schemas"]["Amount"];
        };
        /** @description Each meter once. */
        Items: components["schemas"]["Item"][];
        /**
         * @description What to do if less is available than asked for. `normal` charges all or nothing. `best_effort` charges what is available and returns the rest as `shortfall`. `drain` is for finished work: it charges what is available and records the rest as overage, regardless of the cap, up to 2^53-1.
         * @enum {string}
         */
        Mode: "normal" | "best_effort" | "drain";
        /** @description What would be consumed; items, a feature, or both. */
        CheckRequest: {
            tenant: components["schemas"]["Id"];
            items?: components["schemas"]["Items"];
            feature?: components["schemas"]["Feature"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            method?: components["schemas"]["Method"];
            /**
             * Format: int64
             * @description The largest age of a balance copy that may answer. 0 reads the ledger, and asks Redis for the limits; otherwise both may be answered from memory.
             */
            max_stale_ms?: number;
        };
        /** @description What is consumed; items, a feature, or both. */
        ConsumeRequest: {
            tenant: components["schemas"]["Id"];
            items?: components["schemas"]["Items"];
            feature?: components["schemas"]["Feature"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
            method?: components["schemas"]["Method"];
            mode?: components["schemas"]["Mode"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description What is debited. */
        DebitRequest: {
            tenant: components["schemas"]["Id"];
            items: components["schemas"]["Items"];
            subject?: components["schemas"]["Subject"];
            mode?: components["schemas"]["Mode"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
            /**
             * Format: date-time
             * @description With `dry_run`: decide as it would be at this instant, at most 400 days ahead, if nothing is used until then. Periods, grants, holds and agreed terms begin and end on the way; blocks and a suspension are those of now.
             */
            at?: string;
        };
        /** @description Independent debits. */
        DebitBatchRequest: {
            /** @description They are decided one by one. */
            debits: components["schemas"]["BatchDebit"][];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description One debit of a batch. */
        BatchDebit: {
            /** @description As the header of POST /v1/debits. The service does without it where `dry_run` is true. */
            idempotency_key: string;
            tenant: components["schemas"]["Id"];
            items: components["schemas"]["Items"];
            subject?: components["schemas"]["Subject"];
            mode?: components["schemas"]["Mode"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description Independent checks. */
        CheckBatchRequest: {
            /** @description They are decided one by one. */
            checks: components["schemas"]["CheckRequest"][];
        };
        /** @description One result per check, in the order of the request. */
        CheckBatchAnswer: {
            /** @description The answer of each check, or its problem. */
            results: (components["schemas"]["CheckAnswer"] | components["schemas"]["Problem"])[];
        };
        /** @description The answer of a check. `allowed` tells which one it is. */
        CheckAnswer: {
            /** @description Whether a consume would be allowed. */
            allowed: boolean;
            /** @description The items of the request, in its order. Empty if the balances of a blocked request could not be read. */
            items: components["schemas"]["CheckedItem"][];
            /** @description The verdicts of the limits that apply. */
            limits: components["schemas"]["LimitVerdict"][];
            /**
             * @description Where the balances come from.
             * @enum {string}
             */
            source: "ledger" | "cache" | "local";
            /**
             * Format: date-time
             * @description The instant of the oldest balance that was used.
             */
            as_of: string;
            /** @description A backend was down; balances may be older than asked for, or limits were decided by one replica alone. */
            degraded?: boolean;
        } & (components["schemas"]["CheckAllowed"] | components["schemas"]["CheckDenied"]);
        /** @description What a check adds that is allowed. */
        CheckAllowed: {
            /**
             * @description Always true.
             * @enum {boolean}
             */
            allowed: true;
        };
        /** @description What a check adds that is denied. */
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
        /** @description How the balance of an item stands. */
        CheckedItem: {
            meter: components["schemas"]["Id"];
            required: components["schemas"]["Amount"];
            remaining: components["schemas"]["Count"];
            limit: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The largest amount of this meter alone that would be allowed now.
             */
            max_allowed_now: number;
            /**
             * Format: date-time
             * @description When it would be allowed if nothing else happens: a grant takes effect, a hold expires, or the next period brings enough. Absent if no known event helps. An answer from a copy (`source`) considers only the end of the period.
             */
            would_succeed_at?: string;
            /**
             * @description What prevents this item; absent if nothing does.
             * @enum {string}
             */
            code?: "quota_exceeded" | "credits_exhausted" | "meter_not_in_plan";
        };
        /** @description What a limit decided. */
        LimitVerdict: {
            rule: components["schemas"]["Id"];
            kind: components["schemas"]["LimitKind"];
            /** @description The rule that this one replaces; absent if it replaces none. */
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
             * @description When the same cost would pass; 0 if it passed, null if it never will.
             */
            retry_after_ms: number | null;
            /**
             * Format: int64
             * @description How long an admitted request waits for its turn in a leaky bucket; absent if it need not wait.
             */
            delay_ms?: number;
            /**
             * Format: int64
             * @description The time until the bucket's ban ends; absent if it is not banned.
             */
            banned_ms?: number;
            /**
             * Format: int64
             * @description Only of a charge after the fact: the tokens that it took.
             */
            charged?: number;
            /** @description The limit counts and denies nothing. */
            shadow: boolean;
            /** @description Only for a limit in shadow mode: whether it would have denied the request. */
            would_deny?: boolean;
            /** @description Decided by one replica alone. */
            degraded?: boolean;
        };
        /** @description On `forbidden`, the blocked tenant, subject or address. */
        Blocked: {
            kind: components["schemas"]["BlockKind"];
            /** @description The id, or the prefix that contains the address. */
            value: string;
            /**
             * Format: date-time
             * @description When the block ends; absent if never.
             */
            expires_at?: string;
            /** @description The reason that was given. */
            reason?: string;
        };
        /** @description What prevents the request. */
        Limiting: {
            /**
             * @description allowance: the next period adds more. credit: only a grant helps.
             * @enum {string}
             */
            kind: "allowance" | "credit";
            meter: components["schemas"]["Id"];
            /** @description Empty for the tenant itself. */
            subject: string;
            /**
             * @description Whether the tenant's balance or the subject's cap prevents it.
             * @enum {string}
             */
            level: "tenant" | "subject";
        };
        /** @description What was debited. */
        DebitAnswer: {
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            tenant: components["schemas"]["Id"];
            /** @description What was charged, in the order of the request. */
            items: components["schemas"]["DebitedItem"][];
            /** @description The verdicts of the rate limits on a consume, after the charge. Absent if no limit applies, and on a replay, which charges none. */
            limits?: components["schemas"]["LimitVerdict"][];
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description What was charged for an item. */
        DebitedItem: {
            meter: components["schemas"]["Id"];
            requested: components["schemas"]["Amount"];
            charged: components["schemas"]["Count"];
            shortfall: components["schemas"]["Count"];
            /** @description The grants that paid, in burn order. */
            draws: components["schemas"]["Draw"][];
            overflow?: components["schemas"]["OverflowPayment"];
            remaining: components["schemas"]["Count"];
        };
        /** @description How the cost of what the overflow meter paid for was rounded. Present only where the price is a ratio; a whole price rounds nothing. The draws of the overflow meter add up to `cost`. */
        OverflowPayment: {
            /** @description The overflow meter. */
            meter: string;
            /**
             * Format: int64
             * @description How many units of the item it paid for.
             */
            units: number;
            price: components["schemas"]["OverflowRatio"];
            /**
             * @description What the units cost exactly: `2.345`, or `2 1/3` where decimals do not end or are more than nine.
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
             * @description What was charged of the overflow meter: exact, rounded.
             */
            cost: number;
        };
        /** @description The price in the plan, `units` of the overflow meter for `per` of the item's. */
        OverflowRatio: {
            units: components["schemas"]["Amount"];
            per: components["schemas"]["Amount"];
        };
        /** @description A part of an amount, taken from one grant. */
        Draw: {
            /** @description Empty for overage. */
            grant: string;
            source: components["schemas"]["Source"];
            /** @description The item's meter, or its overflow meter. */
            meter: string;
            amount: components["schemas"]["Amount"];
        };
        /**
         * @description The source of a grant. overage is use that no grant paid.
         * @enum {string}
         */
        Source: "allowance" | "topup" | "promo" | "rollover" | "refund" | "adjustment" | "overage";
        /** @description One result per debit, in the order of the request. */
        DebitBatchAnswer: {
            /** @description The answer of each debit, or its problem. */
            results: components["schemas"]["BatchResult"][];
        };
        /** @description The status and the body that POST /v1/debits would return, in one object. `status` 200 or a `code` tells which it is. */
        BatchResult: components["schemas"]["BatchDebited"] | components["schemas"]["BatchRefused"];
        /** @description A debit of a batch that was carried out. */
        BatchDebited: {
            /**
             * Format: int32
             * @description Always 200.
             * @enum {integer}
             */
            status: 200;
            /** @description It is the stored answer of an earlier request with the same key. */
            replayed: boolean;
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            tenant: components["schemas"]["Id"];
            /** @description What was charged, in the order of the request. */
            items: components["schemas"]["DebitedItem"][];
            /**
             * Format: date-time
             * @description When it was decided.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
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
            /** @description It is the stored denial of an earlier request with the same key. */
            replayed: boolean;
            /**
             * Format: uri
             * @description The page that describes the code, or a registered type.
             */
            type: string;
            /** @description The code in words. */
            title: string;
            /** @description What happened to this request, for people. Its text may change. */
            detail: string;
            code: components["schemas"]["ProblemCode"];
            /** @description The faults of the request, by field. */
            errors?: components["schemas"]["FieldError"][];
        } & (components["schemas"]["QuotaProblem"] | components["schemas"]["RateLimitProblem"] | components["schemas"]["CapacityProblem"] | components["schemas"]["ForbiddenProblem"] | components["schemas"]["ArchivedProblem"] | components["schemas"]["UnavailableProblem"] | components["schemas"]["OtherProblem"]);
        /** @description What a tenant or a subject has of a meter in the open period. */
        Balance: {
            meter: components["schemas"]["Id"];
            /** @description Empty for the tenant itself. */
            subject: string;
            /** @description The plan that the open period was opened with; absent if the plan lacks the meter. */
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
            /**
             * Format: int64
             * @description Units of allowances that were used before the change of plan that opened the period. Its allowance was granted without them. null with as_of in a period that has closed.
             */
            carried: number | null;
            refunded: components["schemas"]["Count"];
            used: components["schemas"]["Count"];
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
             * @description The number of its newest entry, for the If-Match of an adjustment.
             */
            seq: number;
            period: components["schemas"]["BalancePeriod"];
            /** @description The grants with units to draw, in burn order. */
            grants: components["schemas"]["Grant"][];
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
        };
        /** @description A period, from its start until before its end. */
        BalancePeriod: {
            /**
             * Format: date-time
             * @description null if no period is open.
             */
            start: string | null;
            /**
             * Format: date-time
             * @description null if the period has no end.
             */
            end: string | null;
        };
        /** @description A page of balances. */
        BalanceList: {
            /** @description The page. */
            items: components["schemas"]["Balance"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description null on the last page. */
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
             * @description Counts the balance's entries from 1, without a gap.
             */
            seq: number;
            kind: components["schemas"]["EntryKind"];
            meter: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /**
             * Format: date-time
             * @description The start of the period in which it counts.
             */
            period_start: string;
            /** @description The grant; empty if there is none. */
            grant: string;
            /** @description The source of the grant; empty if there is none. */
            source: string;
            amount: components["schemas"]["Count"];
            remaining_after: components["schemas"]["Count"];
            /**
             * Format: int32
             * @description The index of the item in the operation, from 0.
             */
            item: number;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When a line of the system was due, if that was before it was written.
             */
            effective_at?: string;
            /** @description The subject of the request. */
            operation_subject?: string;
            /** @description The id of the key with which the operation was asked for. Absent in lines of the system, and in those of versions before. */
            actor?: string;
            metadata?: components["schemas"]["Metadata"];
            /** @description Further facts of some kinds. */
            detail?: {
                [key: string]: unknown;
            };
        };
        /**
         * @description What an entry records. A grant takes effect (`grant`), or is issued for later (`schedule`). Units are used: `debit`, `capture`, `overage`. Units are reserved: `hold`, `extend`, `release`. Units are given back: `refund`, `unoverage`, `unowe`, `unsettle`, `closed_refund`. Units expire (`expire`), are taken back (`void`) or are corrected (`adjust_up`, `adjust_down`). Units move into the next period: `rollover_out`, `rollover_in`. Overage is forgiven (`forgive`), stays owed (`owe`) or is paid by the next allowance (`settle`). A grant ends later (`extend_grant`). A denial is stored: `denial`.
         * @enum {string}
         */
        EntryKind: "grant" | "debit" | "overage" | "refund" | "unoverage" | "forgive" | "owe" | "settle" | "unowe" | "unsettle" | "closed_refund" | "expire" | "void" | "adjust_up" | "adjust_down" | "hold" | "capture" | "release" | "rollover_out" | "rollover_in" | "schedule" | "extend" | "extend_grant" | "denial";
        /** @description A page of entries. */
        EntryList: {
            /** @description The page. */
            items: components["schemas"]["Entry"][];
            next_cursor: components["schemas"]["NextCursor"];
            /**
             * Format: date-time
             * @description The list has no `from` and begins here; what happened before was archived. Absent if nothing was.
             */
            archived_before?: string;
        };
        /** @description What one request did. */
        Operation: {
            /** @description The id of the operation. */
            operation_id: string;
            tenant: components["schemas"]["Id"];
            kind: components["schemas"]["EntryKind"];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /** @description Its lines in the journal. */
            entries: components["schemas"]["Entry"][];
        };
        /** @description A period of a meter, past or to come. */
        Period: {
            /**
             * Format: date-time
             * @description Inclusive.
             */
            start: string;
            /**
             * Format: date-time
             * @description Exclusive; null if the period has no end.
             */
            end: string | null;
            /** @description The same instant in the tenant's time zone. */
            local_start: string;
            /** @description The end in the tenant's time zone. */
            local_end: string | null;
            allowance: components["schemas"]["Count"];
        };
        /** @description The coming periods. */
        PeriodList: {
            /** @description The page. */
            items: components["schemas"]["Period"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Units to reserve. */
        HoldRequest: {
            tenant: components["schemas"]["Id"];
            hold_id: components["schemas"]["Id"];
            items: components["schemas"]["Items"];
            subject?: components["schemas"]["Subject"];
            ttl_seconds?: components["schemas"]["TtlSeconds"];
            metadata?: components["schemas"]["Metadata"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /**
         * Format: int64
         * @description Seconds from now; an hour by default, a day at most.
         */
        TtlSeconds: number;
        /** @description What to use of a hold. */
        CaptureRequest: {
            tenant: components["schemas"]["Id"];
            items?: components["schemas"]["Items"];
            /** @description Release the rest of the hold. A capture without items leaves no rest. */
            final?: boolean;
            on_expired?: components["schemas"]["OnExpired"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description A hold to give back. */
        ReleaseRequest: {
            tenant: components["schemas"]["Id"];
            on_expired?: components["schemas"]["OnExpired"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description How much longer a hold lasts. */
        ExtendRequest: {
            tenant: components["schemas"]["Id"];
            ttl_seconds: components["schemas"]["TtlSeconds"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /**
         * @description What happens to units whose grant has ended. `forfeit`, the default: they expire at once. `regrant`: they are granted again, until the end of the period if they were part of an allowance, without an end otherwise.
         * @enum {string}
         */
        OnExpired: "forfeit" | "regrant";
        /** @description A hold after a change. */
        HoldAnswer: {
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            hold_id: components["schemas"]["Id"];
            tenant: components["schemas"]["Id"];
            status: components["schemas"]["HoldStatus"];
            /** @description The reserved amounts. */
            items: components["schemas"]["HeldItem"][];
            /**
             * Format: date-time
             * @description When it expires unless it is captured or released.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /**
         * @description A hold that was captured in part and then released counts as captured. One that was captured in part and then expired counts as expired.
         * @enum {string}
         */
        HoldStatus: "active" | "captured" | "released" | "expired";
        /** @description A page of holds. */
        HoldList: {
            /** @description The page. */
            items: components["schemas"]["Hold"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Units that are reserved. */
        Hold: {
            hold_id: components["schemas"]["Id"];
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            status: components["schemas"]["HoldStatus"];
            /** @description The reserved amounts. */
            items: components["schemas"]["HoldPart"][];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it expires unless it is captured or released.
             */
            expires_at: string;
        };
        /** @description What a hold has of a meter. */
        HoldPart: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The reserved amount.
             */
            amount: number;
            /**
             * Format: int64
             * @description The used amount; above `amount` if a capture exceeded the hold.
             */
            captured: number;
            /**
             * Format: int64
             * @description The amount that is still reserved.
             */
            held: number;
        };
        /** @description What a hold has of a meter after a change. */
        HeldItem: {
            meter: components["schemas"]["Id"];
            amount: components["schemas"]["Amount"];
            captured: components["schemas"]["Count"];
            held: components["schemas"]["Count"];
            /** @description The draws of this capture; for other operations, the draws of the held units. */
            draws: components["schemas"]["Draw"][];
            remaining: components["schemas"]["Count"];
        };
        /** @description An operation to take back, whole or in part. */
        RefundRequest: {
            tenant: components["schemas"]["Id"];
            /** @description The idempotency key of the debit or capture. */
            operation_id: string;
            /**
             * Format: date-time
             * @description Of several operations with this id, the newest at or before this instant is refunded; by default the newest. A key that is used again after its memory has ended names another operation.
             */
            at?: string;
            /**
             * Format: int64
             * @description In the units of the item; by default everything that was not refunded yet.
             */
            amount?: number;
            /** @description The item to refund; all by default. Required with `amount` if the operation has several. */
            meter?: string;
            on_expired?: components["schemas"]["OnExpired"];
            reason?: components["schemas"]["Reason"];
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description The reason, for the records. At most 500 bytes of UTF-8. */
        Reason: string;
        /** @description What was refunded. */
        RefundAnswer: {
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            /** @description The operation that was refunded. */
            refund_of: string;
            /**
             * Format: date-time
             * @description When the refunded operation was made; absent in replays of answers of earlier versions.
             */
            refund_of_at?: string;
            tenant: components["schemas"]["Id"];
            /** @description What was refunded, by item. */
            items: components["schemas"]["RefundedItem"][];
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description What was refunded of an item. */
        RefundedItem: {
            meter: components["schemas"]["Id"];
            refunded: components["schemas"]["Amount"];
            /** @description The grants that got the units. */
            draws: components["schemas"]["Draw"][];
            /**
             * Format: int64
             * @description The part of the draws that expired at once because its grant had ended.
             */
            forfeited: number;
            remaining: components["schemas"]["Count"];
        };
        /** @description Why a grant is taken back. */
        VoidRequest: {
            reason: components["schemas"]["Reason"];
            /** @description Required only if several meters have a grant of this id. */
            meter?: string;
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description How long a grant is to last, and why. */
        GrantExtensionRequest: {
            /**
             * Format: date-time
             * @description No draws from this instant on; later than the grant's end. null for never.
             */
            expires_at: string | null;
            reason: components["schemas"]["Reason"];
            /** @description Required only if several meters have a grant of this id. */
            meter?: string;
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description A grant whose end was moved. */
        GrantExtension: {
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            tenant: components["schemas"]["Id"];
            meter: components["schemas"]["Id"];
            /** @description Empty for the tenant itself. */
            subject: string;
            /** @description The grant. */
            grant: string;
            /**
             * Format: int64
             * @description What can be drawn of the grant until its new end; of a pending grant, its amount.
             */
            units: number;
            /**
             * Format: int64
             * @description Units of the grant on hold. What comes back of them before the new end can be drawn again.
             */
            held: number;
            /**
             * Format: date-time
             * @description The end before.
             */
            previous_expires_at: string;
            /**
             * Format: date-time
             * @description The end after; null for never.
             */
            expires_at: string | null;
            /**
             * Format: int64
             * @description Remaining of the balance, which an extension does not change.
             */
            remaining: number;
            /**
             * Format: int64
             * @description The number of the balance's newest entry after the change.
             */
            seq: number;
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
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
            /** @description The subject of the balance; the tenant's own balance by default. */
            subject?: string;
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description A balance before and after a change. */
        ChangeAnswer: {
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            tenant: components["schemas"]["Id"];
            meter: components["schemas"]["Id"];
            /** @description Empty for the tenant itself. */
            subject: string;
            /** @description The grant that was voided, or issued by an adjustment. */
            grant?: string;
            /**
             * Format: int64
             * @description The change of remaining.
             */
            amount: number;
            /**
             * Format: int64
             * @description Remaining before the change.
             */
            before: number;
            /**
             * Format: int64
             * @description Remaining after the change.
             */
            remaining: number;
            /**
             * Format: int64
             * @description The number of the balance's newest entry after the change.
             */
            seq: number;
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description The account of a period. It adds up: opening + granted + refunded - used - expired + adjusted = closing. */
        Statement: {
            tenant: components["schemas"]["Id"];
            meter: components["schemas"]["Id"];
            /** @description Empty for the tenant itself. */
            subject: string;
            /** @description The plan of the period; absent if it lacks the meter. */
            plan?: string;
            /**
             * Format: int32
             * @description The version of that plan.
             */
            plan_version?: number;
            period: components["schemas"]["BalancePeriod"];
            /** @description False while the period is open; the figures are then those of as_of. */
            closed: boolean;
            opening: components["schemas"]["Count"];
            granted: components["schemas"]["Count"];
            refunded: components["schemas"]["Count"];
            used: components["schemas"]["Count"];
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
             * @description Use that no grant paid. Not part of the sum.
             */
            overage: number;
            /** @description The sums of entries, per kind and source of grants. */
            lines: components["schemas"]["StatementLine"][];
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
        };
        /** @description A statement without its lines. */
        StatementSummary: {
            meter: components["schemas"]["Id"];
            /** @description Empty for the tenant itself. */
            subject: string;
            /** @description The plan of the period; absent if it lacks the meter. */
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
            refunded: components["schemas"]["Count"];
            used: components["schemas"]["Count"];
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
            /** @description The page. */
            items: components["schemas"]["StatementSummary"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The sum of the entries of one kind and source. */
        StatementLine: {
            kind: components["schemas"]["EntryKind"];
            /** @description The source of the grants; empty if there is none. */
            source: string;
            amount: components["schemas"]["Sum"];
            /**
             * Format: int64
             * @description How many entries.
             */
            entries: number;
        };
        /** @description What was used in an hour, a day or a month. */
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
            /**
             * Format: int64
             * @description Refunds of both; the net use is used + overage - refunded. 2^63-1 stands for any larger sum.
             */
            refunded: number;
            /**
             * Format: int64
             * @description How many operations.
             */
            operations: number;
            /** @description With group_by. For example {"subject":"ann"} or {"model":"small"}. */
            group?: {
                [key: string]: string;
            };
        };
        /** @description Use by time, oldest first. */
        UsageList: {
            /** @description The page. */
            items: components["schemas"]["Usage"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A refused request, and why. */
        Denial: {
            /**
             * Format: date-time
             * @description When it was refused.
             */
            at: string;
            code: components["schemas"]["ProblemCode"];
            /** @description The meter that did not suffice or that the plan lacks, or the one that was asked for. Absent if several were, or none. */
            meter?: string;
            /** @description The limit that refused it; of several, the one that does so the longest. */
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
            /** @description X-Request-Id of the refusal, which the log has as well; empty where there is none, as for Envoy over gRPC. */
            request_id: string;
        };
        /** @description How many requests were refused in a minute for one reason. */
        DenialCount: {
            /**
             * Format: date-time
             * @description The start of the minute.
             */
            minute: string;
            code: components["schemas"]["ProblemCode"];
            /** @description As in Denial; `(other)`: many meters and limits in that minute are counted together. */
            meter?: string;
            /** @description As in Denial; `(other)`, as meter. */
            rule?: string;
            /**
             * Format: int64
             * @description How many.
             */
            n: number;
        };
        /** @description Why requests were refused. */
        DenialList: {
            /**
             * Format: date-time
             * @description The start of the time that was asked about.
             */
            from: string;
            /**
             * Format: date-time
             * @description Its end.
             */
            to: string;
            /** @description The last denials with their explanation, newest first. */
            items: components["schemas"]["Denial"][];
            /** @description All denials by minute, newest first; 2,000 lines at most. */
            counts: components["schemas"]["DenialCount"][];
            /**
             * Format: date-time
             * @description Only if there are more lines: the minute from which on all are here. Ask for the time before it.
             */
            counts_from?: string;
        };
        /** @description Units to add. */
        GrantRequest: {
            meter: components["schemas"]["Id"];
            amount: components["schemas"]["Amount"];
            /**
             * @description Where the units come from. It decides their priority unless that is given.
             * @enum {string}
             */
            source: "topup" | "promo" | "adjustment";
            /** @description The subject of the balance, if the plan has a cap per subject; the tenant's own balance by default. */
            subject?: string;
            /** @description Unique in the balance; made from the key by default. Ids of the ledger's own grants are refused: they begin with `allowance:` or `rollover:`, or are `adjustment-` or `regrant-` and 16 hexadecimal digits. */
            grant_id?: string;
            /**
             * Format: int32
             * @description Lower burns first. The default is 10 for allowances, 50 for promos and 100 for others.
             */
            priority?: number;
            /**
             * Format: date-time
             * @description No draws before this instant; now by default and for a past instant.
             */
            effective_at?: string;
            /**
             * Format: date-time
             * @description No draws from this instant on; never by default.
             */
            expires_at?: string;
            /** @description The cost of a unit, for your own accounts. */
            cost_basis?: string;
            reason?: components["schemas"]["Reason"];
            /** @description Decide and change nothing. */
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
             * @description Lower burns first.
             */
            priority: number;
            /**
             * Format: date-time
             * @description No draws before this instant.
             */
            effective_at: string;
            /**
             * Format: date-time
             * @description null for never.
             */
            expires_at: string | null;
            /** @description The cost of a unit, for your own accounts. */
            cost_basis?: string;
            /** @description The reason that was given. */
            reason?: string;
            status: components["schemas"]["GrantStatus"];
            /** @description The id of the operation. */
            operation_id: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
        };
        /**
         * @description pending - takes effect later; active - has units; exhausted - has none; expired; voided - taken back.
         * @enum {string}
         */
        GrantStatus: "pending" | "active" | "exhausted" | "expired" | "voided";
        /** @description The grant, and the balance after it. */
        GrantAnswer: {
            tenant: components["schemas"]["Id"];
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
             * @description Lower burns first.
             */
            priority: number;
            /**
             * Format: date-time
             * @description No draws before this instant.
             */
            effective_at: string;
            /**
             * Format: date-time
             * @description null for never.
             */
            expires_at: string | null;
            /** @description The cost of a unit, for your own accounts. */
            cost_basis?: string;
            /** @description The reason that was given. */
            reason?: string;
            status: components["schemas"]["GrantStatus"];
            /** @description The idempotency key; `dry-run` on a dry run without one. */
            operation_id: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            balance: components["schemas"]["Position"];
            /**
             * Format: date-time
             * @description The instant that the answer is about.
             */
            as_of: string;
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description The balance after the grant. */
        Position: {
            remaining: components["schemas"]["Count"];
            limit: components["schemas"]["Count"];
            /**
             * Format: date-time
             * @description The end of the period; null if it has none.
             */
            reset_at: string | null;
        };
        /** @description A page of grants. */
        GrantList: {
            /** @description The page. */
            items: components["schemas"]["Grant"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description What is counted. */
        MeterRequest: {
            /** @description The unit of which amounts are integers. */
            unit: string;
            /** @description For people. */
            description?: string;
            /**
             * @description `counter` (the default) is drawn down by debits. `gauge` is set: seats. It cannot be changed while the meter is in use.
             * @enum {string}
             */
            kind?: "counter" | "gauge";
            /** @description Store a denial under its idempotency key and replay it, like a success. */
            denial_replay?: boolean;
            /** @description The members of the metadata of requests by which use can be divided (`group_by` of usage). Each once. */
            dimensions?: components["schemas"]["Id"][];
        };
        /** @description What is counted, in its smallest unit. */
        Meter: {
            meter: components["schemas"]["Id"];
            /** @description The unit of which amounts are integers. */
            unit: string;
            /** @description For people. */
            description: string;
            /**
             * @description Whether it is drawn down, or set.
             * @enum {string}
             */
            kind: "counter" | "gauge";
            /** @description Whether denials are stored and replayed. */
            denial_replay: boolean;
            /** @description The members of the metadata of requests by which use can be divided. */
            dimensions?: components["schemas"]["Id"][];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at: string;
        };
        /** @description A page of meters. */
        MeterList: {
            /** @description The page. */
            items: components["schemas"]["Meter"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description What tenants of the plan may use. Each PUT makes a new version. */
        PlanRequest: {
            /** @description Each meter once. */
            allowances: components["schemas"]["Allowance"][];
            /** @description Rate limits for the tenants of this plan, each rule once. They replace the global limits of the same rule. */
            limits?: components["schemas"]["PlanLimit"][];
            features?: components["schemas"]["Features"];
        };
        /** @description A feature that the plan must grant, beside the items or instead of them. If it does not, the code is `feature_not_in_plan`, and nothing else is asked. */
        Feature: string;
        /** @description Features by name. One that is false or 0, or is not here, is not granted. */
        Features: {
            [key: string]: components["schemas"]["FeatureValue"];
        };
        /** @description A switch, or a bound such as the size of an upload. */
        FeatureValue: boolean | number;
        /** @description The tenant's own features to set; null removes one, so that the plan's holds again. */
        FeaturePatch: {
            [key: string]: boolean | number | null;
        };
        /** @description The value, or what to add to it; one of the two. */
        GaugeRequest: {
            /**
             * Format: int64
             * @description The new value.
             */
            value?: number;
            /**
             * Format: int64
             * @description What to add; below 0, to take away.
             */
            delta?: number;
            /** @description Decide and change nothing. */
            dry_run?: boolean;
        };
        /** @description A value that is set, not drawn down. No period and no plan changes it. */
        Gauge: {
            meter: components["schemas"]["Id"];
            /** @description Whose it is; empty for the tenant's own. */
            subject: string;
            value: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description The plan's amount, or the tenant's override.
             */
            limit: number;
            /**
             * Format: int64
             * @description By how much the value may rise.
             */
            remaining: number;
            /**
             * Format: int64
             * @description How far the value is above the limit, which fell. It can only fall then.
             */
            over: number;
            /**
             * Format: int64
             * @description The value before this change.
             */
            before?: number;
            /**
             * Format: date-time
             * @description When it was changed last; absent if never.
             */
            changed_at?: string;
            /** @description Nothing was changed. */
            dry_run?: boolean;
        };
        /** @description A page of gauges. */
        GaugeList: {
            /** @description In order of meters, then of subjects; the tenant's own gauge is the first of its meter. */
            items: components["schemas"]["Gauge"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A change of a gauge. */
        GaugeEntry: {
            /**
             * Format: int64
             * @description Its number within the gauge, from 1 without gaps.
             */
            seq: number;
            /** @description The Idempotency-Key. */
            operation_id: string;
            before: components["schemas"]["Count"];
            after: components["schemas"]["Count"];
            /**
             * Format: int64
             * @description What was allowed at that moment.
             */
            limit: number;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /** @description The id of the key with which it was asked for. */
            actor: string;
        };
        /** @description A page of entries. */
        GaugeEntryList: {
            /** @description Newest first. */
            items: components["schemas"]["GaugeEntry"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description What a tenant has besides what is counted. */
        TenantFeatures: {
            tenant: components["schemas"]["Id"];
            plan: components["schemas"]["Id"];
            features: components["schemas"]["Features"];
            /** @description The names of those that are the tenant's own, in order. */
            overridden: components["schemas"]["Id"][];
        };
        /** @description What a plan grants of a meter per period. */
        Allowance: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The units of each period; 0 for a meter that only grants pay for.
             */
            amount: number;
            /**
             * @description How often it is granted. Absent, as `anchor`, for a gauge, which has no periods.
             * @enum {string}
             */
            every?: "hour" | "day" | "week" | "month" | "year" | "once";
            /**
             * @description `calendar`: periods begin with those of the calendar in the tenant's zone. `tenant`: they begin at the tenant's anchor instant and after each interval, on the last day of a month that is too short.
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
             * @description A trial: how long the units last after they are granted, in days of 24 hours; for ever by default. Only if `every` is `once`.
             */
            expires_in_days?: number;
            /**
             * @description The percentages of what can be used in the period at which `balance.threshold_reached` is told, in order; 80 and 100 by default, none with an empty list. The balances of subjects are told only where it is given.
             * @example [
             *       50,
             *       80,
             *       100
             *     ]
             */
            alert_at?: number[];
        };
        /** @description How much of the remainder of a period the next one gets: all, but at least `min` and at most `max`. By default the remainder expires. Not if `every` is `once`, which has no next period. */
        Rollover: {
            /**
             * Format: int64
             * @description The least that is carried, if that much is left; 0 by default.
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
             * @description The most overage that may be owed at a time, only with `allow`; no cap by default.
             */
            cap?: number;
            /**
             * @description What happens to the overage of a period, drains included. `forgive`, the default: the next period begins without it. `preserve`: it stays owed, and the next allowance pays it first. Not if `every` is `once`.
             * @enum {string}
             */
            at_period_end?: "forgive" | "preserve";
        };
        /** @description The meter that pays after this one is used up, before overage. It must be a different meter of which this plan has an allowance, of 0 if only grants pay, without an overflow. */
        Overflow: {
            meter: components["schemas"]["Id"];
            price: components["schemas"]["Price"];
        };
        /** @description What units cost in units of the meter that pays: an integer for each one, or `units` for `per` of them. One credit for 1,000 tokens is `{"units": 1, "per": 1000}`. The cost of each item of a debit is rounded up to a whole unit. */
        Price: components["schemas"]["Amount"] | components["schemas"]["PriceRatio"];
        /** @description A price that is no whole number. Answers have an integer if `per` is 1. */
        PriceRatio: {
            units: components["schemas"]["Amount"];
            per: components["schemas"]["Amount"];
        };
        /** @description A version of a plan. */
        Plan: {
            plan: components["schemas"]["Id"];
            /**
             * Format: int32
             * @description 1 at first, one more with every change.
             */
            version: number;
            features?: components["schemas"]["Features"];
            /** @description Only in the answer to `PUT`: sentences about whom this version gives less of what, as those of `POST /v1/catalog`, such as `plan free: feature sso is lost by 31 tenants`. Absent if nobody gets less. */
            warnings?: string[];
            /** @description Each meter once. */
            allowances: components["schemas"]["Allowance"][];
            /** @description Rate limits for the tenants of this plan. */
            limits: components["schemas"]["PlanLimit"][];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
        };
        /** @description A page of plans. */
        PlanList: {
            /** @description The page. */
            items: components["schemas"]["Plan"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A tenant as it shall be. */
        TenantRequest: {
            plan: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description The start of tenant-anchored periods; by default the instant of the tenant's creation.
             */
            anchor?: string;
            /** @description An IANA zone; UTC by default. */
            timezone?: string;
            status?: components["schemas"]["TenantStatus"];
            metadata?: components["schemas"]["Metadata"];
            overrides?: components["schemas"]["Overrides"];
            features?: components["schemas"]["Features"];
        };
        /** @description Amounts that this tenant gets per period instead of those of its plan, by meter. The plan must have the meters. A once-only allowance is granted with the plan, so a later override of it has no effect until terms apply now. */
        Overrides: {
            [key: string]: components["schemas"]["OverrideAmount"];
        };
        /**
         * Format: int64
         * @description Units per period.
         */
        OverrideAmount: number;
        /** @description New amounts of these meters; null restores the amount of the plan. Other overrides stay. */
        OverridePatch: {
            [key: string]: number | null;
        };
        /** @description `apply` and `prorate` require `plan`, `anchor`, `timezone` or `overrides`, which together are the terms of the tenant. `reason` requires one of them, or `status`. */
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
             * @description When new terms take effect: at the next period of each meter (the default), or now. Now ends the open periods that were opened under other terms. It also applies terms that wait for the next period, and a newer version of the plan. Paid grants never change. A repetition changes nothing.
             * @enum {string}
             */
            apply?: "now" | "next_period";
            /** @description Periods that apply now opens get their share of the allowance only, rounded down. */
            prorate?: boolean;
            /**
             * @description Requires apply now. With carry, the default, an allowance that the change opens is smaller by what was used of the allowances before, at least 0. With reset it is whole; a reset needs a reason.
             * @enum {string}
             */
            usage?: "carry" | "reset";
            overrides?: components["schemas"]["OverridePatch"];
            features?: components["schemas"]["FeaturePatch"];
            reason?: components["schemas"]["Reason"];
            /** @description Return what would become of the tenant, and change nothing. */
            dry_run?: boolean;
        };
        /**
         * @description Requests of a suspended tenant are refused with 403. It keeps its balances.
         * @enum {string}
         */
        TenantStatus: "active" | "suspended";
        /** @description The billed party. */
        Tenant: {
            tenant: components["schemas"]["Id"];
            plan: components["schemas"]["Id"];
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
            version: components["schemas"]["TenantVersion"];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at: string;
            standing?: components["schemas"]["Standing"];
        };
        /** @description Where a tenant stands; only in lists with `near`, `meter` or `sort=remaining`. The balance that is nearest its end, or of which least remains. */
        Standing: {
            meter: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Units used in the open period, net of refunds.
             */
            used: number;
            remaining: components["schemas"]["Count"];
            /** @description Used of used and remaining, rounded down. */
            percent: number;
        };
        /**
         * Format: int64
         * @description 1 at first, one more with every change. If-Match compares it.
         */
        TenantVersion: number;
        /** @description The stored tenant; after a dry run, what would be stored. */
        TenantChange: {
            tenant: components["schemas"]["Id"];
            plan: components["schemas"]["Id"];
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
            version: components["schemas"]["TenantVersion"];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at: string;
            before: components["schemas"]["Tenant"];
            /**
             * @description When the terms of the request take effect, the default included. `apply`, `prorate` and `usage` are absent when the request names no terms.
             * @enum {string}
             */
            apply?: "now" | "next_period";
            /** @description Whether periods that this change opens at once get their share of the allowance only. */
            prorate?: boolean;
            /**
             * @description Whether what was used before makes allowances that this change opens at once smaller.
             * @enum {string}
             */
            usage?: "carry" | "reset";
            /** @description Present and true when nothing was done. */
            dry_run?: boolean;
        };
        /** @description The terms of a tenant from an instant until its next terms. */
        Terms: {
            /**
             * Format: date-time
             * @description From when on they are in force.
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
             * @description Whether they took effect now, like the first terms, or at the next period of each meter.
             * @enum {string}
             */
            apply: "now" | "next_period";
            /** @description Whether periods that they opened at once got their share of the allowance only. */
            prorate: boolean;
            /**
             * @description Whether allowances that they opened at once were smaller by what was used before. Terms from before version 1.1 of this API say reset.
             * @enum {string}
             */
            usage: "carry" | "reset";
            reason?: components["schemas"]["Reason"];
        };
        /** @description A page of terms. */
        TermsList: {
            /** @description The page. */
            items: components["schemas"]["Terms"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A page of tenants. */
        TenantList: {
            /** @description The page. */
            items: components["schemas"]["Tenant"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A rate limit as it shall be. */
        LimitRequest: {
            /** @description Each combination of these has a bucket. Without tenant and subject all tenants share the buckets. `global` must be alone and is one bucket. */
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
            /** @description Each combination of these has a bucket. It must include tenant or subject: limits of a plan are not shared by tenants. */
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
         * @description What has a bucket of its own.
         * @enum {string}
         */
        LimitPer: "tenant" | "subject" | "route" | "ip" | "global";
        /**
         * @description `token_bucket` refills continuously. `fixed_window` counts per period of the calendar. `sliding_window` counts back from now, with a weighted estimate. `sliding_log` counts back from now exactly, for small counts. `leaky_bucket` spaces requests: admitted requests wait for their turn. `concurrency` limits leases; check and consume do not use it.
         * @enum {string}
         */
        LimitKind: "token_bucket" | "fixed_window" | "sliding_window" | "sliding_log" | "leaky_bucket" | "concurrency";
        /** @description Tokens per request on some routes; the most specific matching pattern counts. */
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
         * @description `amount` takes the cost for each unit of `match.meter`, which it requires. `request` by default.
         * @enum {string}
         */
        LimitCostBy: "request" | "amount";
        /** @description The rule that this one replaces: where both apply, only this one counts. Of several the most specific counts: of a tenant, of a plan, by the precedence of routes, of a meter, by id. */
        LimitReplaces: string;
        /** @description The IANA zone of a fixed window's calendar, or `tenant` for the zone of each tenant; UTC by default. */
        LimitTimezone: string;
        /**
         * Format: int64
         * @description The percentage of rate and burst that the Redis of this region has; 100 by default.
         */
        LimitRegionShare: number;
        /**
         * @description `shadow` counts what it would deny and denies nothing. `enforce` by default.
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
         * @description How many tokens a charge after the fact may take beyond what is left; 0 by default. While a bucket owes tokens, nothing passes. Together with the capacity it has the capacity's bound. Not for leases.
         */
        LimitDebt: number;
        /** @description After so many denials by a bucket, all of them less than `within` old, the bucket denies everything for the time `for`. The denial that completes the number begins the ban. Denials while it lasts do not count, nor do checks. Times are as in 90s, 10m or 24h, 1ms to 8784h. Absent: no ban. Not for leases. */
        LimitBan: {
            /**
             * Format: int64
             * @description How many denials.
             */
            after: number;
            /** @description How old they may be. */
            within: string;
            /** @description How long the ban lasts. */
            for: string;
        };
        /**
         * @description `attempts`: every request costs tokens, also one that is refused afterwards, unknown or a replay. `successes`: only a request that was granted. `attempts` by default if the limit is per ip, per route without tenant, or closed while Redis is down.
         * @enum {string}
         */
        LimitCounts: "attempts" | "successes";
        /**
         * @description Of a limit per route: `pattern` has one bucket for all routes that match `match.route`, `path` one for each route. `pattern` by default; without `match.route` each route has its own bucket.
         * @enum {string}
         */
        LimitRouteKey: "pattern" | "path";
        /** @description Spellings that count as one route: `case`: upper and lower case; `trailing_slash`: with and without slashes, blanks and control characters at the end; `matrix`: with and without parameters after a semicolon; `encoded_slash`: %2f and a slash. Absent: all of them for requests of gateways, none for others. An empty list: none. */
        LimitNormalize: ("case" | "trailing_slash" | "matrix" | "encoded_slash")[];
        /** @description Bits of an address that name a bucket of a limit per ip; 32 and 64 by default. */
        LimitIPPrefix: {
            /**
             * Format: int64
             * @description Of IPv4 addresses.
             */
            v4?: number;
            /**
             * Format: int64
             * @description Of IPv6 addresses.
             */
            v6?: number;
        };
        /** @description The limit applies to requests that match all of these; to every request by default. */
        LimitMatch: {
            /** @description The HTTP method, in upper case. The limit does not apply to a request without a method. */
            method?: string;
            route?: components["schemas"]["RoutePattern"];
            meter?: components["schemas"]["Id"];
            plan?: components["schemas"]["Id"];
            tenant?: components["schemas"]["Id"];
        };
        /** @description A rate limit. */
        Limit: {
            rule: components["schemas"]["Id"];
            /** @description What has a bucket of its own. */
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
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at: string;
        };
        /** @description A page of limits. */
        LimitList: {
            /** @description The page. */
            items: components["schemas"]["Limit"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Other numbers of a limit. */
        LimitOverrideRequest: {
            /** @description Instead of the limit's rate. Required; absent for kind concurrency. */
            rate?: string;
            /**
             * Format: int64
             * @description Instead of the limit's burst; the count of the rate by default. Required for kind concurrency.
             */
            burst?: number;
            /**
             * Format: date-time
             * @description When it expires; never by default.
             */
            expires_at?: string;
        };
        /** @description Other numbers of a limit, for a tenant or a subject. */
        LimitOverride: {
            /** @description The limit. */
            rule: string;
            /** @description The tenant. */
            tenant: string;
            /** @description Absent for the override of all subjects. */
            subject?: string;
            /** @description Instead of the rate of the limit. */
            rate?: string;
            /**
             * Format: int64
             * @description Instead of the burst of the limit.
             */
            burst?: number;
            /**
             * Format: date-time
             * @description When it ends; absent if never.
             */
            expires_at?: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at: string;
        };
        /** @description A page of overrides. */
        LimitOverrideList: {
            /** @description The page. */
            items: components["schemas"]["LimitOverride"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description An explanation of the limit, with `explain=1`. */
        LimitExplanation: {
            /** @description The limit in words. */
            summary: string;
            /**
             * Format: int64
             * @description What passes at once through an unused bucket; for kind concurrency, the number of leases.
             */
            capacity: number;
            /**
             * Format: int64
             * @description For token and leaky buckets, their internal units per token.
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
             * @description The most tokens that pass in any interval as long as the rate's period.
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
                 * @description Inclusive.
                 */
                start: string;
                /**
                 * Format: date-time
                 * @description Exclusive.
                 */
                end: string;
            };
            /** @description The override whose numbers these are, with the tenant and the subject of the query. */
            override?: components["schemas"]["LimitOverride"];
            /** @description What happens while Redis is down. */
            redis_away: {
                on_backend_error: components["schemas"]["OnBackendError"];
                /**
                 * Format: int64
                 * @description The number of instances that share the limit then, as this one counts them.
                 */
                replicas: number;
                /**
                 * Format: int64
                 * @description For local_share, the number of instances that hold a share of a bucket: all, unless they are more than its tokens. Which ones differs by bucket; the others deny.
                 */
                holders?: number;
                /**
                 * Format: int64
                 * @description For local_share, the smallest capacity of a holder; together they have all of it.
                 */
                capacity_each?: number;
                /**
                 * Format: double
                 * @description For local_share, the tokens per second of each holder.
                 */
                per_second_each?: number;
            };
        };
        /** @description How full a bucket is. */
        LimitState: {
            rule: components["schemas"]["Id"];
            kind: components["schemas"]["LimitKind"];
            /**
             * Format: int64
             * @description Whole tokens, or free leases.
             */
            remaining: number;
            /**
             * Format: int64
             * @description Whole tokens below zero; absent if there are none. They come back before the first one remains.
             */
            owed?: number;
            /**
             * Format: int64
             * @description What a full bucket holds.
             */
            limit: number;
            /**
             * Format: int64
             * @description The time until one more token is available; 0 if the bucket is full, and for leases.
             */
            next_after_ms: number;
            /**
             * Format: int64
             * @description The time until the bucket is full; 0 if it is, and for leases.
             */
            reset_after_ms: number;
            /**
             * Format: int64
             * @description The time until the bucket's ban ends; absent if it is not banned.
             */
            banned_ms?: number;
            /** @description Redis is down; this is what the instance knows of its own share. */
            degraded?: boolean;
        };
        /** @description The fullest buckets of a limit. */
        LimitTop: {
            rule: components["schemas"]["Id"];
            /** @description The fullest first. */
            items: components["schemas"]["LimitTopItem"][];
            /** @description Not all buckets could be looked at within 3 s, or some moved between servers. There may be fuller ones. */
            incomplete?: boolean;
        };
        /** @description A bucket of a limit. */
        LimitTopItem: {
            /** @description Absent for a bucket that all tenants share. */
            tenant?: string;
            /** @description Absent if the limit is not per subject. */
            subject?: string;
            /** @description The limit's pattern, if one bucket is for all routes that match it. */
            route?: string;
            /** @description The address, or the network that counts as one caller. */
            ip?: string;
            /** @description For limits per subject, route or ip: the hash by which Redis knows them. It stays the same for the same subject, route and network. */
            bucket?: string;
            /**
             * Format: int64
             * @description Tokens that are missing to a full bucket, or leases that are held. More than the limit if the bucket owes, or if the limit was lowered.
             */
            used: number;
            /**
             * Format: int64
             * @description What a full bucket holds, by the numbers in force for the tenant.
             */
            limit: number;
        };
        /** @description What a limit in shadow mode would have denied. */
        LimitShadow: {
            rule: components["schemas"]["Id"];
            /** @description The last hour, day and week. */
            spans: components["schemas"]["LimitShadowSpan"][];
        };
        /** @description What the limit would have done in a time. */
        LimitShadowSpan: {
            /** @description The name of the time, `hour`, `day` (24 hours) or `week` (7 days). */
            span: string;
            /**
             * Format: date-time
             * @description Its start.
             */
            from: string;
            /**
             * Format: date-time
             * @description Its end; that of the present minute.
             */
            to: string;
            /**
             * Format: int64
             * @description Requests that were granted, and that the limit would have denied. So many more denials are to be expected if it is enforced.
             */
            would_deny: number;
            /**
             * Format: int64
             * @description The number of tenants whose requests they were.
             */
            tenants: number;
            /** @description The tenants with the most, the most first. */
            top: components["schemas"]["LimitShadowTenant"][];
            /**
             * Format: int64
             * @description Requests that were refused for another reason than a limit, an empty balance for one, and that it would have denied as well.
             */
            would_deny_refused: number;
            /** @description The enforced limits that denied requests which this limit decided as well. Those that denied the most come first. */
            limits: components["schemas"]["LimitShadowLimit"][];
        };
        /** @description A tenant of whose requests the limit would have denied the most. */
        LimitShadowTenant: {
            tenant: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Its granted requests that the limit would have denied.
             */
            would_deny: number;
        };
        /** @description An enforced limit that denied requests which the shadow limit decided as well. */
        LimitShadowLimit: {
            rule: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description The requests that it denied. If several limits denied one, it counts for the limit that asks for the longest wait.
             */
            denied: number;
            /**
             * Format: int64
             * @description Of these the shadow limit would have denied so many as well.
             */
            would_deny: number;
            /**
             * Format: int64
             * @description The others, which would pass if the shadow limit replaced this one.
             */
            would_pass: number;
        };
        /** @description The bucket to empty. */
        ResetRequest: {
            tenant?: components["schemas"]["Id"];
            subject?: components["schemas"]["Subject"];
            route?: components["schemas"]["Route"];
            ip?: components["schemas"]["Ip"];
        };
        /** @description What came of a reset. */
        ResetAnswer: {
            rule: components["schemas"]["Id"];
            /** @description Whether the bucket had been charged. */
            existed: boolean;
        };
        /**
         * @description What is blocked or exempt.
         * @enum {string}
         */
        BlockKind: "tenant" | "subject" | "ip";
        /**
         * @description `block` refuses every check and consume with `forbidden`. `allow` exempts from rate limits; balances still count. A block takes precedence over an allow of another kind. Of the prefixes that contain an address, the longest counts. `block` by default.
         * @enum {string}
         */
        BlockAction: "block" | "allow";
        /** @description A block as it shall be. */
        BlockRequest: {
            action?: components["schemas"]["BlockAction"];
            /** @description The tenant of the subject; required for kind subject, and absent for others. */
            tenant?: string;
            /**
             * Format: date-time
             * @description When it expires; never by default.
             */
            expires_at?: string;
            /** @description Refused clients see it. */
            reason?: string;
        };
        /** @description A block of a prefix as it shall be. */
        BlockPrefixRequest: {
            action?: components["schemas"]["BlockAction"];
            /**
             * Format: date-time
             * @description When it expires; never by default.
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
             * @description When it ends; absent if never.
             */
            expires_at?: string;
            /** @description The reason that was given. */
            reason?: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last changed.
             */
            updated_at: string;
        };
        /** @description A page of blocks. */
        BlockList: {
            /** @description The page. */
            items: components["schemas"]["Block"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description Which periods to close. */
        RollRequest: {
            /**
             * Format: date-time
             * @description Close what was due at this instant, which must not be in the future; now by default.
             */
            as_of?: string;
        };
        /** @description Closes due periods of balances that nobody uses. */
        Roll: {
            roll_id: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description What was due at this instant is closed.
             */
            as_of: string;
            /**
             * @description The process of an abandoned roll has died. Another roll continues where it stopped.
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
             * Format: int64
             * @description The balances that could not be written. The service's log names each. They stay due for the next roll.
             */
            set_aside: number;
            /** @description Why it failed. */
            error?: string;
            /**
             * Format: date-time
             * @description When it started.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When it ended; null while it runs.
             */
            finished_at: string | null;
        };
        /** @description How the service is. */
        ServiceStatus: {
            /**
             * Format: date-time
             * @description The ledger's time.
             */
            at: string;
            /**
             * Format: date-time
             * @description When the instance that answers was started.
             */
            started_at: string;
            requests: components["schemas"]["StatusRequests"];
            /** @description What does not work as it should on this instance. Empty means that everything does. */
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
             * @description From when on they are counted.
             */
            from: string;
            /**
             * Format: int64
             * @description All of them.
             */
            answered: number;
            /**
             * Format: int64
             * @description Those that were answered with 402, 403 or 429.
             */
            refused: number;
            /**
             * Format: int64
             * @description Those that were answered with 500 or above.
             */
            failed: number;
        };
        /** @description A part that does not work as it should. */
        StatusFault: {
            /**
             * @description Which one, as /readyz names it.
             * @example redis
             */
            part: string;
            /** @description What is wrong. */
            reason: string;
        };
        /** @description The requests that all instances have refused, as the tenants' denials count them. */
        StatusRefusals: {
            /**
             * Format: date-time
             * @description The first minute that is counted.
             */
            from: string;
            /**
             * Format: date-time
             * @description The end of the last one.
             */
            to: string;
            /**
             * Format: int64
             * @description How many they are.
             */
            total: number;
            /** @description Those of each minute, oldest first; a minute without any is not listed. */
            minutes: components["schemas"]["RefusedMinute"][];
            /** @description The ten tenants with the most of them, the most first. */
            tenants: components["schemas"]["RefusedTenant"][];
        };
        /** @description A minute with refusals. */
        RefusedMinute: {
            /**
             * Format: date-time
             * @description Its begin.
             */
            minute: string;
            /**
             * Format: int64
             * @description How many requests were refused.
             */
            n: number;
        };
        /** @description A tenant of those that are refused most. */
        RefusedTenant: {
            tenant: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description How many of its requests were refused.
             */
            n: number;
            /**
             * @description The code of most of them.
             * @example quota_exceeded
             */
            code: string;
        };
        /** @description The verification that was started last by a client; the continuous one of each instance is in its metrics. */
        LastVerification: {
            verification_id: components["schemas"]["Id"];
            tenant?: components["schemas"]["Id"];
            /**
             * @description As that of a verification.
             * @enum {string}
             */
            status: "running" | "clean" | "drift" | "failed" | "abandoned";
            /**
             * Format: date-time
             * @description When it started.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When it ended; null while it runs.
             */
            finished_at: string | null;
        };
        /** @description The roll that was started last. */
        LastRoll: {
            roll_id: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description What was due at this instant is closed.
             */
            as_of: string;
            /**
             * @description As that of a roll.
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
             * @description When it started.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When it ended; null while it runs.
             */
            finished_at: string | null;
        };
        /** @description The newest sealed day. */
        LastSeal: {
            /**
             * @description In UTC.
             * @example 2026-11-22
             */
            day: string;
            /**
             * Format: int64
             * @description In the log of seals, from 0.
             */
            position: number;
            /**
             * Format: int64
             * @description Balances that had new entries.
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
             * @description When it was removed from PostgreSQL; null while it is.
             */
            removed_at: string | null;
        };
        /** @description What to verify. */
        VerificationRequest: {
            /** @description Verify this tenant only; all tenants by default. */
            tenant?: string;
        };
        /** @description Compares the journal with everything that is derived from it. */
        Verification: {
            verification_id: components["schemas"]["Id"];
            tenant?: components["schemas"]["Id"];
            /**
             * @description `clean`: everything was read, and there are no differences. `drift`: there are differences. `failed`: it could not finish, or could not read everything; see `error`. `abandoned`: its process has died; start another.
             * @enum {string}
             */
            status: "running" | "clean" | "drift" | "failed" | "abandoned";
            /**
             * Format: int64
             * @description The balances that were compared so far.
             */
            balances: number;
            /**
             * Format: int64
             * @description The entries that were read so far.
             */
            entries: number;
            /**
             * Format: int64
             * @description The grants that were compared so far.
             */
            grants: number;
            /**
             * Format: int64
             * @description The periods that were compared so far.
             */
            periods: number;
            /** @description Only what was entered since the last clean verification was read. */
            incremental: boolean;
            /**
             * Format: int64
             * @description Those of the balances that were not read, because nothing of them has changed since the last clean verification.
             */
            unchanged: number;
            /**
             * Format: int64
             * @description The cached copies that were compared.
             */
            copies: number;
            /** @description Whether cached copies were compared; false without Redis. */
            copies_compared: boolean;
            /**
             * Format: int64
             * @description The copies that are older than their balance and will be renewed. They are no differences.
             */
            stale_copies: number;
            /**
             * Format: int64
             * @description Balances that could not be read, because of a time-out or a lock. They are neither clean nor different.
             */
            unread: number;
            /** @description The first 100 of them. */
            unread_balances: components["schemas"]["UnreadBalance"][];
            /** @description Sums over all balances, by meter: issued + refunded + adjusted = used + expired + remaining + held. 2^63-1 stands for any larger sum; the comparison is exact. */
            totals: components["schemas"]["VerifiedMeter"][];
            /**
             * Format: int64
             * @description How many differences there are.
             */
            difference_count: number;
            /** @description The first 100 differences. */
            differences: components["schemas"]["Difference"][];
            /** @description Why it failed. */
            error?: string;
            /**
             * Format: date-time
             * @description When it started.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When it ended; null while it runs.
             */
            finished_at: string | null;
        };
        /** @description A verification without its differences. Its numbers are those so far, while it runs. */
        VerificationSummary: {
            verification_id: components["schemas"]["Id"];
            tenant?: components["schemas"]["Id"];
            /**
             * @description As that of a verification.
             * @enum {string}
             */
            status: "running" | "clean" | "drift" | "failed" | "abandoned";
            /**
             * Format: int64
             * @description The balances that were compared.
             */
            balances: number;
            /**
             * Format: int64
             * @description The entries that were read.
             */
            entries: number;
            /** @description Only what was entered since the last clean verification was read. */
            incremental: boolean;
            /**
             * Format: int64
             * @description Balances that could not be read.
             */
            unread: number;
            /**
             * Format: int64
             * @description How many differences there are.
             */
            difference_count: number;
            /** @description Why it failed. */
            error?: string;
            /**
             * Format: date-time
             * @description When it started.
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When it ended; null while it runs.
             */
            finished_at: string | null;
        };
        /** @description A page of verifications. */
        VerificationList: {
            /** @description The page. */
            items: components["schemas"]["VerificationSummary"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A balance that could not be read. */
        UnreadBalance: {
            tenant: components["schemas"]["Id"];
            /** @description Absent: the refunds and holds of the tenant. */
            meter?: string;
            /** @description The subject; empty for the tenant itself. */
            subject?: string;
        };
        /** @description The sums of a meter. */
        VerifiedMeter: {
            /** @description Some balances could not be read. The sums lack them, and are not compared. */
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
             * @description The sum of corrections.
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
            /** @description The page. */
            items: components["schemas"]["SealSummary"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /**
         * @description What a key may do. `admin` includes both others.
         * @enum {string}
         */
        KeyScope: "use" | "read" | "admin";
        /** @description A key to make. */
        KeyRequest: {
            /** @description For people; shown in the audit log. */
            name: string;
            /** @description What it may do. */
            scopes: components["schemas"]["KeyScope"][];
            tenant?: components["schemas"]["Id"];
            /**
             * Format: date-time
             * @description In the future. Absent - never.
             */
            expires_at?: string;
        };
        /** @description How long the old secret works on. */
        KeyRotation: {
            /**
             * Format: int64
             * @description How much longer the secrets so far work.
             * @default 0
             */
            overlap_seconds?: number;
        };
        /** @description A key without its secret. */
        Key: {
            key_id: components["schemas"]["Id"];
            /** @description For people. */
            name: string;
            /** @description What it may do. */
            scopes: components["schemas"]["KeyScope"][];
            /** @description The only tenant that it reaches; null - all. */
            tenant: string | null;
            /**
             * @description The first characters of its newest secret.
             * @example qk_4jJx8aQm
             */
            prefix: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description null - never.
             */
            expires_at: string | null;
            /**
             * @description Only an active key works.
             * @enum {string}
             */
            status: "active" | "expired" | "revoked";
            /**
             * Format: date-time
             * @description A minute late if it was used on another instance; null - never used.
             */
            last_used_at: string | null;
        };
        /** @description A key with its secret, which is shown this once. */
        NewKey: {
            key_id: components["schemas"]["Id"];
            /** @description For people. */
            name: string;
            /** @description What it may do. */
            scopes: components["schemas"]["KeyScope"][];
            /** @description The only tenant that it reaches; null for all. */
            tenant: string | null;
            /** @description The first characters of the secret. */
            prefix: string;
            /** @description To be sent as `Authorization: Bearer <secret>`. */
            secret: string;
            /**
             * Format: date-time
             * @description When it was made.
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
            /** @description Whose page it is. No other tenant can be reached by the link. */
            tenant: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description How long it works; an hour by default.
             * @default 3600
             */
            expires_in_seconds?: number;
            /**
             * @description Where the page leads back to: http or https, without user and password. No link back by default.
             * @example https://app.example.com/billing
             */
            return_url?: string;
        };
        /** @description A link to the page of a tenant. It is shown this once. */
        PortalSession: {
            /**
             * @description The link. Its secret is exchanged for a cookie when it is opened, and does not stay in the address of the page.
             * @example https://quota.example.com/portal/pkz3q.../9x...
             */
            url: string;
            /**
             * Format: date-time
             * @description When it ends.
             */
            expires_at: string;
        };
        /** @description A page of keys. */
        KeyList: {
            /** @description The page. */
            items: components["schemas"]["Key"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A page of the audit log. */
        AuditList: {
            /** @description The page. */
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
             * @description The kind of object and what was done with it.
             * @example limit.put
             */
            action: string;
            object: components["schemas"]["AuditObject"];
            /** @description The object before; null - it did not exist. */
            before: unknown;
            /** @description The object after; null - it does not exist any more. */
            after: unknown;
            /** @description The reason that was given. */
            reason?: string;
            /** @description Empty for a command on the database. */
            request_id: string;
            /** @description The client's address. Empty for a command on the database. */
            ip: string;
        };
        /** @description Who made the change. */
        AuditActor: {
            /** @description Of the key; `bootstrap` for the one of the configuration, `command` for a command on the database. */
            key_id: string;
            /** @description The name of the key. */
            name: string;
        };
        /** @description What was changed. */
        AuditObject: {
            /**
             * @description The kind of object.
             * @example limit
             */
            kind: string;
            /** @description The id of the object. */
            id: string;
            /** @description The tenant that it belongs to; absent if none. */
            tenant?: string;
        };
        /**
         * @description Names an event. Ids sort as their events happened to be listed.
         * @example evt_1764104445123456
         */
        EventId: string;
        /**
         * @description What an event tells.
         * @enum {string}
         */
        EventType: "balance.threshold_reached" | "balance.exhausted" | "grant.created" | "grant.expiring" | "grant.expired" | "hold.expired" | "period.opened" | "plan.changed" | "tenant.suspended" | "limit.rejections_high" | "verify.drift";
        /** @description Something that happened. */
        Event: {
            event_id: components["schemas"]["EventId"];
            type: components["schemas"]["EventType"];
            /**
             * Format: date-time
             * @description When it happened.
             */
            at: string;
            /** @description The tenant that it is about; null if it is about none. */
            tenant: string | null;
            /** @description The meter that it is about; absent if none. */
            meter?: string;
            /** @description The subject that it is about; absent if it is about the tenant itself. */
            subject?: string;
            /** @description What the type tells; docs/events.md lists it. */
            data: {
                [key: string]: unknown;
            };
        };
        /** @description A page of events. */
        EventList: {
            /** @description The page. */
            items: components["schemas"]["Event"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description The sections of catalog.yaml. Objects are named by their keys. At most 10000 objects. */
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
            /** @description Blocks and exceptions from them. */
            blocks?: components["schemas"]["CatalogBlock"][];
            /** @description Decide and change nothing. The answer is what would be changed now. */
            dry_run?: boolean;
            /** @description Delete the meters, limits and blocks that are not named, each only if the document has its section. A meter in use stays, with a warning. Plans and tenants are never deleted. */
            prune?: boolean;
        };
        /** @description A block in a catalogue. */
        CatalogBlock: {
            kind: components["schemas"]["BlockKind"];
            /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24. */
            value: string;
            tenant?: components["schemas"]["Id"];
            action?: components["schemas"]["BlockAction"];
            /**
             * Format: date-time
             * @description When it ends; absent - never.
             */
            expires_at?: string;
            /** @description Why. */
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
            /** @description Blocks and exceptions from them. */
            blocks: Record<string, never>[];
        };
        /** @description What was changed, or would be. */
        CatalogDiff: {
            /** @description Nothing was changed. */
            dry_run: boolean;
            /** @description All objects but the unchanged ones, by kind. */
            changes: components["schemas"]["CatalogChange"][];
            counts: components["schemas"]["CatalogCounts"];
            /** @description Sentences about changes that may be meant otherwise, such as which tenants get less of what. */
            warnings: string[];
            /** @description More tenants than `changes` has are not in the document. */
            more_tenants: boolean;
            /** @description More blocks than `changes` has are not in the document. */
            more_blocks: boolean;
        };
        /** @description How many objects. */
        CatalogCounts: {
            /**
             * Format: int64
             * @description New ones.
             */
            created: number;
            /**
             * Format: int64
             * @description Those that differ.
             */
            changed: number;
            /**
             * Format: int64
             * @description Those that are as the document says.
             */
            unchanged: number;
            /**
             * Format: int64
             * @description Those that `prune` deleted.
             */
            deleted: number;
            /**
             * Format: int64
             * @description Those that are not in the document and stay.
             */
            unlisted: number;
        };
        /** @description What happened to one object. */
        CatalogChange: {
            /**
             * @description The kind of the object.
             * @example plan
             */
            kind: string;
            /** @description Its id; of a block, its kind, tenant and value. */
            id: string;
            /**
             * @description What was done. Of an `unlisted` object, nothing.
             * @enum {string}
             */
            action: "created" | "changed" | "deleted" | "unlisted";
            /** @description All fields of a created object; the fields that differ of a changed one. */
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
         * @description A paused webhook is told nothing.
         * @enum {string}
         */
        WebhookStatus: "active" | "paused";
        /** @description A new webhook. */
        WebhookRequest: {
            /**
             * @description Where events are told: http or https, without user, password and fragment. No redirect is followed.
             * @example https://example.com/hooks
             */
            url: string;
            /** @description What is told. */
            types: components["schemas"]["EventType"][];
            /** @description The only tenant whose events are told; all by default. */
            tenant?: components["schemas"]["Id"];
            status?: components["schemas"]["WebhookStatus"];
        };
        /** @description What is to change of a webhook. */
        WebhookPatch: {
            /**
             * @description Where events are told: http or https, without user, password and fragment. No redirect is followed.
             * @example https://example.com/hooks
             */
            url?: string;
            /** @description What is told. */
            types?: components["schemas"]["EventType"][];
            status?: components["schemas"]["WebhookStatus"];
        };
        /** @description A webhook without its secret. */
        WebhookEndpoint: {
            webhook_id: components["schemas"]["Id"];
            /** @description Where events are told. */
            url: string;
            /** @description What is told. */
            types: components["schemas"]["EventType"][];
            /** @description The only tenant whose events are told; null for all. */
            tenant: string | null;
            status: components["schemas"]["WebhookStatus"];
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last changed.
             */
            updated_at: string;
        };
        /** @description A webhook with its secret, which is shown this once. */
        NewWebhookEndpoint: {
            webhook_id: components["schemas"]["Id"];
            /** @description Where events are told. */
            url: string;
            /** @description What is told. */
            types: components["schemas"]["EventType"][];
            /** @description The only tenant whose events are told; null for all. */
            tenant: string | null;
            status: components["schemas"]["WebhookStatus"];
            /** @description Verifies deliveries: `whsec_` and base64. */
            secret: string;
            /**
             * Format: date-time
             * @description When it was made.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last changed.
             */
            updated_at: string;
        };
        /** @description A page of webhooks. */
        WebhookEndpointList: {
            /** @description The page. */
            items: components["schemas"]["WebhookEndpoint"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description How a test call went. */
        WebhookTest: {
            /** @description The `webhook-id` of the call. */
            message_id: string;
            /** @description Whether the receiver has accepted it. */
            delivered: boolean;
            /** @description Of its answer; absent if there was none. */
            status_code?: number;
            /**
             * Format: int64
             * @description How long the call took.
             */
            latency_ms: number;
            /** @description Why it failed; absent if it did not. */
            error?: string;
        };
        /** @description What is to be delivered again. */
        WebhookReplayRequest: {
            /**
             * Format: date-time
             * @description Inclusive.
             */
            from: string;
            /**
             * Format: date-time
             * @description Exclusive; now by default.
             */
            to?: string;
        };
        /** @description What a replay has queued. */
        WebhookReplay: {
            /**
             * Format: int64
             * @description The number of events that are delivered again; those that were pending are not counted.
             */
            queued: number;
            /**
             * Format: date-time
             * @description Where to go on; absent if this was all.
             */
            next_from?: string;
        };
        /**
         * @description `pending`: it waits for its next attempt. `delivered`: the receiver has accepted it. `dead`: it was tried for three days, in vain. `skipped`: the webhook was paused or deleted.
         * @enum {string}
         */
        DeliveryStatus: "pending" | "delivered" | "dead" | "skipped";
        /** @description One event for one webhook. */
        Delivery: {
            event_id: components["schemas"]["EventId"];
            type: components["schemas"]["EventType"];
            /** @description The tenant of the event; null if it is about none. */
            tenant: string | null;
            status: components["schemas"]["DeliveryStatus"];
            /**
             * Format: int64
             * @description Calls since it was queued last.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was queued last.
             */
            queued_at: string;
            /**
             * Format: date-time
             * @description When the next attempt is due; null if there is none.
             */
            next_at: string | null;
            /**
             * Format: date-time
             * @description The newest attempt; null if there was none.
             */
            attempted_at: string | null;
            /** @description Of the newest answer; absent if there was none. */
            status_code?: number;
            /**
             * Format: int64
             * @description How long the newest call took; absent if there was none.
             */
            latency_ms?: number;
            /** @description Why the newest attempt failed; absent if it did not. */
            error?: string;
        };
        /** @description A page of deliveries. */
        DeliveryList: {
            /** @description The page. */
            items: components["schemas"]["Delivery"][];
            next_cursor: components["schemas"]["NextCursor"];
        };
        /** @description A sealed day, without its proofs. */
        SealSummary: {
            /**
             * @description In UTC.
             * @example 2026-11-22
             */
            day: string;
            /**
             * Format: int64
             * @description In the log of seals, from 0.
             */
            position: number;
            /**
             * Format: int64
             * @description Balances that had new entries.
             */
            heads: number;
            root: components["schemas"]["SealHash"];
            /**
             * Format: date-time
             * @description When it was sealed.
             */
            sealed_at: string;
        };
        /** @description A sealed day. Its record is in a log of all seals, a Merkle tree as in RFC 6962 that only grows. */
        Seal: {
            /**
             * @description Version of this form.
             * @example 1
             */
            format: number;
            /** @description The database whose journal it seals. */
            database_id: string;
            /**
             * @description In UTC.
             * @example 2026-11-22
             */
            day: string;
            /**
             * Format: int64
             * @description In the log of seals, from 0.
             */
            position: number;
            /**
             * Format: int64
             * @description Balances that had new entries.
             */
            heads: number;
            root: components["schemas"]["SealHash"];
            /**
             * Format: date-time
             * @description When it was sealed.
             */
            sealed_at: string;
            /** @description The log with this seal as its newest record, as a note that is signed if there was a key (golang.org/x/mod/sumdb/note). */
            checkpoint: string;
            /** @description Proves that the checkpoint's log contains this seal. */
            inclusion_proof: components["schemas"]["SealHash"][];
            /** @description The log before this seal; null at the first one. */
            previous: {
                /**
                 * Format: int64
                 * @description How many seals it has.
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
             * @description The instant that decisions go by.
             */
            now: string;
            /**
             * Format: int64
             * @description How far that is ahead of real time; below 0 while the first start fills the past with its demo.
             */
            offset_seconds: number;
        };
        /** @description SHA-256 of a Merkle tree, in base64. */
        SealHash: string;
        /** @description Two records of one fact that differ. */
        Difference: {
            /** @description The tenant. */
            tenant: string;
            /** @description The meter. */
            meter: string;
            /** @description The subject; empty for the tenant itself. */
            subject: string;
            /** @description The fact that differs. */
            what: string;
            /** @description What the journal says. */
            journal: string;
            /** @description What is stored. */
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
            /** @description What happened to this request, for people. Its text may change. */
            detail: string;
            code: components["schemas"]["ProblemCode"];
            /** @description The faults of the request, by field. */
            errors?: components["schemas"]["FieldError"][];
        } & (components["schemas"]["QuotaProblem"] | components["schemas"]["RateLimitProblem"] | components["schemas"]["CapacityProblem"] | components["schemas"]["ForbiddenProblem"] | components["schemas"]["ArchivedProblem"] | components["schemas"]["UnavailableProblem"] | components["schemas"]["OtherProblem"]);
        /**
         * @description Why a request was refused. The guide has a section for each code, with what helps. New codes may be added; treat one that you do not know by its status.
         * @enum {string}
         */
        ProblemCode: "invalid_argument" | "idempotency_key_missing" | "unauthenticated" | "credits_exhausted" | "forbidden" | "tenant_suspended" | "meter_not_in_plan" | "feature_not_in_plan" | "gauge_limit" | "not_found" | "tenant_not_found" | "grant_not_found" | "hold_not_found" | "operation_not_found" | "lease_not_found" | "method_not_allowed" | "precondition_failed" | "hold_not_active" | "archived" | "idempotency_key_reused" | "amount_out_of_range" | "refund_exceeds_debit" | "cost_exceeds_capacity" | "too_many_limits" | "quota_exceeded" | "rate_limited" | "internal" | "queue_full" | "report_too_slow" | "unavailable" | "outcome_unknown";
        /** @description The balance does not suffice. 429 `quota_exceeded` if the next period brings more, 402 `credits_exhausted` if only a grant helps. */
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
             * @description The units of it that are available.
             */
            available: number;
            /**
             * Format: date-time
             * @description The end of the period; null if it brings nothing back.
             */
            reset_at: string | null;
            /**
             * Format: date-time
             * @description When it would be allowed if nothing else happens; absent if no known event helps.
             */
            would_succeed_at?: string;
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
             * @description When a retry can succeed, finer than Retry-After. Absent after too many wrong keys.
             */
            retry_after_ms?: number;
        };
        /** @description 422. The request costs more than a limit ever allows, or more limits apply than one decision can hold. Waiting does not help. */
        CapacityProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "cost_exceeds_capacity" | "too_many_limits";
            /** @description The limits that denied; for `too_many_limits`, all that apply. */
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
        /** @description 410. What is asked for was archived, or never existed. */
        ArchivedProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "archived";
            /**
             * Format: date-time
             * @description The oldest instant that can be asked about.
             */
            oldest: string;
        };
        /** @description 503. A backend did not answer in time; this attempt did nothing. */
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
             * @description When a retry can succeed, with `violated-policies`.
             */
            retry_after_ms?: number;
        };
        /** @description All other codes. They have no members of their own. */
        OtherProblem: {
            /**
             * @description The code.
             * @enum {string}
             */
            code: "invalid_argument" | "idempotency_key_missing" | "unauthenticated" | "tenant_suspended" | "meter_not_in_plan" | "feature_not_in_plan" | "gauge_limit" | "not_found" | "tenant_not_found" | "grant_not_found" | "hold_not_found" | "operation_not_found" | "lease_not_found" | "method_not_allowed" | "precondition_failed" | "hold_not_active" | "idempotency_key_reused" | "amount_out_of_range" | "refund_exceeds_debit" | "internal" | "queue_full" | "report_too_slow" | "outcome_unknown";
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
        /** @description The debit; a replay returns the earlier one, a dry run what would happen. */
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
                "RateLimit-Policy": components["headers"]["RateLimitPolicy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-RateLimit-Mode": components["headers"]["RateLimitMode"];
                "Idempotent-Replayed": components["headers"]["IdempotentReplayed"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description The request must not pass. For `nginx` this answers every refusal; `X-Quota-Status` has the status. */
        NotPassed: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                "X-Quota-Status": components["headers"]["QuotaStatus"];
                "X-Quota-Problem": components["headers"]["QuotaProblem"];
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
        /** @description The hold after the change; a replay returns the earlier answer. 200 on creation is a dry run. */
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
        /** @description The balance before and after; a replay returns the earlier answer, a dry run what would happen. */
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
        /** @description The document is the one of If-None-Match. */
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
        /** @description `credits_exhausted`. Only a grant helps. Nothing was charged. */
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
        /** @description `rate_limited`: too many wrong keys from this address. */
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
        /** @description `not_found`, `tenant_not_found`, `grant_not_found`, `hold_not_found`, `operation_not_found` or `lease_not_found`. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `archived`. What is asked for happened before `oldest`, and was taken out of the database; or it never existed. Nothing was done. */
        Archived: {
            headers: {
                "X-Request-Id": components["headers"]["RequestId"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `precondition_failed` or `hold_not_active`. The state does not allow it; nothing was done. */
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
        /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
        IdempotencyKeyHeader: string;
        /** @description Identifies a repeated request. Use an id that the gateway makes for each request of a client; use a client's id only if the service behind the gateway recognises repeated requests by it. */
        PassageKeyHeader: string;
        /** @description The tenant that pays. */
        QuotaTenantHeader: components["schemas"]["Id"];
        /** @description Required unless `X-Quota-Mode` is `limit`, which ignores it. */
        QuotaMeterHeader: components["schemas"]["Id"];
        /** @description The units to consume. */
        QuotaAmountHeader: number;
        /** @description The subject of the tenant that asks. */
        QuotaSubjectHeader: components["schemas"]["Id"];
        /** @description The route for limits, if it is not the path. */
        QuotaRouteHeader: components["schemas"]["Route"];
        /** @description `limit` charges limits only: no units, and no meter is needed. `X-Quota-Amount` is then the cost. */
        QuotaModeHeader: "consume" | "check" | "limit";
        /** @description The key of a gateway that passes on its clients' `Authorization`. It takes precedence over that header. */
        QuotaKeyHeader: string;
        /** @description 1 to 255 visible ASCII characters, new for every lease. */
        LeaseKeyHeader: string;
        /** @description The same key charges nothing again for 10 minutes. */
        ChargeKeyHeader: string;
        /** @description 1 to 255 visible ASCII characters. The same key as that of the step before moves nothing. Without a key each request moves the time. */
        ClockKeyHeader: string;
        /** @description The id from the acquisition; opaque. */
        LeasePath: string;
        /** @description The ETag of the catalogue that the caller has seen. Refused with 409 if meters, plans or limits have changed since. */
        CatalogIfMatch: string;
        /** @description The ETag of the tenant that the caller has seen. Refused with 409 if the tenant has changed since. */
        TenantIfMatch: string;
        /** @description The id of the tenant. */
        TenantPath: components["schemas"]["Id"];
        /** @description The id of the key, not its secret. */
        KeyPath: components["schemas"]["Id"];
        /** @description The id of the webhook. */
        WebhookPath: components["schemas"]["Id"];
        /** @description The id of the meter. */
        MeterPath: components["schemas"]["Id"];
        /** @description The id of the plan. */
        PlanPath: components["schemas"]["Id"];
        /** @description The id of the subject. */
        SubjectPath: components["schemas"]["Id"];
        /** @description The id of the limit. */
        RulePath: components["schemas"]["Id"];
        /** @description What is blocked or exempt. */
        BlockKindPath: components["schemas"]["BlockKind"];
        /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
        BlockValuePath: string;
        /** @description The number after the slash of a prefix. */
        BlockBitsPath: number;
        /** @description The tenant of the subject; required only if subjects of several tenants have that id. */
        BlockTenant: components["schemas"]["Id"];
        /** @description The largest number of items in the page. */
        PageLimit: number;
        /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
        /** @description The limit of the item that runs out first if the request is repeated, in the open period. */
        QuotaLimit: number;
        /** @description The remainder of that item. */
        QuotaRemaining: number;
        /** @description Seconds until its period ends; absent if the period has no end. */
        QuotaReset: number;
        /** @description Where the balances come from. */
        QuotaSource: "ledger" | "cache" | "local";
        /** @description The answer was read from a replica, and has everything that was committed until this many seconds ago. About a second if the replica keeps up. Absent: the answer was read from the database itself, or the replica's lag is not known. */
        ReportLag: number;
        /** @description The id of the operation that paid, for a refund; absent if nothing was charged. */
        QuotaOperation: string;
        /** @description With `X-Quota-Mode: limit`, the `charge_id` for `POST /v1/limits/charge/refund`; absent if no limit was charged, or if it is longer than 3 KiB: a charge of a dozen limits with the longest names. */
        QuotaCharge: string;
        /** @description The status of the refusal. */
        QuotaStatus: number;
        /** @description The problem, in ASCII. Absent if it is longer than 3 KiB. */
        QuotaProblem: string;
        /** @description The enforced limits that applied, the most restrictive first and at most five, as a List of structured fields (RFC 9651): the name of the rule with `q`, which a full bucket holds, and `w`, the seconds in which an empty one fills; or `q` at a time (`qu="concurrent-requests"`). */
        RateLimitPolicy: string;
        /**
         * @description The state of the same limits, in the same order: `r` is the remainder, `t` the seconds until more is available. After
         *     a denial only limits that denied have a `t`, and only if waiting helps: a cost above the capacity never passes. A
         *     concurrency limit has a `t` only after a denial: its holders decide when leases return.
         *
         *     If configured, `X-RateLimit-Limit`, `-Remaining` and `-Reset`, and `RateLimit-Limit`, `-Remaining` and `-Reset`
         *     describe the most restrictive limit to older clients; Reset is when its bucket is full.
         */
        RateLimit: string;
        /** @description Redis is down, and limits were decided by the `on_backend_error` of each rule. */
        RateLimitMode: "local";
        /** @description The answer is the stored one of an earlier request with the same key. */
        IdempotentReplayed: "true";
        /** @description Seconds after which a retry can succeed, never earlier than a `t` of `RateLimit`. If a window denied, a random part is added, up to a tenth of the wait and at most a minute, because all denied clients wait for the same instant. */
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
            /** @description One result per check. */
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
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
                /** @description Required unless `X-Quota-Mode` is `limit`, which ignores it. */
                "X-Quota-Meter"?: components["parameters"]["QuotaMeterHeader"];
                /** @description The units to consume. */
                "X-Quota-Amount"?: components["parameters"]["QuotaAmountHeader"];
                /** @description The subject of the tenant that asks. */
                "X-Quota-Subject"?: components["parameters"]["QuotaSubjectHeader"];
                /** @description The route for limits, if it is not the path. */
                "X-Quota-Route"?: components["parameters"]["QuotaRouteHeader"];
                /** @description `limit` charges limits only: no units, and no meter is needed. `X-Quota-Amount` is then the cost. */
                "X-Quota-Mode"?: components["parameters"]["QuotaModeHeader"];
                /** @description The key of a gateway that passes on its clients' `Authorization`. It takes precedence over that header. */
                "X-Quota-Key"?: components["parameters"]["QuotaKeyHeader"];
                /** @description Identifies a repeated request. Use an id that the gateway makes for each request of a client; use a client's id only if the service behind the gateway recognises repeated requests by it. */
                "Idempotency-Key"?: components["parameters"]["PassageKeyHeader"];
            };
            path: {
                /** @description The kind of the gateway; it decides the form of a refusal. */
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
                /** @description Required unless `X-Quota-Mode` is `limit`, which ignores it. */
                "X-Quota-Meter"?: components["parameters"]["QuotaMeterHeader"];
                /** @description The units to consume. */
                "X-Quota-Amount"?: components["parameters"]["QuotaAmountHeader"];
                /** @description The subject of the tenant that asks. */
                "X-Quota-Subject"?: components["parameters"]["QuotaSubjectHeader"];
                /** @description The route for limits, if it is not the path. */
                "X-Quota-Route"?: components["parameters"]["QuotaRouteHeader"];
                /** @description `limit` charges limits only: no units, and no meter is needed. `X-Quota-Amount` is then the cost. */
                "X-Quota-Mode"?: components["parameters"]["QuotaModeHeader"];
                /** @description The key of a gateway that passes on its clients' `Authorization`. It takes precedence over that header. */
                "X-Quota-Key"?: components["parameters"]["QuotaKeyHeader"];
                /** @description Identifies a repeated request. Use an id that the gateway makes for each request of a client; use a client's id only if the service behind the gateway recognises repeated requests by it. */
                "Idempotency-Key"?: components["parameters"]["PassageKeyHeader"];
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
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
            /** @description One result per debit. */
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Id"];
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Id"];
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the hold. */
                hold_id: components["schemas"]["Id"];
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
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
                /** @description The same key charges nothing again for 10 minutes. */
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
            /** @description All limits let the request pass, and were charged. */
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
            /** @description The tokens are back, or were before. */
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
                /** @description The id from the acquisition; opaque. */
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
                /** @description The id from the acquisition; opaque. */
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
                /** @description The balance of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
                /** @description The balance at this past instant, without its grants. */
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
                /** @description The balance of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
                /** @description The balance at this past instant, without its grants. */
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
                /** @description Only entries of this subject's balances, and of requests that named it. */
                subject?: components["schemas"]["Id"];
                /** @description Only entries of this kind. */
                kind?: components["schemas"]["EntryKind"];
                /** @description Only entries made at this instant or later. */
                from?: string;
                /** @description Only entries made before this instant. */
                to?: string;
                /** @description `desc`: the newest first. The entries of a balance (meter and subject) are together in both orders; name a meter, or a meter and a subject, for the newest entries of one. */
                order?: "asc" | "desc";
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The newest operation with this id at or before this instant; by default the newest. */
                at?: string;
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The idempotency key of the request, or an id of the ledger's own operations from the entries. Percent-encode characters that a path segment cannot hold. */
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
                /** @description The number of periods, the open one included. */
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
            /** @description The periods in order; fewer than asked for if the last one has no end. */
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
                /** @description The balances of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The balance of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
                /** @description By default the format that Accept prefers, else JSON. */
                format?: "json" | "csv";
            };
            header?: never;
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the meter. */
                meter: components["parameters"]["MeterPath"];
                /** @description The start of the period; `current`: the open period; `last`: the newest closed one; `at:` and a time: the period that contains it. */
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
                /** @description The use of this subject. If the plan has no cap per subject, by the requests that named it; refunds name none and are not in it then. */
                subject?: components["schemas"]["Id"];
                /** @description The start, inclusive. */
                from: string;
                /** @description Exclusive. */
                to: string;
                /** @description The length of the intervals. */
                by?: "hour" | "day" | "month";
                /** @description `subject`: one item per step and subject that requests named; the empty subject is that of requests that named none, and of refunds. `metadata.` and one of the meter's `dimensions`: one item per step and value of that member of the metadata of requests; the empty value is that of requests without one, and of refunds. A capture has the value of its hold. The 100 values with the most use are named, cut to 128 characters; all others are `(other)`. At most 10,000 items. They add up to the use without `group_by`. */
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
            /** @description The steps. */
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
                /** @description The start, inclusive; counts from the minute that contains it. A day before `to` by default. */
                from?: string;
                /** @description Exclusive; the end of the present minute by default. */
                to?: string;
                /** @description The largest number of explanations. There are 100 at most. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                hold_id: components["schemas"]["Id"];
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
                /** @description Only grants in this state; open means pending or active. A page may then have fewer grants than the limit, or none, although next_cursor names more. */
                status?: "open" | "pending" | "active" | "exhausted" | "expired" | "voided";
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
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
            /** @description The grant; a replay returns it as it was issued. */
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the grant. */
                grant_id: components["schemas"]["Id"];
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
            };
            path: {
                /** @description The id of the tenant. */
                tenant: components["parameters"]["TenantPath"];
                /** @description The id of the grant. */
                grant_id: components["schemas"]["Id"];
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
            /** @description The grant's end before and after; a replay returns the earlier answer, a dry run what would happen. */
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
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
                "Idempotency-Key": components["parameters"]["IdempotencyKeyHeader"];
                /** @description The ETag of the balance that the caller has seen. Refused with 409 if the balance has changed since. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description Only tenants whose ids begin with it, as in `acme`. Capital and small letters differ. Only `limit`, `cursor` and `sort=tenant` may stand beside it. */
                prefix?: components["schemas"]["Id"];
                /** @description Only tenants on this plan. */
                plan?: components["schemas"]["Id"];
                /** @description Only tenants with this status. */
                status?: "active" | "suspended";
                /** @description Only tenants with these members of their metadata. Each is a parameter of its own, named `metadata.` and the member, as in `metadata.segment=gold`; numbers, true and false are written as in JSON. The SDKs take the members without `metadata.`. */
                metadata?: {
                    [key: string]: string;
                };
                /** @description Only tenants of which a balance is at least so many percent used: used (net of refunds) of used and remaining, top-ups included, in the open period. `standing` of an item says which. */
                near?: number;
                /** @description Only balances of this meter. Without `near`, tenants with a balance of it in the open period. */
                meter?: components["schemas"]["Id"];
                /** @description `remaining`: the least remaining first, of `meter` or of the meter of which least remains. */
                sort?: "tenant" | "remaining";
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The ETag of the tenant that the caller has seen. Refused with 409 if the tenant has changed since. */
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
                /** @description The ETag of the tenant that the caller has seen. Refused with 409 if the tenant has changed since. */
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
                 *       "plan": "pro",
                 *       "apply": "now",
                 *       "reason": "upgraded by the customer"
                 *     }
                 */
                "application/json": components["schemas"]["TenantPatch"];
            };
        };
        responses: {
            /** @description The tenant before and after the change; after a dry run, what would be stored. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["RequestId"];
                    ETag: components["headers"]["TenantETag"];
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
            429: components["responses"]["TooManyWrongKeys"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listGauges: {
        parameters: {
            query?: {
                /** @description Only this meter. */
                meter?: components["schemas"]["Id"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The gauge of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
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
                /** @description The gauge of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
            };
            header: {
                /** @description 1 to 255 visible ASCII characters, new for every operation. The service does without it where `dry_run` is true; the contract asks for it always, so that no generated client can forget it. */
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
                /** @description The gauge of this subject, instead of the tenant's own. */
                subject?: components["schemas"]["Id"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description 1 adds an explanation of the limit. */
                explain?: "1";
                /** @description With explain: explains the limit that applies to this tenant, which may be that of its plan, with its override and in its calendar. */
                tenant?: components["schemas"]["Id"];
                /** @description With tenant: the subject whose override applies. */
                subject?: components["schemas"]["Id"];
                /** @description The limit of this name of a plan, in its newest version, instead of the general one. */
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
                tenant?: components["schemas"]["Id"];
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
                /** @description How many buckets are wanted. */
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
            /** @description The buckets, the fullest first. Of equally full ones those come first of which more is used, then they go by tenant and bucket. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The tenant of the subject; required only if subjects of several tenants have that id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
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
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
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
                /** @description The tenant of the subject; required only if subjects of several tenants have that id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
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
                /** @description The tenant of the subject; required only if subjects of several tenants have that id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
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
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
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
                /** @description The tenant of the subject; required only if subjects of several tenants have that id. */
                tenant?: components["parameters"]["BlockTenant"];
            };
            header?: never;
            path: {
                /** @description What is blocked or exempt. */
                kind: components["parameters"]["BlockKindPath"];
                /** @description The id of a tenant or subject; or an address, or a prefix such as 192.0.2.0/24, with its slash as it is or as %2F. */
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
                /** @description Those of this tenant alone. By default those of all tenants too. */
                tenant?: components["schemas"]["Id"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
            /** @description How it is. */
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
            /** @description They are ended. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
            /** @description It is revoked. */
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
                /** @description Only changes of what belongs to this tenant. */
                tenant?: components["schemas"]["Id"];
                /** @description The id of a key. */
                actor?: components["schemas"]["Id"];
                /**
                 * @description Only changes of this kind, as in `limit.put`.
                 * @example limit.put
                 */
                action?: components["schemas"]["Id"];
                /** @description Inclusive. */
                from?: string;
                /** @description Exclusive. */
                to?: string;
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                tenant?: components["schemas"]["Id"];
                /** @description Only events of this type. */
                type?: components["schemas"]["EventType"];
                /** @description The `event_id` after which the list begins; the oldest event by default. */
                after?: components["schemas"]["EventId"];
                /** @description The largest number of items in the page. */
                limit?: components["parameters"]["PageLimit"];
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
                    /** @description Names the state of meters, plans and limits, in quotes, for the If-Match of a change. Blocks do not count. */
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
                /** @description The ETag of the catalogue that the caller has seen. Refused with 409 if meters, plans or limits have changed since. */
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
            /** @description What was changed, or would be. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
            /** @description It is deleted. */
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
            /** @description How the call went, also if it failed. */
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
            /** @description What was queued. */
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
                /** @description The `next_cursor` of the page before. Opaque; valid only with the same filters. */
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
            /** @description The time, and how far it was moved. */
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
                /** @description 1 to 255 visible ASCII characters. The same key as that of the step before moves nothing. Without a key each request moves the time. */
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
