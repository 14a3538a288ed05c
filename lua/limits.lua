-- limits: decides requests against their buckets, in order, each request all or nothing.
--
-- KEYS      the buckets the requests touch, each once, all in one hash slot; 1..1024
-- ARGV      non-negative integers below 2^53, in this order:
--   now       0: this server's TIME, read once. Otherwise the time to use, in us: for tests only
--   forms     forms of request, 1..64
--   per key   word, a, b, c, d
--     word      2 * kind, + 1 if the rule denies; without it is a shadow: charged like the others, it never denies
--     kind      1 token bucket
--     a         capacity in tokens, >= 1
--     b, c, d   the kind's parameters. Token bucket: refill in units per us and units per token, each >= 1, with
--               a * c < 2^53; 0
--   per form: mode, rules, then per rule: key, cost
--     mode      0 consume, 1 peek (decide, charge nothing), 2 refund (give back, always allowed)
--     rules     rules of this form, 1..16
--     key       index into KEYS, at most once per form
--     cost      tokens, >= 1
--   requests  the rest: each request's form, 1..64. Waiting requests of a busy tenant are mostly alike
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
local PEEK, REFUND = 1, 2
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

-- A kind says what its level means; the decision is the same for all: a cost of n tokens raises the level by n * unit and
-- passes if the level stays at most top.
--   open(raw, a, b, c, d, now)        the stored value (false: no key) as of now: top, unit, level, ahead, rebased; no
--                                     level if the value is not this kind's; nothing at all if a..d are out of bounds
--   save(level, ahead, a, b, c, d, now)  the value to store, and its TTL in ms
local token_bucket = {}

function token_bucket.open(raw, a, num, units, _, now)
  if a < 1 or num < 1 or units < 1 or a * units > MAX then return nil end
  local top = a * units
  if not raw then return top, units, 0, 0, false end

  local ts, used, stored_units = match(raw, '^(%d+) (%d+) (%d+)$')
  ts, used, stored_units = tonumber(ts), tonumber(used), tonumber(stored_units)
  if not ts or ts > MAX or used > MAX or stored_units > MAX or stored_units < 1 then return top, units, nil end

  if stored_units ~= units then
    -- The rule's rate was changed. The debt is kept in tokens, rounded up to the new unit: the only inexact step.
    local whole = floor(used / stored_units)
    used = whole * units + mul_div_ceil(used - whole * stored_units, units, stored_units)
    if used > MAX then used = MAX end
  end
  if ts <= now then
    local refill = (now - ts) * num
    return top, units, refill < used and used - refill or 0, 0, false
  elseif ts - now <= AHEAD_US then
    return top, units, used, ts - now, false
  end
  return top, units, used, 0, true
end

function token_bucket.save(used, ahead, _, num, units, _, now)
  local full_us = ceil(used / num) + ahead
  return format('%.0f %.0f %.0f', now + ahead, used, units), ceil(full_us / 1000) + GRACE_MS
end

local KINDS = { token_bucket }

local function refuse(what)
  return redis.error_reply('ERR limits: ' .. what)
end

-- Arguments.
local args, count = {}, #ARGV
for i = 1, count do
  local x = tonumber(ARGV[i])
  if not x or x < 0 or x > MAX or x % 1 ~= 0 then return refuse('argument ' .. i .. ' is not an integer below 2^53') end
  args[i] = x
end
local keys, forms = #KEYS, args[2]
if keys < 1 or keys > MAX_REQUESTS * MAX_RULES then return refuse('1 to 1024 keys') end
if not forms or forms < 1 or forms > MAX_REQUESTS then return refuse('1 to 64 forms') end

local now = args[1]
if now == 0 then
  local time = redis.call('TIME') -- once: before Redis 7.2 a second reading would differ
  now = time[1] * 1000000 + time[2]
end

-- Buckets: a column per property, indexed like KEYS.
local tops, unit, level, aheads, enforced, dirty, seen = {}, {}, {}, {}, {}, {}, {}
local raws = redis.call('MGET', unpack(KEYS))
local out, o, at = { now, 0 }, 2, 2
for i = 1, keys do
  local key, word = KEYS[i], args[at + 1]
  local kind = word and KINDS[floor(word / 2)]
  if not kind or not args[at + 5] then return refuse('parameters of key ' .. i) end
  local top, units, l, ahead, rebased = kind.open(raws[i], args[at + 2], args[at + 3], args[at + 4], args[at + 5], now)
  if not top then return refuse('parameters of key ' .. i) end
  if seen[key] then return refuse('key ' .. i .. ' is given twice') end
  seen[key] = true

  -- MGET answers nil for a value of another type, too; that is not a missing key.
  if not raws[i] and redis.call('EXISTS', key) == 1 then l = nil end
  tops[i], unit[i], level[i], aheads[i] = top, units, l or false, l and ahead or 0
  enforced[i], dirty[i] = word % 2 == 1, l and rebased
  if dirty[i] then out[2] = out[2] + 1 end
  o = o + 1
  out[o] = aheads[i]
  at = at + 5
end

-- Forms: the columns of their rules follow each other, indexed by the position of their first.
local modes, firsts, lasts, which, costs, nevers, n = {}, {}, {}, {}, {}, {}, 0
for f = 1, forms do
  local mode, rules = args[at + 1], args[at + 2]
  if not rules or mode > REFUND or rules < 1 or rules > MAX_RULES then return refuse('form ' .. f) end
  modes[f], firsts[f], lasts[f] = mode, n + 1, n + rules
  at = at + 2
  for j = 1, rules do
    local key, cost = args[at + 1], args[at + 2]
    if not cost or cost < 1 or not tops[key] or seen[key] == f then return refuse('rule ' .. j .. ' of form ' .. f) end
    seen[key] = f
    n = n + 1
    which[n], costs[n], nevers[n] = key, cost * unit[key], cost > args[key * 5 - 1]
    at = at + 2
  end
end
if at == count or count - at > MAX_REQUESTS then return refuse('1 to 64 requests') end

-- Decisions.
for r = at + 1, count do
  local f = args[r]
  local mode, first, last = modes[f], firsts[f], lasts[f]
  if not mode then return refuse('form of request ' .. r - at) end
  local head = o + 1
  local allowed = 1
  o = head
  for j = first, last do
    local key = which[j]
    local l, code = level[key], PASS
    if not l then
      code = CORRUPT
    elseif mode ~= REFUND then
      if nevers[j] then
        code = NEVER
      elseif l > tops[key] - costs[j] then
        code = DENIED
      end
    end
    if code ~= PASS and mode ~= REFUND and enforced[key] then allowed = 0 end
    out[o + 1], out[o + 2] = code, l or 0
    o = o + 2
  end
  out[head] = allowed
  if allowed == 1 and mode ~= PEEK then
    local row = head + 1
    for j = first, last do
      local key = which[j]
      if out[row] == PASS then
        local l = level[key]
        if mode ~= REFUND then
          l = l + costs[j]
          dirty[key] = true
        elseif l > 0 then
          l = l > costs[j] and l - costs[j] or 0
          dirty[key] = true
        end
        level[key], out[row + 1] = l, l
      end
      row = row + 2
    end
  end
end

-- Writes.
for i = 1, keys do
  if dirty[i] then
    local p = i * 5 - 2
    local value, ttl_ms = KINDS[floor(args[p] / 2)].save(
      level[i], aheads[i], args[p + 1], args[p + 2], args[p + 3], args[p + 4], now)
    redis.call('SET', KEYS[i], value, 'PX', ttl_ms)
  end
end
return out
