-- limits: decides requests in order. Each request is charged on all its buckets or on none.
--
-- KEYS      in this order, all in one hash slot:
--             the buckets of the requests, each once;
--             the id of each request whose form has an id, in the order of the requests. Buckets and ids are 1..1024;
--             the key of the life, if life is not 0;
--             the keys of the bans of the buckets whose rules have a ban;
--             a key that no other call has, if the first form is a raise
-- ARGV      non-negative integers below 2^53, in this order:
--   now       0: the script uses Redis's TIME, read once. Otherwise the time that it uses, in us, for tests only
--   rules     the number of rules, 1..1024
--   forms     the number of forms, 1..64. A form is a request without its first bucket
--   life      the life of the data that the caller knows (see below); 1: the caller knows no life; 0: do not compare
--             lives. If the data has another life, nothing is decided
--   per rule: word, a, b, c, d
--     word      2 * kind + 1; for a shadow rule 2 * kind: it is charged like other rules and never denies; plus 16 if
--               the rule has a ban
--     kind      1 token bucket, 2 leaky bucket, 3 fixed window, 4 sliding window, 5 sliding log
--     a         capacity in tokens, >= 1
--     b, c, d   the kind's parameters, see below
--   per rule with a ban, in order: after, within, length; then, if there is such a rule, the number of buckets whose
--   rules have a ban, and the indexes of these buckets in KEYS
--     after     the number of denials, 1..1000, that begin a ban if all are less than `within` us old
--     length    the duration of the ban in us. within and length are >= 1
--   per form: mode, charges; then per charge: rule, bucket, cost; and in a refund: at; after the fact: at, debt; in a
--   raise: at, x, y, debt, own at, own y; and if the form has an id: mark
--     mode      0 consume
--               1 peek: decide and charge nothing
--               2 refund: give back, always allowed
--               3 raise, always allowed. The charge has two levels of the bucket: the known level, which the caller
--                 saw before Redis lost its data, and the own level, which is what the caller charged while it did not
--                 reach Redis. A level below the known level is raised to it. Then the own level is added, up to the
--                 capacity plus the debt. A bucket of a raise must be in no other request of the call. If the first
--                 form is a raise, the call has an effect once, however often it is sent within MARK_S
--               4 after the fact, always allowed: charge cost, up to the capacity plus the debt. The cost may belong to
--                 an earlier charge. Then what would have come back by itself since that charge is not charged
--               A consume or refund that has an id adds 8. In a consume, a rule that the id has charged in the last 10
--               minutes passes and is not charged again. A refund makes the id forget its rules
--     charges   the number of charges of this form, 1..16
--     rule      the number of the rule, from 1. All charges of a bucket have the same rule
--     bucket    below 16: the distance in KEYS from the request's first bucket; else 15 + the index in KEYS. A request
--               has each bucket at most once
--     cost      tokens, >= 1. In a raise: x of the own level, >= 0
--     at        in a refund and after the fact, of a window or log: the time of the earlier charge, that is, now + ahead
--               in its reply. Of a bucket: the time at which the bucket would have been full again after this charge.
--               0: the time is now. In a raise: the time of the known level
--     debt      tokens that may be owed beyond the capacity, >= 0
--     x, y      the known level: x is the units of a bucket, or the tokens of a log or window. y is the tokens of the
--               previous window. It is 0 unless the kind is a sliding window
--     own at    the time of the own level. All tokens of a log in a level count as taken at its time
--     own y     y of the own level
--     mark      the number under which the id remembers the rule
--   requests  the other arguments, 1..64 requests. Each is 64 * the index of the request's first bucket + the index of
--             its form, from 0. A request is one number because most requests of a call differ only in the tenant, and
--             reading an argument takes a tenth of the time of a decision
-- Reply     a string of integers, each in 7 bytes, highest byte first: now in us, the number of rebased buckets, the
--           number of buckets that are ahead, and the life (0: not compared). If the data has another life than the
--           caller knows, the reply ends here. Otherwise it continues:
--           per request: allowed 1|0; then per charge: code, and the values of the kind
--           per bucket that is ahead: its index in KEYS, and the us by which its time is ahead of now. Until now has
--           reached its time, no tokens come back
--     code      0 the charge passes
--               1 denied; the cost passes later
--               2 the cost exceeds the capacity, so it never passes
--               3 the stored value is not a bucket
--               4 now is in none of the given windows. Nothing of this request was decided or charged. The caller must
--                 send it again with other windows
--               5 passes uncharged: the id has charged the rule before
--               In a charge after the fact, 8 times the number of taken tokens is added to the code. If the bucket is
--               banned, 8 times the us until the ban ends is added
--
-- Kinds: the parameters b, c, d; then the values after the code, which include this request's charge or refund
--   token bucket    units that come back per us, units per token (>= 1, a * c < 2^53), short form of c; units used
--   leaky bucket    as for a token bucket
--   fixed window    start and end of a window and the end of the next window, in us: one of these windows must contain
--                   now. If all windows have the same length: the length in us, the start of a window (less than the
--                   length), 0; tokens used
--   sliding window  ticks per window (a * b < 2^53), us per tick, short form of the window in ms; tokens of the current
--                   and of the previous window. Windows are aligned to 1970-01-01 UTC. A token of the previous window
--                   counts for the ticks of that window that the sliding window still covers
--   sliding log     length of the window in us, short form of the window in ms, 0; tokens used, us until the cost
--                   passes, us until one more token passes than now, us until the whole capacity passes
--   The short form of a round number is a small number, which takes one byte. If n = m * 10^e, e is 1..8 and m is the
--   i'th of MANTISSAS, counted from 0, the short form of n is i * 8 + e - 1. For any other n = m * 10^e, with the
--   largest e <= 7, it is 128 + m * 8 + e.
--
-- Invariants
--   1. A request is charged on all its rules or on none. A shadow rule is charged if and only if the request is allowed
--      and the shadow rule itself passes. A charge after the fact is limited for each rule separately.
--   2. A denied or peeked request does not write its buckets, with two exceptions. If the time of a bucket is more than
--      AHEAD_US ahead of now, the clock was set back, and the bucket is rebased to now with its level kept. Otherwise
--      every denial would start from the old time, and no token would come back until the clock has caught up. Only a
--      fixed window is not rebased if its time is in the next window: else this window would begin anew. If the
--      rate or the window of its rule has changed, the bucket is converted. It is refilled at the old rate up to now
--      and at the new rate from now on, and its key gets the TTL that the new rate needs. Otherwise the key would
--      expire at the old time, and its level would be lost.
--   3. All arithmetic is exact. Every value is an integer below 2^53, so sums and products are exact. The floor and the
--      ceil of a quotient of two such integers are exact, too, because a non-integer quotient differs from the next
--      integer by at least 1/divisor. This is more than half a unit in the last place. A product may exceed 2^53 only
--      where it is compared with a smaller value. The comparison is right, because rounding is monotone.
--   4. A missing key is a bucket from which nothing was taken. A key exists until its bucket is full (rounded up, plus
--      1 s) under the rate and window that were used last, so expiry changes no decision.
--   5. A value that is not a bucket is neither used nor overwritten. It denies (code 3).
--   6. A banned bucket denies every consume and peek. A denied consume counts towards the ban, unless the bucket is
--      already banned. A peek never counts. If a ban would last longer than its rule allows, because the rule has
--      changed or the clock was set back, it is shortened.
--   7. No bucket, no ban and no id is written before everything has been read and decided. So an error leaves all buckets
--      unchanged.
--
-- The life (in Go: the epoch) is a key that is stored with the buckets. Its value is the time in us at which the key
-- was first missing. If Redis loses its data, the key is lost together with the buckets, and is created again with
-- another value. So a caller that knows the old life notices that the buckets are lost. The key expires after
-- MAX_LIFE_S.
--
-- Stored values are binary, because memory is allocated in size classes. Most values fit the class for up to 12 bytes:
--   time      us, in 7 bytes, the highest first. The first byte of a text is at least 0x20, so no text is a time below
--             2^53
--   varint    7 bits per byte, the lowest first; the high bit of a byte means that more bytes follow
--   rest      an integer in as few bytes as possible, the highest first, to the end of the value
-- All buckets begin with their time. Their other values are as of this time.
--   ban             the time when the ban ends; or 7 bytes of 0, and the time of each denial
--   bucket          varint short form of the units per token; then, unless one unit comes back per us, a byte 0 and the
--                   number of units that come back per us in 7 bytes; rest: units used
--   fixed window    a byte 0; a byte n for the key's lifetime after the time, (8 + n % 8) * 2 ^ (10 + n / 8) us. This
--                   is the time until the end of the window, rounded up to four bits (366 days and 5 s are 255); rest:
--                   tokens of the window that contains the time
--   sliding window  varint short form of the window in ms, varint tokens of the window that contains the time, rest:
--                   tokens of the previous window
--   sliding log     the time of each token, ascending; rest, of 1..6 bytes: short form of the window in ms
--   id              for each rule that it has charged: mark and time, in 7 bytes each. A value of another form is an id
--                   that has charged nothing
-- The previous version of this script stored fixed windows without their lifetime, logs without the short form, and
-- buckets without the units that come back per us.

