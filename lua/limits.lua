-- limits: decides requests of one tenant against their buckets, in order, each request all or nothing.
--
-- KEYS      the buckets the requests touch, each once, all in one hash slot; 1..1024
-- ARGV      non-negative integers below 2^53, in this order:
--   now       0: this server's TIME, read once. Otherwise the time to use, in us: for tests only
--   count     requests, 1..64
--   per key   kind, a, b, c, enforce
--     kind      1 token bucket
--     a, b, c   the kind's parameters. Token bucket: capacity in tokens, refill in units per us, units per token; each
--               >= 1 and capacity * units per token < 2^53
--     enforce   1: denies; 0: shadow, it is charged like the others and never denies
--   per request: mode, rules, then per rule: key, cost
--     mode      0 consume, 1 peek (decide, charge nothing), 2 refund (give back, always allowed)
--     rules     rules of this request, 1..16
--     key       index into KEYS, at most once per request
--     cost      tokens, >= 1
-- Reply     flat integers: now in us, keys rebased,
--           per key:     us by which the bucket's time is ahead of now (it refills only after them)
--           per request: allowed 1|0, then per rule: code, level
--     code      0 passes, 1 denied for now, 2 denied for ever (cost > capacity), 3 the stored value is not a bucket
--     level     token bucket: units used, after this request's charge or refund if there was one
--
-- Invariants
--   1. A request is charged on all its rules or on none. A shadow rule is charged iff the request is allowed and the rule
--      itself passes.
--   2. A denied or peeked request writes nothing; except that a bucket whose time is more than AHEAD_US ahead of now (the
--      clock was set back) is rebased to now, keeping its level, and that is stored in any case: were it not, every
--      denial would start from the old time again and the bucket would stand still until the clock has caught up.
--   3. All arithmetic is exact. Every value is an integer below 2^53, so sums and products are exact; floor and ceil of
--      a quotient of two such integers are exact too, because the distance from a non-integer quotient to the next
--      integer is at least 1/divisor, more than half a unit in the last place. A product may pass 2^53 only where it is
--      compared with something below, and rounding is monotone.
--   4. The stored value is "<ts_us> <used> <units per token>". A missing key is a full bucket, and a bucket's TTL is its
--      time to full (rounded up, plus 1 s), so expiry changes no decision.
--   5. A value that is not a bucket is never treated as one, never overwritten, and denies (code 3).
--   6. Nothing is written before everything has been read and decided: an error leaves all buckets as they were.

local MAX = 9007199254740991
local AHEAD_US = 5000000
local GRACE_MS = 1000
local MAX_REQUESTS, MAX_RULES = 64, 16
local CONSUME, PEEK, REFUND = 0, 1, 2
local PASS, DENIED, NEVER, CORRUPT = 0, 1, 2, 3

local floor, ceil, match, format = math.floor, math.ceil, string.match, string.format

-- mul_div_ceil is ceil(a * b / c) for a < c <= MAX and b <= MAX, digit by digit of b, because a * b may pass 2^53.
local function mul_div_ceil(a, b, c)
  local bit, q, r = 1, 0, 0
  while bit * 2 <= b do bit = bit * 2 end
  while bit >= 1 do
    q, r = q * 2, r * 2
    if r >= c then q, r = q + 1, r - c end
    if b >= bit then
      b = b - bit
      if r >= c - a then q, r = q + 1, r - (c - a) else r = r + a end
    end
    bit = bit / 2
  end
  if r > 0 then q = q + 1 end
  return q
end

-- A kind is a table of functions on a bucket b, which has the parameters a, b, c and whatever load sets:
--   check(b)            false if the parameters are out of bounds
--   load(b, raw, now)   reads the stored value (false: no key) as of now; false if it is not a bucket. Sets b.ahead and,
--                       if the value must be stored whatever is decided, b.dirty and b.rebased
--   verdict(b, cost)    PASS, DENIED or NEVER
--   charge(b, cost), refund(b, cost)   change the level and set b.dirty if that changes what is stored
--   level(b)            the reply's level
--   save(b, now)        the value to store, and its TTL in ms
local token_bucket = {}

function token_bucket.check(b)
  return b.a >= 1 and b.b >= 1 and b.c >= 1 and b.a * b.c <= MAX
end

function token_bucket.load(b, raw, now)
  local num, units = b.b, b.c
  b.cap = b.a * units
  b.used, b.ahead = 0, 0
  if not raw then return true end

  local ts, used, stored_units = match(raw, '^(%d+) (%d+) (%d+)$')
  ts, used, stored_units = tonumber(ts), tonumber(used), tonumber(stored_units)
  if not ts or ts > MAX or used > MAX or stored_units > MAX or stored_units < 1 then return false end

  if stored_units ~= units then
    -- The rule's rate was changed. The debt is kept in tokens, rounded up to the new unit: the only inexact step.
    local whole = floor(used / stored_units)
    used = whole * units + mul_div_ceil(used - whole * stored_units, units, stored_units)
    if used > MAX then used = MAX end
  end
  if ts <= now then
    local refill = (now - ts) * num
    if refill < used then b.used = used - refill end
  elseif ts - now <= AHEAD_US then
    b.used, b.ahead = used, ts - now
  else
    b.used, b.dirty, b.rebased = used, true, true
  end
  return true
