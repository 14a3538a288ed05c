-- Asks quotasvc whether a request may pass. Needs HAProxy 2.5 or newer with Lua, as in
-- Debian's package. It calls the `listen quotasvc` of haproxy.cfg, which has the servers
-- and the timeouts. QUOTASVC_KEY_FILE names the file with the key. The file is read
-- before HAProxy drops its privileges.
--
--   http-request lua.quotasvc closed    without a decision nothing passes: 503
--   http-request lua.quotasvc open      without a decision everything passes, uncharged
--   filter lua.quotasvc-lease           ends the lease of a request (mode lease) when the request has
--                                       ended, also if its client went away
--
-- Input variables: txn.quota_tenant, _meter, _amount, _subject, _route, _mode and _rule. Output
-- variables, for the client of an admitted request: txn.quota_limit, _remaining, _reset,
-- txn.ratelimit and txn.ratelimit_policy.
--
-- The call does not block HAProxy's event loop. Only this request waits.

local url, listener = "http://quotasvc/v1", "abns@quotasvc"
local key_file = assert(os.getenv("QUOTASVC_KEY_FILE"), "quotasvc: QUOTASVC_KEY_FILE is not set")

local file = assert(io.open(key_file, "r"), "quotasvc: cannot read " .. key_file)
local authorization = "Bearer " .. file:read("l")
file:close()

-- The timeout in ms, which must be longer than the listener's timeout: if HAProxy's HTTP
-- client times out, it tries four times. Before version 2.9 this cannot be changed.
local timeout = 10000

local inputs = { "tenant", "meter", "amount", "subject", "route", "mode", "rule" }

-- Headers for the application: the operation, or the charge of limits, to refund if the work
-- fails, and the lease to renew if it takes longer.
local for_application = { "x-quota-operation", "x-quota-charge", "x-quota-lease" }

-- Headers for a refused client, besides status and body.
local refusal_headers = {
	"content-type", "retry-after", "ratelimit", "ratelimit-policy", "x-quota-limit", "x-quota-remaining",
	"x-quota-reset", "x-request-id",
}

-- Refusals that concern the client's request. All others are errors on the server side,
-- and their details would tell clients about the internal structure.
local client_refusals = {
	[402] = "Payment Required", [403] = "Forbidden", [422] = "Unprocessable Content", [429] = "Too Many Requests",
	[503] = "Service Unavailable",
}

local function first(headers, name)
	local values = headers and headers[name]
	return values and (values[0] or values[1])
end

local function build_request(txn)
	local id = txn.f:unique_id()
	local headers = {
		["authorization"] = { authorization },
		["x-original-uri"] = { txn.f:pathq() },
		["x-original-method"] = { txn.f:method() },
		-- HAProxy creates this id (unique-id-format), a new id for each request. A client
		-- that chose the id could repeat it and pass without being charged.
		["x-request-id"] = { id },
		["idempotency-key"] = { id },
		-- quotasvc trusts this header if this host is in QUOTASVC_TRUSTED_PROXIES.
		["x-forwarded-for"] = { txn.f:src() },
	}
	for _, name in ipairs(inputs) do
		local value = txn:get_var("txn.quota_" .. name)
		if value ~= nil and value ~= "" then
			headers["x-quota-" .. name] = { tostring(value) }
		end
	end
	return headers
end

local function refuse(txn, status, answer)
	local reply = txn:reply()
	reply:set_status(status, client_refusals[status])
	if answer then
		for _, name in ipairs(refusal_headers) do
			local value = first(answer.headers, name)
			if value then
				reply:add_header(name, value)
			end
		end
		reply:set_body(answer.body)
	else
		local id = txn.f:unique_id()
		reply:add_header("content-type", "application/problem+json")
		reply:add_header("retry-after", "2")
		reply:add_header("x-request-id", id)
		reply:set_body('{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","status":503,' ..
			'"title":"Unavailable","code":"unavailable","detail":"the request could not be decided","request_id":"' .. id .. '"}')
	end
	txn:done(reply)
end

core.register_action("quotasvc", { "http-req" }, function(txn, without)
	-- Remove the client's headers: the application must not trust them.
	for _, name in ipairs(for_application) do
		txn.http:req_del_header(name)
	end
	local answer = core.httpclient():get { url = url .. "/authorize/haproxy", dst = listener, headers = build_request(txn), timeout = timeout }
	-- If no server of quotasvc answers, HAProxy itself answers. Only answers of quotasvc
	-- have this header.
	if not (answer and first(answer.headers, "x-request-id")) then
		answer = nil
	end
	local status = answer and answer.status or 0
	if status == 200 then
		for _, name in ipairs({ "limit", "remaining", "reset" }) do
			txn:set_var("txn.quota_" .. name, first(answer.headers, "x-quota-" .. name) or "")
		end
		txn:set_var("txn.quota_lease", first(answer.headers, "x-quota-lease") or "")
		txn:set_var("txn.ratelimit", first(answer.headers, "ratelimit") or "")
		txn:set_var("txn.ratelimit_policy", first(answer.headers, "ratelimit-policy") or "")
		for _, name in ipairs(for_application) do
			local id = first(answer.headers, name)
			if id then
				txn.http:req_set_header(name, id)
			end
		end
		return
	end
	-- A 4xx or a full queue never lets the request pass, because a client could cause
	-- them.
	local full = answer and answer.body and answer.body:find('"code":"queue_full"', 1, true)
	if without == "open" and (status == 0 or status >= 500) and not full then
		return
	end
	refuse(txn, client_refusals[status] and status or 503, client_refusals[status] and answer)
end, 1)

-- A filter sees each request to its end: the answer was sent, or one side went away. If quotasvc
-- cannot be reached, the lease ends after the limit's time.
local lease_filter = { id = "quotasvc-lease", flags = filter.FLT_CFG_FL_HTX }
lease_filter.__index = lease_filter

function lease_filter:new()
	return setmetatable({}, lease_filter)
end

-- Without start_analyze HAProxy does not call end_analyze.
function lease_filter:start_analyze() end

-- HAProxy calls end_analyze for the request and for the answer, when both have ended.
function lease_filter:end_analyze(txn)
	local id = txn:get_var("txn.quota_lease")
	if self.ended or id == nil or id == "" then
		return
	end
	self.ended = true
	core.register_task(function()
		core.httpclient():delete {
			url = url .. "/leases/" .. id, dst = listener, headers = { ["authorization"] = { authorization } }, timeout = timeout,
		}
	end)
end

core.register_filter("quotasvc-lease", lease_filter, function(new)
	return new
end)
