-- limits: decides requests against their buckets, in order, each request all or nothing.
--
-- KEYS      the buckets the requests touch, each once, 1..1024; then keys that are only read, 0..1024. All in one hash slot
-- ARGV      non-negative integers below 2^53, in this order:
--   now       0: this server's TIME, read once. Otherwise the time to use, in us: for tests only
--   reads     how many of KEYS, at the end, are only read
--   forms     forms of request, 1..64
--   per bucket: word, a, b, c, d
--     word      2 * kind, + 1 if the rule denies; without it is a shadow: charged like the others, it never denies
--     kind      1 token bucket, 2 leaky bucket, 3 fixed window, 4 sliding window, 5 sliding log
--     a         capacity in tokens, >= 1
--     b, c, d   the kind's parameters, see below
--   per form: mode, rules, then per rule: key, cost, and in a refund: at
--     mode      0 consume, 1 peek (decide, charge nothing), 2 refund (give back, always allowed)
--     rules     rules of this form, 1..16
--     key       index into KEYS, at most once per form
--     cost      tokens, >= 1
--     at        when they were charged: now + ahead of that reply. 0: now
--   requests  the rest: each request's form, 1..64. Waiting requests of a busy tenant are mostly alike
-- Reply     flat integers: now in us, keys rebased,
--           per bucket:  ahead: us by which the bucket's time is ahead of now (nothing comes back before they have passed)
--           per request: allowed 1|0, then per rule: code, and what the kind has to say
--     code      0 passes, 1 denied for now, 2 denied for ever (cost > capacity), 3 the stored value is not a bucket, 4 now
--               is in neither of the given windows: nothing of this request was decided or charged; ask again with others
--           and then, as strings, what the keys that are only read held before: '' for none, or for a value of another type
--
-- Kinds: b, c, d; what they say after the code, as of after this request's charge or refund if there was one
--   token bucket    units that come back per us, units per token (>= 1, a * c < 2^53), short form of c; units used
--   leaky bucket    the same
--   fixed window    start and end of a window and the end of the next, in us, of which one must contain now; or, if all
--                   are of one length: the length in us, any window's start below it, 0; tokens used
--   sliding window  ticks per window (a * b < 2^53), us per tick, short form of the window in ms; tokens of the current
--                   and of the previous window, both aligned to the epoch. A token of the previous one counts for the
--                   part of it that the sliding window still covers, in ticks
--   sliding log     us, 0, 0; tokens, us until the cost passes, until one more token than now, until all
--   A short form is a small number for a round one, so that it takes a byte: for n = m * 10^e, where e is at most 8 and m is
--   the i'th of MANTISSAS, counted from 0, (i * 8 + e - 1); for any other n = m * 10^e with the largest e <= 7, 128 + m * 8 + e.
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
--   4. A missing key is a bucket nothing was taken from, and a key lives until that is what it says (rounded up, plus 1 s),
--      so expiry changes no decision.
--   5. A value that is not a bucket is never treated as one, never overwritten, and denies (code 3).
--   6. Nothing is written before everything has been read and decided: an error leaves all buckets as they were.
--
-- Stored values are binary, because memory comes in size classes and most of them fit the one for 12 bytes:
--   time      us, 7 bytes, highest first. As the first byte of a text is at least 0x20, no text is a time below 2^53
--   varint    7 bits per byte, lowest first, the high bit says that more follow
--   rest      an integer in as few of the remaining bytes as hold it, highest first
-- All begin with the bucket's time, as of which the others are. Buckets: varint short form of the units per token, rest: units
-- used. Fixed window: rest: tokens of that time's window. Sliding window: varint short form of the window in ms, varint tokens
-- of that time's window, rest: tokens of the one before. Sliding log: a time per token, ascending.

local MAX = 9007199254740991
local AHEAD_US = 5000000
local GRACE_MS = 1000
local MAX_REQUESTS, MAX_RULES = 64, 16
local MAX_READS = 1024
local MAX_LOG = 1000
local PEEK, REFUND = 1, 2
local PASS, DENIED, NEVER, CORRUPT, STALE = 0, 1, 2, 3, 4

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local byte, char, rep, sub, concat = string.byte, string.char, string.rep, string.sub, table.concat
local pack, read = struct.pack, struct.unpack