local MAX = 9007199254740991
local AHEAD_US = 5000000
local GRACE_MS = 1000
local TESTED_MS = 600000 -- instead of GRACE_MS if a test sets the time, because keys expire by Redis's clock
local MAX_REQUESTS, MAX_CHARGES = 64, 16
local MAX_KEYS = 1024
local PACKED = 256 -- integers that are packed at a time, because unpack can return only a few thousand values
local MAX_LOG = 1000
local MAX_DENIALS = 1000
local CONSUME, PEEK, REFUND, RAISE, LATE, WITH_ID = 0, 1, 2, 3, 4, 8
local ID_US = 600000000 -- how long an id remembers a rule that it has charged
local MAX_LIFE_S = 34560000 -- 400 days, longer than any window
local MARK_S = 86400 -- a day: for so long a repeated raise has no effect. Callers repeat it when they reach Redis again
local PASS, DENIED, NEVER, CORRUPT, STALE, AGAIN = 0, 1, 2, 3, 4, 5

local floor, ceil, max, min, frexp = math.floor, math.ceil, math.max, math.min, math.frexp
local byte, char, rep, sub, format, concat = string.byte, string.char, string.rep, string.sub, string.format, table.concat
local pack, read = struct.pack, struct.unpack

-- These are formats of struct.pack. TIME is the format of a time. The other lists have formats for an integer of 1..7
-- bytes: WIDE for the integer alone, MARKED with a time and a byte before it, NUMBERED with a time, two bytes and a
-- number of 7 bytes before it, and TWICE with a time and two bytes before it.
local TIME = '>I7'
local WIDE = { '>I1', '>I2', '>I3', '>I4', '>I5', '>I6', '>I7' }
local MARKED = { '>I7I1I1', '>I7I1I2', '>I7I1I3', '>I7I1I4', '>I7I1I5', '>I7I1I6', '>I7I1I7' }
local NUMBERED = { '>I7I1I1I7I1', '>I7I1I1I7I2', '>I7I1I1I7I3', '>I7I1I1I7I4', '>I7I1I1I7I5', '>I7I1I1I7I6', '>I7I1I1I7I7' }
local TWICE = { '>I7I1I1I1', '>I7I1I1I2', '>I7I1I1I3', '>I7I1I1I4', '>I7I1I1I5', '>I7I1I1I6', '>I7I1I1I7' }
-- MANTISSAS are the mantissas of short forms: a second, a minute and an hour in us, divided by the counts of usual
-- rates, without trailing zeros.
local MANTISSAS = '\1\2\3\4\5\6\8\9\12\15\18\24\25\36\72\75'