end

function token_bucket.verdict(b, cost)
  if cost > b.a then return NEVER end
  if b.used > b.cap - cost * b.c then return DENIED end
  return PASS
end

function token_bucket.charge(b, cost)
  b.used, b.dirty = b.used + cost * b.c, true
end

function token_bucket.refund(b, cost)
  if b.used == 0 then return end
  local units = cost * b.c
  b.used, b.dirty = units < b.used and b.used - units or 0, true
end

function token_bucket.level(b)
  return b.used
end

function token_bucket.save(b, now)
  local full_us = ceil(b.used / b.b) + b.ahead
  return format('%.0f %.0f %.0f', now + b.ahead, b.used, b.c), ceil(full_us / 1000) + GRACE_MS
end

local KINDS = { token_bucket }

local function refuse(what)
  return redis.error_reply('ERR limits: ' .. what)
end

-- Arguments.
local args = {}
for i = 1, #ARGV do
  local x = tonumber(ARGV[i])
  if not x or x < 0 or x > MAX or x ~= floor(x) then return refuse('argument ' .. i .. ' is not an integer below 2^53') end
  args[i] = x
end
local keys, count = #KEYS, args[2]
if keys < 1 or keys > MAX_REQUESTS * MAX_RULES then return refuse('1 to 1024 keys') end
if not count or count < 1 or count > MAX_REQUESTS then return refuse('1 to 64 requests') end

local now = args[1]
if now == 0 then
  local time = redis.call('TIME') -- once: before Redis 7.2 a second reading would differ
  now = time[1] * 1000000 + time[2]
end

-- Buckets.
local buckets, seen = {}, {}
local raws = redis.call('MGET', unpack(KEYS))
local rebased = 0
local out, o = { now, 0 }, 2
for i = 1, keys do
  local at = 2 + (i - 1) * 5
  local kind, enforce = KINDS[args[at + 1]], args[at + 5]
  local b = { a = args[at + 2], b = args[at + 3], c = args[at + 4], enforce = enforce == 1, last = 0, kind = kind }
  if not kind or not enforce or enforce > 1 or not kind.check(b) then return refuse('parameters of key ' .. i) end
  if seen[KEYS[i]] then return refuse('key ' .. i .. ' is given twice') end
  seen[KEYS[i]] = true

  -- MGET answers nil for a value of another type; that is not a missing key.
  local raw = raws[i]
  b.bad = not raw and redis.call('EXISTS', KEYS[i]) == 1 or not kind.load(b, raw, now)
  if b.bad then b.used, b.ahead, b.dirty = 0, 0, false end
  if b.rebased then rebased = rebased + 1 end
  buckets[i] = b
  o = o + 1
  out[o] = b.ahead
end

-- Decisions.
local at = 2 + keys * 5
for r = 1, count do
  local mode, rules = args[at + 1], args[at + 2]
  if not rules or mode > REFUND or rules < 1 or rules > MAX_RULES then return refuse('request ' .. r) end
  local head = o + 1
  o = head
  local allowed = 1
  for j = 1, rules do
    local b, cost = buckets[args[at + 1 + 2 * j]], args[at + 2 + 2 * j]
    if not b or not cost or cost < 1 or b.last == r then return refuse('rule ' .. j .. ' of request ' .. r) end
    b.last = r
    local code = PASS
    if b.bad then
      code = CORRUPT
    elseif mode ~= REFUND then
      code = b.kind.verdict(b, cost)
    end
    if code ~= PASS and b.enforce and mode ~= REFUND then allowed = 0 end
    out[o + 1] = code
    o = o + 2
  end
  out[head] = allowed
  for j = 1, rules do
    local b, cost = buckets[args[at + 1 + 2 * j]], args[at + 2 + 2 * j]
    local row = head + 2 * j - 1
    if not b.bad then
      if mode == REFUND then
        b.kind.refund(b, cost)
      elseif mode == CONSUME and allowed == 1 and out[row] == PASS then
        b.kind.charge(b, cost)
      end
    end
    out[row + 1] = b.bad and 0 or b.kind.level(b)
  end
  at = at + 2 + 2 * rules
end
if at ~= #args then return refuse('too many arguments') end

-- Writes.
for i = 1, keys do
  local b = buckets[i]
  if b.dirty then
    local value, ttl_ms = b.kind.save(b, now)
    redis.call('SET', KEYS[i], value, 'PX', ttl_ms)
  end
end
out[2] = rebased
return out