-- The formats of a time, and of integers of 1..7 bytes, alone, after a time, and after a time and a byte.
local TIME = '>I7'
local WIDE = { '>I1', '>I2', '>I3', '>I4', '>I5', '>I6', '>I7' }
local TIMED = { '>I7I1', '>I7I2', '>I7I3', '>I7I4', '>I7I5', '>I7I6', '>I7I7' }
local MARKED = { '>I7I1I1', '>I7I1I2', '>I7I1I3', '>I7I1I4', '>I7I1I5', '>I7I1I6', '>I7I1I7' }
-- What remains of a second, minute or hour in us without its zeros when it is divided by the counts of usual rates.
local MANTISSAS = '\1\2\3\4\5\6\8\9\12\15\18\24\25\36\72\75'

-- width is the bytes that n needs.
local function width(n)
  if n < 65536 then return n < 256 and 1 or 2 end
  if n < 4294967296 then return n < 16777216 and 3 or 4 end
  return n < 1099511627776 and 5 or n < 281474976710656 and 6 or 7
end

local function varint(n)
  local s = ''
  while n >= 128 do n, s = floor(n / 128), s .. char(n % 128 + 128) end
  return s .. char(n)
end

-- read_varint is the varint of raw at a position, and the position after it; nothing if there is none below 2^53.
local function read_varint(raw, at)
  local n, unit = 0, 1
  for i = at, at + 7 do
    local b = byte(raw, i)
    if not b then return nil end
    if b < 128 then
      n = n + b * unit
      if n > MAX then return nil end
      return n, i + 1
    end
    n, unit = n + (b - 128) * unit, unit * 128
  end
  return nil
end

-- read_rest is what raw holds from a position on; nothing if that is not an integer below 2^53 in as few bytes as hold it.
local function read_rest(raw, at)
  local n = #raw - at + 1
  if n < 1 or n > 7 or (n > 1 and byte(raw, at) == 0) then return nil end
  local value = read(WIDE[n], raw, at)
  return value <= MAX and value or nil
end

-- long is what a short form stands for.
local function long(short)
  if short < 128 then return byte(MANTISSAS, floor(short / 8) + 1) * floor(10 ^ (short % 8 + 1) + 0.5) end
  return floor((short - 128) / 8) * floor(10 ^ (short % 8) + 0.5)
end

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

-- Buckets: a column per property, indexed like KEYS.
local now
local tops, unit, level, aheads, faults, enforced, dirty = {}, {}, {}, {}, {}, {}, {}
local xs, ys = {}, {} -- what else the kind wants to remember
local out = {}

-- A kind says what its level means; the decision is the same for all: a cost of n tokens raises the level by n * unit and
-- passes if the level stays at most top. In all of its functions i is the key's index.
--   open(raw, a, b, c, d, i)  the stored value (false: no key) as of now: top, unit, level, ahead, rebased. No level if there
--                             is none; the code then takes ahead's place. Nothing at all if a..d are out of bounds
--   save(i, a, b, c, d)       the value to store and its TTL in us
--   empty(i)                  whether nothing is taken: if its time is not ahead either, it says no more than a missing key
--   refund(i, cost, at, a, b, c, d)   optional: gives back. Otherwise the level sinks by the cost, to 0 at most
--   charge(i, cost)           optional: does more than raising the level
--   say(i, o, cost, code, a, b)   optional: puts what the kind says, if that is not the level alone, behind out[o] and returns
--                             the position of the last. Without it a code other than PASS, DENIED or NEVER has level 0

local function new_bucket()
  local kind = {}
  function kind.open(raw, a, num, units, short)
    if a < 1 or num < 1 or units < 1 or a * units > MAX or long(short) ~= units then return nil end
    local top = a * units
    if not raw then return top, units, 0, 0, false end

    local size = #raw
    if size < 9 then return top, units, nil, CORRUPT end
    local ts, stored, used, at
    if byte(raw, 8) == short and short < 128 and size < 16 and (size == 9 or byte(raw, 9) > 0) then
      ts, stored, used = read(MARKED[size - 8], raw) -- the usual case, in one go
    else
      ts = read(TIME, raw)
      stored, at = read_varint(raw, 8)
      used = at and read_rest(raw, at)
    end
    if not used or ts > MAX or used > MAX then return top, units, nil, CORRUPT end

    if stored ~= short then
      -- The rule's rate was changed. The debt is kept in tokens, rounded up to the new unit: the only inexact step.
      local stored_units = long(stored)
      if stored_units < 1 or stored_units > MAX then return top, units, nil, CORRUPT end
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

  function kind.save(i, _, num, _, short)
    local used, ahead = level[i], aheads[i]
    local ttl = ceil(used / num) + ahead
    if short < 128 then return pack(MARKED[width(used)], now + ahead, short, used), ttl end
    return pack(TIME, now + ahead) .. varint(short) .. pack(WIDE[width(used)], used), ttl
  end

  function kind.empty(i) return level[i] == 0 end

  return kind