-- width returns the number of bytes that n needs as a rest.
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

-- read_varint returns the varint in raw from position at on, and the position after it. It returns nil if there is no
-- varint below 2^53.
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

-- read_rest returns the integer in raw from position at to the end. It returns nil if the integer is not below 2^53, or
-- has more bytes than needed.
local function read_rest(raw, at)
  local n = #raw - at + 1
  if n < 1 or n > 7 or (n > 1 and byte(raw, at) == 0) then return nil end
  local value = read(WIDE[n], raw, at)
  return value <= MAX and value or nil
end

-- long returns the number that has the given short form.
local function long(short)
  if short < 128 then return byte(MANTISSAS, floor(short / 8) + 1) * floor(10 ^ (short % 8 + 1) + 0.5) end
  return floor((short - 128) / 8) * floor(10 ^ (short % 8) + 0.5)
end

-- mul_div_ceil returns ceil(a * b / c) for a < c <= MAX and b <= MAX, and whether it has rounded up. It processes b bit
-- by bit, because a * b may exceed 2^53.
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
  if r > 0 then return q + 1, true end
  return q, false
end

-- The buckets. There is one table for each property of a bucket, with the same indexes as KEYS.
local now, grace
local level, aheads, faults, dirty = {}, {}, {}, {}
local xs, ys = {}, {} -- additional values, whose meaning depends on the kind
local out = { 0, 0, 0, 0 }

-- Each kind defines what its level is. The decision is the same for all kinds: a cost of n tokens raises the level by
-- n * unit, and passes if the level is then at most top. In all functions i is the key's index, and a..d are the rule's
-- parameters.
--   measure(a, b, c, d)           returns top and unit, or nil if a..d are out of bounds
--   open(raw, i, a, b, c, d)      returns the state of the stored value raw (false: no key) as of now: level, ahead,
--                                 rebased, and settled (true: the rate or window has changed since it was written). If
--                                 the code is not PASS, it returns nil and the code
--   save(i, a, b, c, d)           returns the value to store and its TTL in us
--   empty(i)                      returns whether nothing is taken. If its time is not ahead, the key is not needed
--   refund(i, cost, at, a, b, c, d)   gives back at most cost
--   charge(i, cost)               optional: changes the additional values. The caller raises the level
--   late(i, cost, at, a, b, c, d)   changes the additional values like charge, for a charge at the time `at`. It returns
--                                 by how much the caller must raise the level
--   join(i, more, x, y, at)       optional: changes the additional values for a level that the caller adds. more is
--                                 this level, x and y are its additional values, and at is its time
--   say(i, o, cost, code, a, b)   optional: writes the values of the kind from out[o + 1] on, and returns the last
--                                 position. Without it the value is the level, or 0 for a code other than PASS, DENIED
--                                 or NEVER

local function new_bucket()
  local kind = {}
  function kind.measure(a, num, units, short)
    if a >= 1 and num >= 1 and units >= 1 and a * units <= MAX and long(short) == units then return a * units, units end
  end

  function kind.open(raw, i, _, num, units, short)
    xs[i] = nil
    if not raw then return 0, 0, false end

    local size = #raw
    if size < 9 then return nil, CORRUPT end
    local ts, stored, speed, used, _ = nil, short, num, nil, nil
    if byte(raw, 8) == short and short < 128 then -- the usual cases, with one read
      if num == 1 then
        if size < 16 and (size == 9 or byte(raw, 9) > 0) then ts, _, used = read(MARKED[size - 8], raw) end
      elseif size > 16 and size < 24 and byte(raw, 9) == 0 and (size == 17 or byte(raw, 17) > 0) then
        ts, _, _, speed, used = read(NUMBERED[size - 16], raw)
      end
    end
    if not ts then
      local at
      ts, speed = read(TIME, raw), 1
      stored, at = read_varint(raw, 8)
      if at and size > at and byte(raw, at) == 0 then
        speed = size >= at + 8 and read(TIME, raw, at + 1)
        at = speed and speed > 1 and at + 8
      end
      used = at and read_rest(raw, at)
      if not used then return nil, CORRUPT end
    end
    if ts > MAX or used > MAX or speed > MAX then return nil, CORRUPT end

    local ahead, rebased = 0, false
    if ts <= now then
      local refill = (now - ts) * speed
      used = refill < used and used - refill or 0
    elseif ts - now <= AHEAD_US then
      ahead = ts - now
    else
      rebased = true
    end
    if stored == short and speed == num then return used, ahead, rebased end

    -- The rule's rate has changed. The used tokens stay used, rounded up to the new unit. Only this step rounds. xs is
    -- the rate with which the bucket was stored, ys its units per token.
    xs[i], ys[i] = speed, units
    if stored ~= short then
      local stored_units = long(stored)
      if stored_units < 1 or stored_units > MAX then return nil, CORRUPT end
      ys[i] = stored_units
      local whole = floor(used / stored_units)
      used = min(MAX, whole * units + mul_div_ceil(used - whole * stored_units, units, stored_units))
    end
    return used, ahead, rebased, true
  end

  function kind.save(i, _, num, _, short)
    local used, ahead = level[i], aheads[i]
    local ttl, wide = ceil(used / num) + ahead, width(used)
    if short < 128 then
      if num == 1 then return pack(MARKED[wide], now + ahead, short, used), ttl end
      return pack(NUMBERED[wide], now + ahead, short, 0, num, used), ttl
    end
    local speed = num == 1 and '' or char(0) .. pack(TIME, num)
    return pack(TIME, now + ahead) .. varint(short) .. speed .. pack(WIDE[wide], used), ttl
  end

  function kind.empty(i) return level[i] == 0 end

  -- refund gives back what of the bucket's level after the charge has not come back by itself until now.
  function kind.refund(i, cost, at, _, num, units)
    local back, left = min(level[i], cost * units), min(MAX, max(0, at - now - aheads[i]) * (xs[i] or num))
    if xs[i] and ys[i] ~= units then
      local whole = floor(left / ys[i])
      local part, rounded = mul_div_ceil(left - whole * ys[i], units, ys[i])
      left = whole * units + (rounded and part - 1 or part)
    end
    if at <= MAX then back = min(back, left) end
    if back > 0 then level[i], dirty[i] = level[i] - back, true end
  end

  function kind.late(i, cost, at, _, num, units) return max(0, cost * units - max(0, now + aheads[i] - at) * num) end

  return kind