end

-- A fixed window's level is the tokens taken in the window of now, or of its time if that is a little ahead. It belongs to the
-- window of its time, so that it is kept when the calendar changes beneath it. xs is the window's start, ys its end.
local function new_fixed_window()
  local kind = {}
  function kind.open(raw, a, b, c, d, i)
    if a < 1 or b < 1 then return nil end
    if d == 0 then
      if c >= b then return nil end
    elseif b >= c or c >= d then
      return nil
    end
    local ts, count = now, 0
    if raw then
      count = #raw > 7 and read_rest(raw, 8)
      ts = count and read(TIME, raw)
      if not ts or ts > MAX then return a, 1, nil, CORRUPT end
    end
    local as_of = ts > now and ts - now <= AHEAD_US and ts or now
    local first, last = b, c
    if d == 0 then
      first = as_of - (as_of - c) % b
      last = first + b
    elseif now < b or as_of >= d then
      return a, 1, nil, STALE
    elseif as_of >= c then
      first, last = c, d
    end
    xs[i], ys[i] = first, last
    return a, 1, ts >= first and count or 0, as_of - now, ts > now + AHEAD_US
  end

  function kind.save(i)
    local count, ts = level[i], now + aheads[i]
    return pack(TIMED[width(count)], ts, count), ys[i] - now
  end

  function kind.empty(i) return level[i] == 0 end

  function kind.refund(i, cost, at)
    if at >= xs[i] and level[i] > 0 then
      level[i], dirty[i] = max(level[i] - cost, 0), true
    end
  end

  return kind
end

-- A sliding window's level is in ticks of tokens: those of the current window, xs, count for all its ticks, those of the
-- previous one, ys, for the ticks that the sliding window still covers.
local function new_sliding_window()
  local kind = {}
  function kind.open(raw, a, ticks, tick, short, i)
    local us = ticks * tick
    if a < 1 or ticks < 1 or tick < 1 or a * ticks > MAX or us > MAX or long(short) * 1000 ~= us then return nil end
    local top, ts, current, previous = a * ticks, now, 0, 0
    if raw then
      if #raw < 10 then return top, ticks, nil, CORRUPT end
      local stored, at
      ts = read(TIME, raw)
      stored, at = read_varint(raw, 8)
      if at then current, at = read_varint(raw, at) end
      previous = at and read_rest(raw, at)
      local stored_us = previous and long(stored) * 1000
      if not previous or ts > MAX or stored_us < 1 or stored_us > MAX then return top, ticks, nil, CORRUPT end

      local rebased = ts > now + AHEAD_US
      if previous > 0 and (rebased or stored ~= short) then
        -- The clock was set back or the window's length was changed: what the count was as of its time, rounded up, counts as
        -- charged then.
        local rest = stored_us - ts % stored_us
        current = min(MAX, current + (rest == stored_us and previous or mul_div_ceil(rest, previous, stored_us)))
        previous = 0
      end
      if rebased then ts = now end
      if ts < now then
        local passed = floor(now / us) - floor(ts / us)
        if passed == 1 then
          current, previous = 0, current
        elseif passed > 1 then
          current, previous = 0, 0
        end
      end
      xs[i], ys[i] = current, previous
      local as_of = max(ts, now)
      return top, ticks, current * ticks + previous * (ticks - floor(as_of % us / tick)), as_of - now, rebased
    end
    xs[i], ys[i] = 0, 0
    return top, ticks, 0, 0, false
  end

  function kind.save(i, _, ticks, tick, short)
    local current, previous, ts = xs[i], ys[i], now + aheads[i]
    local us = ticks * tick
    return pack(TIME, ts) .. varint(short) .. varint(current) .. pack(WIDE[width(previous)], previous),
      aheads[i] - ts % us + (current > 0 and 2 or 1) * us
  end

  function kind.empty(i) return xs[i] + ys[i] == 0 end

  function kind.charge(i, cost) xs[i] = xs[i] + cost end

  function kind.refund(i, cost, at, _, ticks, tick)
    local us, as_of = ticks * tick, now + aheads[i]
    local first = as_of - as_of % us
    if at >= first then
      if xs[i] == 0 then return end
      xs[i] = max(xs[i] - cost, 0)
    elseif at >= first - us and ys[i] > 0 then
      ys[i] = max(ys[i] - cost, 0)
    else
      return
    end
    level[i], dirty[i] = xs[i] * ticks + ys[i] * (ticks - floor(as_of % us / tick)), true
  end

  function kind.say(i, o, _, code)
    local known = code < CORRUPT
    out[o + 1], out[o + 2] = known and xs[i] or 0, known and ys[i] or 0
    return o + 2
  end

  return kind
end

-- A sliding log's level is its tokens younger than the window. xs is the stored value, ys the position in it of the first of
-- these, zs how many were taken in this call: all of them at the bucket's time, so that they need not be written one by one.
local function new_sliding_log()
  local kind, zs = {}, {}

  -- behind is the position of the first time in log that is later than us, at or behind position first.
  local function behind(log, first, us)
    local low, high = (first - 1) / 7, #log / 7 -- the answer's index is in low..high
    while low < high do
      local middle = floor((low + high) / 2)
      if read(TIME, log, middle * 7 + 1) > us then high = middle else low = middle + 1 end
    end
    return low * 7 + 1
  end

  function kind.open(raw, a, us, c, d, i)
    if a < 1 or a > MAX_LOG or us < 1 or c ~= 0 or d ~= 0 then return nil end
    zs[i] = 0
    if not raw then
      xs[i], ys[i] = '', 1
      return a, 1, 0, 0, false
    end
    local size = #raw
    if size < 7 or size % 7 ~= 0 or size > (MAX_LOG + 1) * 7 then return a, 1, nil, CORRUPT end
    local ts, oldest, newest = read(TIME, raw), 0, 0
    if size > 7 then oldest, newest = read(TIME, raw, 8), (read(TIME, raw, size - 6)) end
    if ts > MAX or newest > ts or oldest > newest then return a, 1, nil, CORRUPT end

    local rebased, first = ts > now + AHEAD_US, behind(raw, 8, max(ts, now) - us)
    if rebased then
      local moved = {}
      for at = first, size, 7 do
        moved[#moved + 1] = pack(TIME, max(0, read(TIME, raw, at) - (ts - now)))
      end
      raw, first, ts = concat(moved), 1, now
    end
    xs[i], ys[i] = raw, first
    return a, 1, (#raw + 1 - first) / 7, max(0, ts - now), rebased
  end

  -- leaves is in how many us the n'th oldest token does.
  local function leaves(i, n, us)
    local at = ys[i] + (n - 1) * 7
    return (at < #xs[i] and read(TIME, xs[i], at) or now + aheads[i]) + us - now
  end

  function kind.save(i, _, us)
    local stamp = pack(TIME, now + aheads[i])
    return stamp .. sub(xs[i], ys[i]) .. rep(stamp, zs[i]), level[i] == 0 and aheads[i] or leaves(i, level[i], us)
  end

  function kind.empty(i) return level[i] == 0 end

  function kind.charge(i, cost) zs[i] = zs[i] + cost end

  -- refund takes the newest tokens that are not younger than the charge: those are its own, or they are gone.
  function kind.refund(i, cost, at)
    local taken = at >= now + aheads[i] and min(cost, zs[i]) or 0
    local log, last = xs[i], behind(xs[i], ys[i], at)
    local stored = min(cost - taken, (last - ys[i]) / 7)
    if taken + stored == 0 then return end
    zs[i] = zs[i] - taken
    if stored > 0 then xs[i] = sub(log, 1, last - 1 - stored * 7) .. sub(log, last) end
    level[i], dirty[i] = level[i] - taken - stored, true
  end

  function kind.say(i, o, cost, code, a, us)
    local count = level[i] or 0
    out[o + 1] = count
    out[o + 2] = code == DENIED and leaves(i, count + cost - a, us) or 0
    out[o + 3] = count > 0 and leaves(i, max(1, count - a + 1), us) or 0
    out[o + 4] = count > 0 and leaves(i, count, us) or 0
    return o + 4
  end

  return kind
end

-- Kinds are made when the first key asks for them: most calls have one or two, and making a function costs as much as running
-- it once.
local NEW, KINDS = { new_bucket, new_bucket, new_fixed_window, new_sliding_window, new_sliding_log }, {}

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
local reads, forms = args[2], args[3]
if not reads or reads > MAX_READS then return refuse('0 to 1024 keys that are only read') end
local keys = #KEYS - reads
if keys < 1 or keys > MAX_REQUESTS * MAX_RULES then return refuse('1 to 1024 keys') end
if not forms or forms < 1 or forms > MAX_REQUESTS then return refuse('1 to 64 forms') end

now = args[1]
if now == 0 then
  local time = redis.call('TIME') -- once: before Redis 7.2 a second reading would differ
  now = time[1] * 1000000 + time[2]
end

local kinds, charges, says, seen = {}, {}, {}, {}
local raws = redis.call('MGET', unpack(KEYS))
local o, at = 2, 3
out[1], out[2] = now, 0
for i = 1, keys do
  local key, word = KEYS[i], args[at + 1]
  local new = word and NEW[floor(word / 2)]
  if not new or not args[at + 5] then return refuse('parameters of key ' .. i) end
  local kind = KINDS[new]
  if not kind then
    kind = new()
    KINDS[new] = kind
  end
  local raw = raws[i]
  local top, units, l, ahead, rebased = kind.open(raw, args[at + 2], args[at + 3], args[at + 4], args[at + 5], i)
  if not top then return refuse('parameters of key ' .. i) end
  if seen[key] then return refuse('key ' .. i .. ' is given twice') end
  seen[key] = true

  if not l then
    faults[i], l, ahead, rebased = ahead, false, 0, false
  elseif not raw and redis.call('EXISTS', key) == 1 then
    -- MGET answers nil for a value of another type, too; that is not a missing key.
    faults[i], l, ahead, rebased = CORRUPT, false, 0, false
  end
  charges[i], says[i] = kind.charge, kind.say
  kinds[i], tops[i], unit[i], level[i], aheads[i], enforced[i], dirty[i] = kind, top, units, l, ahead, word % 2 == 1, rebased
  if rebased then out[2] = out[2] + 1 end
  o = o + 1
  out[o] = ahead
  at = at + 5
end

-- Forms: the columns of their rules follow each other, indexed by the position of their first.
local modes, firsts, lasts, which, costs, rises, nevers, ats, n = {}, {}, {}, {}, {}, {}, {}, {}, 0
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
    which[n], costs[n], rises[n], nevers[n] = key, cost, cost * unit[key], cost > args[key * 5]
    at = at + 2
    if mode == REFUND then
      at = at + 1
      if not args[at] then return refuse('rule ' .. j .. ' of form ' .. f) end
      ats[n] = args[at] == 0 and MAX or args[at]
    end
  end
end
if at == count or count - at > MAX_REQUESTS then return refuse('1 to 64 requests') end

local function give_back(i, j)
  local refund, l = kinds[i].refund, level[i]
  if refund then
    local p = i * 5
    refund(i, costs[j], ats[j], args[p], args[p + 1], args[p + 2], args[p + 3])
  elseif l > 0 then
    level[i], dirty[i] = max(0, l - rises[j]), true
  end
end

-- Decisions.
local codes = {}
for r = at + 1, count do
  local f = args[r]
  local mode, first, last = modes[f], firsts[f], lasts[f]
  if not mode then return refuse('form of request ' .. r - at) end
  local allowed = 1
  for j = first, last do
    local i = which[j]
    local l, code = level[i], PASS
    if not l then
      code = faults[i]
    elseif mode ~= REFUND then
      if nevers[j] then
        code = NEVER
      elseif l > tops[i] - rises[j] then
        code = DENIED
      end
    end
    if code == STALE or code ~= PASS and mode ~= REFUND and enforced[i] then allowed = 0 end
    codes[j] = code
  end
  o = o + 1
  out[o] = allowed
  local act = allowed == 1 and mode ~= PEEK
  for j = first, last do
    local i, code = which[j], codes[j]
    if act and code == PASS then
      if mode == REFUND then
        give_back(i, j)
      else
        level[i], dirty[i] = level[i] + rises[j], true
        local charge = charges[i]
        if charge then charge(i, costs[j]) end
      end
    end
    out[o + 1] = code
    local say = says[i]
    if say then
      local p = i * 5
      o = say(i, o + 1, costs[j], code, args[p], args[p + 1])
    else
      out[o + 2] = level[i] or 0
      o = o + 2
    end
  end
end

-- Writes: deletions last, as a server that is out of memory takes them and nothing else.
local gone = {}
for i = 1, keys do
  if dirty[i] then
    if aheads[i] == 0 and kinds[i].empty(i) then
      gone[#gone + 1] = KEYS[i]
    else
      local p = i * 5
      local value, ttl_us = kinds[i].save(i, args[p], args[p + 1], args[p + 2], args[p + 3])
      redis.call('SET', KEYS[i], value, 'PX', ceil(ttl_us / 1000) + GRACE_MS)
    end
  end
end
if gone[1] then redis.call('DEL', unpack(gone)) end
for i = keys + 1, keys + reads do
  o = o + 1
  out[o] = raws[i] or ''
end
return out