end

-- The level of a fixed window is the number of tokens taken in the current window. If the bucket's time is a little
-- ahead or in the next window, it is the number taken in the window that contains this time. The stored level belongs to
-- the window that contains the bucket's time, so it is kept when the calendar changes. xs is the start of the window, ys
-- its end.
local function new_fixed_window()
  local kind = {}
  function kind.measure(a, b, c, d)
    local bounds = b < c and c < d or d == 0 and c < b
    if a >= 1 and b >= 1 and bounds then return a, 1 end
  end

  function kind.open(raw, i, _, b, c, d)
    local ts, count, life, _ = now, 0, nil, nil
    if raw then
      local size = #raw
      if size > 9 and size < 17 and byte(raw, 8) == 0 and (size == 10 or byte(raw, 10) > 0) then
        ts, _, life, count = read(TWICE[size - 9], raw)
      else
        count = size > 7 and read_rest(raw, 8)
        ts = count and read(TIME, raw)
      end
      if not ts or ts > MAX or count > MAX then return nil, CORRUPT end
    end
    local as_of = ts > now and ts - now <= AHEAD_US and ts or now
    local first, last = b, c
    if d == 0 then
      first = as_of - (as_of - c) % b
      last = first + b
    elseif now < b or as_of >= d then
      return nil, STALE
    elseif as_of >= c then
      first, last = c, d
    end
    local rebased = ts > now + AHEAD_US
    if rebased and ts >= last and ts < 2 * last - first then
      -- The clock was set back over the start of the next window, whose tokens stay taken until it ends.
      if last == d then return nil, STALE end
      rebased, as_of, first, last = false, last, last, d > 0 and d or last + b
    end
    xs[i], ys[i] = first, last
    if ts < first then return 0, as_of - now, false end
    local settled = count > 0 and not (life and ts + (8 + life % 8) * 2 ^ (10 + floor(life / 8)) >= last)
    return count, as_of - now, rebased, settled
  end

  function kind.save(i)
    local count, ts = level[i], now + aheads[i]
    local rest, life, span = ys[i] - ts, 0, 8192
    if rest > span then
      local m, e = frexp(rest)
      m = ceil(m * 16)
      life, span = m + 8 * e - 120, m * 2 ^ (e - 4)
    end
    return pack(TWICE[width(count)], ts, 0, life, count), aheads[i] + span
  end

  function kind.empty(i) return level[i] == 0 end

  function kind.refund(i, cost, at)
    if at >= xs[i] and level[i] > 0 then
      level[i], dirty[i] = max(level[i] - cost, 0), true
    end
  end

  function kind.late(i, cost, at) return at >= xs[i] and cost or 0 end

  return kind
end

-- The level of a sliding window is measured in tokens times ticks. Each token of the current window, xs, counts for all
-- ticks of the window. Each token of the previous window, ys, counts for the ticks that the sliding window covers.
local function new_sliding_window()
  local kind = {}
  function kind.measure(a, ticks, tick, short)
    local us = ticks * tick
    if a >= 1 and ticks >= 1 and tick >= 1 and a * ticks <= MAX and us <= MAX and long(short) * 1000 == us then
      return a * ticks, ticks
    end
  end

  function kind.open(raw, i, _, ticks, tick, short)
    local ts, current, previous, us = now, 0, 0, ticks * tick
    if raw then
      if #raw < 10 then return nil, CORRUPT end
      local stored, at
      ts = read(TIME, raw)
      stored, at = read_varint(raw, 8)
      if at then current, at = read_varint(raw, at) end
      previous = at and read_rest(raw, at)
      local stored_us = previous and long(stored) * 1000
      if not previous or ts > MAX or stored_us < 1 or stored_us > MAX then return nil, CORRUPT end

      local rebased = ts > now + AHEAD_US
      if previous > 0 and (rebased or stored ~= short) then
        -- The clock was set back or the window's length has changed. The estimate at the bucket's time, rounded up,
        -- replaces the tokens of both windows.
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
      return current * ticks + previous * (ticks - floor(as_of % us / tick)), as_of - now, rebased, stored ~= short
    end
    xs[i], ys[i] = 0, 0
    return 0, 0, false
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

  function kind.late(i, cost, at, _, ticks, tick)
    local us, as_of = ticks * tick, now + aheads[i]
    local first = as_of - as_of % us
    if at >= first then
      xs[i] = xs[i] + cost
      return cost * ticks
    elseif at >= first - us then
      ys[i] = ys[i] + cost
      return cost * (ticks - floor(as_of % us / tick))
    end
    return 0
  end

  function kind.join(i, _, x, y) xs[i], ys[i] = xs[i] + x, ys[i] + y end

  function kind.say(i, o, _, code)
    local known = code < CORRUPT
    out[o + 1], out[o + 2] = known and xs[i] or 0, known and ys[i] or 0
    return o + 2
  end

  return kind
end

-- The level of a sliding log is the number of its tokens that are younger than the window. xs is the stored value. ys
-- is the position of the first such token in xs, and es the end of the last one. zs is the number of tokens taken in
-- this call. They were all taken at the bucket's time, so they need not be written one by one.
local function new_sliding_log()
  local kind, es, zs = {}, {}, {}

  -- behind returns the position of the first time in log that is later than us. It searches from position first to
  -- position last. If no time is later, it returns last + 1.
  local function behind(log, first, last, us)
    local low, high = (first - 1) / 7, last / 7 -- the index of the result is in low..high
    while low < high do
      local middle = floor((low + high) / 2)
      if read(TIME, log, middle * 7 + 1) > us then high = middle else low = middle + 1 end
    end
    return low * 7 + 1
  end

  function kind.measure(a, us, short, d)
    if a >= 1 and a <= MAX_LOG and us >= 1 and d == 0 and long(short) * 1000 == us then return a, 1 end
  end

  function kind.open(raw, i, _, us, short)
    zs[i] = 0
    if not raw then
      xs[i], ys[i], es[i] = '', 1, 0
      return 0, 0, false
    end
    local size = #raw
    local rest, stored = size % 7, nil
    size = size - rest
    if rest == 1 then stored = byte(raw, size + 1) elseif rest > 1 then stored = read_rest(raw, size + 1) end
    if size < 7 or size > (MAX_LOG + 1) * 7 or rest > 0 and not stored then return nil, CORRUPT end
    local ts, oldest, newest = read(TIME, raw), 0, 0
    if size > 7 then oldest, newest = read(TIME, raw, 8), (read(TIME, raw, size - 6)) end
    if ts > MAX or newest > ts or oldest > newest then return nil, CORRUPT end

    local rebased, first = ts > now + AHEAD_US, behind(raw, 8, size, max(ts, now) - us)
    if rebased then
      local moved = {}
      for at = first, size, 7 do
        moved[#moved + 1] = pack(TIME, max(0, read(TIME, raw, at) - (ts - now)))
      end
      raw, first, ts, size = concat(moved), 1, now, #moved * 7
    end
    xs[i], ys[i], es[i] = raw, first, size
    return (size + 1 - first) / 7, max(0, ts - now), rebased, stored ~= short
  end

  -- leaves returns the time in us until the n'th oldest token leaves the window.
  local function leaves(i, n, us)
    local at = ys[i] + (n - 1) * 7
    return (at < es[i] and read(TIME, xs[i], at) or now + aheads[i]) + us - now
  end

  function kind.save(i, _, us, short)
    local stamp = pack(TIME, now + aheads[i])
    local form = short < 256 and char(short) or pack(WIDE[width(short)], short)
    return stamp .. sub(xs[i], ys[i], es[i]) .. rep(stamp, zs[i]) .. form,
      level[i] == 0 and aheads[i] or leaves(i, level[i], us)
  end

  function kind.empty(i) return level[i] == 0 end

  function kind.charge(i, cost) zs[i] = zs[i] + cost end

  function kind.join(i, more, _, _, at)
    local token = pack(TIME, min(at, now + aheads[i]))
    local last = behind(xs[i], ys[i], es[i], at)
    xs[i], es[i] = sub(xs[i], 1, last - 1) .. rep(token, more) .. sub(xs[i], last, es[i]), es[i] + more * 7
  end

  -- refund removes the newest tokens that are not younger than the charge. These are its own tokens, if the log still
  -- has them.
  function kind.refund(i, cost, at)
    local taken = at >= now + aheads[i] and min(cost, zs[i]) or 0
    local log, last = xs[i], behind(xs[i], ys[i], es[i], at)
    local stored = min(cost - taken, (last - ys[i]) / 7)
    if taken + stored == 0 then return end
    zs[i] = zs[i] - taken
    if stored > 0 then xs[i], es[i] = sub(log, 1, last - 1 - stored * 7) .. sub(log, last, es[i]), es[i] - stored * 7 end
    level[i], dirty[i] = level[i] - taken - stored, true
  end

  function kind.late(i, cost, at, _, us)
    if at <= now + aheads[i] - us then return 0 end
    kind.join(i, cost, nil, nil, at)
    return cost
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

-- A kind is created when the first rule needs it. Most calls need one or two kinds, and creating a function takes as
-- long as running it once.
local NEW, KINDS = { new_bucket, new_bucket, new_fixed_window, new_sliding_window, new_sliding_log }, {}

-- new_bans is called only if a rule has a ban. ban_of has the ban of each rule. The other tables are indexed by bucket:
-- ban_key is the index of the bucket's ban in KEYS, ends the time at which its ban ends, denied the times of its
-- denials, and changed the ban, if ends or denied have changed.
--   read(rules, args, at, keys)   reads the bans of rules after args[at]. It returns the position of the last argument
--                                 and the number of buckets, or nil if the arguments are not bans
--   judge(...)                    adds bans to the codes of the charges first..final of a request, and counts its
--                                 denials. It returns whether the request is denied, by a ban or by a stale window
--   write()                       stores the changed values
local function new_bans()
  local ban_of, ban_key, ends, denied, changed = {}, {}, {}, {}, {}
  local all = {}
  function all.read(rules, args, at, keys)
    for _, r in ipairs(rules) do
      local ban = { after = args[at + 1], within = args[at + 2], length = args[at + 3] }
      if not ban.length or ban.after < 1 or ban.after > MAX_DENIALS or ban.within < 1 or ban.length < 1 then return nil end
      ban_of[r], at = ban, at + 3
    end
    at = at + 1
    local own = args[at]
    if not own or own > keys - 1 then return nil end
    keys = keys - own
    for n = 1, own do
      local i = args[at + n]
      if not i or i < 1 or i > keys or ban_key[i] then return nil end
      ban_key[i] = #KEYS - own + n
    end
    return at + own, keys
  end

  -- open returns the time at which the ban of bucket i ends. The first call for a bucket reads its stored ban.
  local function open(i, ban, raws)
    if not ends[i] then
      local raw, times = raws[ban_key[i]] or '', {}
      ends[i] = #raw == 7 and read(TIME, raw) or 0
      for from = 8, #raw - 6, 7 do times[#times + 1] = read(TIME, raw, from) end
      denied[i] = times
      if ends[i] - now > ban.length then ends[i], changed[i] = now + ban.length, ban end
    end
    return ends[i]
  end

  -- count counts a denial by bucket i. It returns the time at which the bucket's ban ends. If the denial does not begin
  -- a ban, this time is in the past.
  local function count(i, ban)
    local times = {}
    for _, at in ipairs(denied[i]) do
      if at > now - ban.within then times[#times + 1] = min(at, now) end
    end
    times[#times + 1] = now
    if #times >= ban.after then ends[i], times = now + ban.length, {} end
    denied[i], changed[i] = times, ban
    return ends[i]
  end

  function all.judge(raws, codes, which, buckets, enforced, first, final, peek)
    local denies = false
    for j = first, final do
      if codes[j] == STALE then return true end
    end
    for j = first, final do
      local i, rule = buckets[j], which[j]
      local ban = ban_of[rule]
      if ban and ban_key[i] and codes[j] <= DENIED then
        local to = open(i, ban, raws)
        if to <= now and not peek and codes[j] == DENIED then to = count(i, ban) end
        if to > now then
          codes[j] = codes[j] + 8 * (to - now)
          denies = denies or enforced[rule]
        end
      end
    end
    return denies
  end

  function all.write()
    for i, ban in pairs(changed) do
      local value, us = pack(TIME, ends[i]), ends[i] - now
      if us <= 0 then
        for n, at in ipairs(denied[i]) do denied[i][n] = pack(TIME, at) end
        value, us = pack(TIME, 0) .. concat(denied[i]), ban.within
      end
      redis.pcall('SET', KEYS[ban_key[i]], value, 'PX', ceil(us / 1000) + grace) -- it denies even without writes
    end
  end

  return all
end

-- new_ids is called only if a request has an id. For each key of an id, ids has the time at which it has charged each
-- mark.
--   open(key, raw)   returns the times of an id
--   note(...)        records which rules a request has charged or refunded
--   write(gone)      stores the changed ids. It adds the keys of ids without a mark to the list `gone`
local function new_ids()
  local ids, changed = {}, {}
  local all = {}
  function all.open(key, raw)
    if not ids[key] then
      local times = {}
      for from = 1, raw and #raw % 14 == 0 and #raw or 0, 14 do
        local charged, us = read('>I7I7', raw, from)
        if us > now - ID_US then times[charged] = us end
      end
      ids[key] = times
    end
    return ids[key]
  end

  function all.note(key, codes, marks, first, final, refunded)
    for j = first, final do
      if codes[j] == PASS then ids[key][marks[j]], changed[key] = not refunded and now or nil, true end
    end
  end

  function all.write(gone)
    for key in pairs(changed) do
      local value = {}
      for charged, us in pairs(ids[key]) do value[#value + 1] = pack('>I7I7', charged, us) end
      if value[1] then
        redis.call('SET', key, concat(value), 'PX', ID_US / 1000 + grace)
      else
        gone[#gone + 1] = key
      end
    end
  end

  return all
end

local function refuse(what)
  return redis.error_reply('ERR limits: ' .. what)
end

-- The arguments are read.
local args, count = {}, #ARGV
for i = 1, count do
  local x = tonumber(ARGV[i])
  if not x or x < 0 or x > MAX or x % 1 ~= 0 then return refuse('argument ' .. i .. ' is not an integer below 2^53') end
  args[i] = x
end
local rules, forms, life = args[2], args[3], args[4]
local keys = #KEYS
if life and life > 0 then keys = keys - 1 end
if keys < 1 or keys > MAX_KEYS then return refuse('1 to 1024 buckets') end
if not rules or rules < 1 or rules > MAX_KEYS then return refuse('1 to 1024 rules') end
if not forms or forms < 1 or forms > MAX_REQUESTS then return refuse('1 to 64 forms') end
if not life then return refuse('no life') end

now = args[1]
grace = TESTED_MS
if now == 0 then
  grace = GRACE_MS
  local time = redis.call('TIME') -- once: before Redis 7.2 a second call would return another time
  now = time[1] * 1000000 + time[2]
end

-- The rules. The arguments of rule r begin at args[5 * r].
local kinds, tops, unit, enforced, bans, banning = {}, {}, {}, {}, nil, nil
local at = 5 * rules + 4
if count < at then return refuse('5 arguments per rule') end
for r = 1, rules do
  local p = 5 * r
  local new = NEW[floor(args[p] / 2)]
  if not new then
    banning = banning or {}
    banning[#banning + 1] = r
    new = NEW[floor(args[p] / 2) - 8]
  end
  if not new then return refuse('kind of rule ' .. r) end
  local kind = KINDS[new]
  if not kind then
    kind = new()
    KINDS[new] = kind
  end
  local top, units = kind.measure(args[p + 1], args[p + 2], args[p + 3], args[p + 4])
  if not top then return refuse('parameters of rule ' .. r) end
  kinds[r], tops[r], unit[r], enforced[r] = kind, top, units, args[p] % 2 == 1
end

if banning then
  bans = new_bans()
  at, keys = bans.read(banning, args, at, keys)
  if not at then return refuse('bans') end
end

local mark = not banning and args[at + 1] == RAISE and #KEYS
if mark then keys = keys - 1 end

-- The forms. The tables below have the charges of all forms, one form after another. The charges of form f are at the
-- positions firsts[f]..lasts[f]. rooms is the highest level at which a charge's cost passes, or false if there is none.
local modes, firsts, lasts, which, spots, costs, rises, rooms, ats, n = {}, {}, {}, {}, {}, {}, {}, {}, {}, 0
local known, before, own_ats, own_before = {}, {}, {}, {} -- of a raise
local ids, identified, marks = nil, {}, {} -- by form: whether it has an id; by charge: the mark
local most -- by charge: the highest level to which a raise or a charge after the fact may go
for f = 1, forms do
  local mode, charges = args[at + 1], args[at + 2]
  if charges and mode >= WITH_ID then
    mode, identified[f], ids = mode - WITH_ID, true, ids or new_ids()
    if mode ~= CONSUME and mode ~= REFUND then return refuse('form ' .. f) end
  end
  if not charges or mode > LATE or charges < 1 or charges > MAX_CHARGES then return refuse('form ' .. f) end
  modes[f], firsts[f], lasts[f] = mode, n + 1, n + charges
  at = at + 2
  for j = 1, charges do
    local rule, spot, cost = args[at + 1], args[at + 2], args[at + 3]
    if not cost or cost < 1 and mode ~= RAISE or not kinds[rule] then return refuse('charge ' .. j .. ' of form ' .. f) end
    n = n + 1
    which[n], spots[n], costs[n], rises[n] = rule, spot, cost, cost * unit[rule]
    rooms[n] = cost <= args[5 * rule + 1] and tops[rule] - rises[n]
    at = at + 3
    if mode >= REFUND then
      at = at + 1
      ats[n] = args[at] == 0 and math.huge or args[at]
      if mode ~= REFUND then
        if mode == RAISE then
          known[n], before[n] = args[at + 1], args[at + 2]
          at = at + 2
        end
        at = at + 1
        local p = 5 * rule
        most = most or {}
        most[n] = args[at] and kinds[rule].measure(args[p + 1] + args[at], args[p + 2], args[p + 3], args[p + 4])
        if not most[n] then return refuse('debt of charge ' .. j .. ' of form ' .. f) end
        if mode == RAISE then
          own_ats[n], own_before[n] = args[at + 1], args[at + 2]
          at = at + 2
        end
      end
      if not args[at] then return refuse('charge ' .. j .. ' of form ' .. f) end
    end
    if identified[f] then
      at = at + 1
      marks[n] = args[at]
      if not marks[n] then return refuse('charge ' .. j .. ' of form ' .. f) end
    end
  end
end
if at == count or count - at > MAX_REQUESTS then return refuse('1 to 64 requests') end

local life_key = keys + 1
if ids then
  for r = at + 1, count do
    if identified[args[r] % MAX_REQUESTS + 1] then keys = keys - 1 end
  end
  if keys < 1 then return refuse('a request has no bucket or no id') end
end
local id_key = keys -- the index of the last request's id

-- MGET returns false for a missing key and for a value of another type.
local raws, absent, odd = redis.call('MGET', unpack(KEYS)), {}, {}
if life > 0 then
  local lives = tonumber(raws[life_key] or nil)
  if not lives then
    -- If Redis cannot write now, a later call writes the life.
    local written = redis.pcall('SET', KEYS[life_key], format('%.0f', now), 'EX', MAX_LIFE_S)
    lives = written.ok and now or 0
  end
  if life > 1 and lives ~= life then return pack('>I7I7I7I7', now, 0, 0, lives) end
  out[4] = lives
end
if mark and raws[mark] then return pack('>I7I7I7I7', now, 0, 0, out[4]) end
for i = 1, keys do
  if not raws[i] then absent[#absent + 1] = KEYS[i] end
end
if absent[1] and redis.call('EXISTS', unpack(absent)) > 0 then
  for _, key in ipairs(absent) do odd[key] = redis.call('EXISTS', key) == 1 end
end

-- open reads the state of bucket i under a rule into the tables of buckets. If the key is given twice, it returns an
-- error text.
local opened, rule_of, rebases = {}, {}, 0
local function open(i, rule)
  local key, raw, p = KEYS[i], raws[i], 5 * rule
  if opened[key] then return 'key ' .. i .. ' is given twice' end
  opened[key], rule_of[i] = true, rule
  local l, ahead, rebased, settled = kinds[rule].open(raw, i, args[p + 1], args[p + 2], args[p + 3], args[p + 4])
  if l and not raw and odd[key] then l, ahead = nil, CORRUPT end
  if not l then
    level[i], aheads[i], faults[i] = false, 0, ahead
    return
  end
  level[i], aheads[i], dirty[i] = l, ahead, rebased or settled
  if rebased then rebases = rebases + 1 end
end

-- These functions are created only if the call has a raise or a charge after the fact.
local take, raise
if most then
  -- take charges bucket i with the part of charge j's cost that most[j] allows. It returns this part.
  function take(i, rule, j)
    local taken = min(costs[j], floor((most[j] - level[i]) / unit[rule]))
    if taken <= 0 then return 0 end
    local p = 5 * rule
    local rise = kinds[rule].late(i, taken, ats[j], args[p + 1], args[p + 2], args[p + 3], args[p + 4])
    if rise > 0 then level[i], dirty[i] = level[i] + rise, true end
    return taken
  end

  -- as_of opens a level of the time us: it saves the level as of this time, and opens the saved value.
  local function as_of(kind, i, x, y, us, a, b, c, d)
    local real, ahead = now, aheads[i]
    kind.open(false, i, a, b, c, d)
    if x + y == 0 or us > MAX then return 0, ahead end
    if kind.charge then kind.charge(i, x) end
    if y > 0 then ys[i] = y end
    level[i], aheads[i], now = x, 0, us
    local value = kind.save(i, a, b, c, d)
    now, aheads[i] = real, ahead
    return kind.open(value, i, a, b, c, d)
  end

  -- raise raises the level of bucket i to the known level if it is lower, and adds the own level.
  function raise(i, rule, j)
    local kind, p, l = kinds[rule], 5 * rule, level[i]
    local a, b, c, d = args[p + 1], args[p + 2], args[p + 3], args[p + 4]
    local more = as_of(kind, i, costs[j], own_before[j], own_ats[j], a, b, c, d)
    local x, y = xs[i], ys[i]
    local known_level, ahead = as_of(kind, i, known[j], before[j], ats[j], a, b, c, d)
    if known_level and known_level > l then
      l, aheads[i] = known_level, ahead
    else
      kind.open(raws[i], i, a, b, c, d)
    end
    if more and more > 0 then
      local room = max(0, most[j] - l)
      if more > room then
        more = kind.join and room - room % unit[rule] or room
        x, y = more / unit[rule], 0
      end
      if kind.join then kind.join(i, more, x, y, own_ats[j]) end
      l = l + more
    end
    level[i], dirty[i] = l, true
  end
end

-- The decisions. buckets has the buckets of the last request's charges. A request with the same argument has the same
-- buckets.
local codes, buckets, touched, o, last = {}, {}, {}, 4, nil

for r = at + 1, count do
  local request = args[r]
  local f = request % MAX_REQUESTS + 1
  local mode, first, final = modes[f], firsts[f], lasts[f]
  if not mode then return refuse('form of request ' .. r - at) end
  if request ~= last then
    local base = floor(request / MAX_REQUESTS)
    for j = first, final do
      local i, rule = spots[j], which[j]
      i = i < MAX_CHARGES and base + i or i - MAX_CHARGES + 1
      if i < 1 or i > keys or touched[i] == r then return refuse('buckets of request ' .. r - at) end
      touched[i], buckets[j] = r, i
      local fault
      if not rule_of[i] then
        fault = open(i, rule)
      elseif rule_of[i] ~= rule then
        fault = 'key ' .. i .. ' has two rules'
      end
      if fault then return refuse(fault) end
    end
    last = request
  end

  local charged -- by mark: when the request's id has charged it
  if identified[f] then
    id_key = id_key + 1
    charged = ids.open(KEYS[id_key], raws[id_key])
  end

  local allowed = 1
  for j = first, final do
    local l, code = level[buckets[j]], PASS
    if not l then
      code = faults[buckets[j]]
    elseif charged and mode == CONSUME and charged[marks[j]] then
      code = AGAIN
    elseif mode < REFUND then
      local room = rooms[j]
      if not room then
        code = NEVER
      elseif l > room then
        code = DENIED
      end
    end
    if code ~= PASS and code ~= AGAIN and (code == STALE or (mode < REFUND or mode == LATE) and enforced[which[j]]) then allowed = 0 end
    codes[j] = code
  end
  if bans and mode < REFUND and bans.judge(raws, codes, which, buckets, enforced, first, final, mode == PEEK) then allowed = 0 end
  o = o + 1
  out[o] = allowed
  local act = allowed == 1 and mode ~= PEEK
  if charged and act then ids.note(KEYS[id_key], codes, marks, first, final, mode == REFUND) end
  for j = first, final do
    local i, rule, code = buckets[j], which[j], codes[j]
    local kind = kinds[rule]
    out[o + 1] = code
    if act and code == PASS then
      if mode < REFUND then
        level[i], dirty[i] = level[i] + rises[j], true
        if kind.charge then kind.charge(i, costs[j]) end
      elseif mode == REFUND then
        local p = 5 * rule
        kind.refund(i, costs[j], ats[j], args[p + 1], args[p + 2], args[p + 3], args[p + 4])
      elseif mode == RAISE then
        raise(i, rule, j)
      else
        out[o + 1] = code + 8 * take(i, rule, j)
      end
    end
    if kind.say then
      o = kind.say(i, o + 1, costs[j], code == AGAIN and PASS or code % 8, args[5 * rule + 1], args[5 * rule + 2])
    else
      out[o + 2] = level[i] or 0
      o = o + 2
    end
  end
end

if bans then bans.write() end

-- The buckets are written. Deletions come last. A Redis that is out of memory refuses writes and accepts deletions, so
-- a call with both fails before it has deleted a bucket.
local gone, later = {}, 0
for i = 1, keys do
  local ahead = aheads[i]
  if ahead and ahead > 0 then
    later = later + 1
    out[o + 1], out[o + 2] = i, ahead
    o = o + 2
  end
  if dirty[i] then
    local kind, p = kinds[rule_of[i]], 5 * rule_of[i]
    if ahead == 0 and kind.empty(i) then
      gone[#gone + 1] = KEYS[i]
    else
      local value, ttl_us = kind.save(i, args[p + 1], args[p + 2], args[p + 3], args[p + 4])
      redis.call('SET', KEYS[i], value, 'PX', ceil(ttl_us / 1000) + grace)
    end
  end
end
if mark then redis.call('SET', KEYS[mark], '', 'EX', MARK_S) end
if ids then ids.write(gone) end
if gone[1] then redis.call('DEL', unpack(gone)) end

out[1], out[2], out[3] = now, rebases, later
local reply = ''
for from = 1, o, PACKED do
  local to = min(o, from + PACKED - 1)
  reply = reply .. pack('>' .. rep('I7', to - from + 1), unpack(out, from, to))
end
return reply
