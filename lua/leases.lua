-- leases: grants, renews, counts or releases one lease of a concurrency limit.
--
-- KEYS      the bucket: one key
-- ARGV      op, now, capacity, ttl, lease
--   op        0 acquire, 1 renew, 2 adopt (renew, or acquire if it is not held), 3 release, 4 count
--   now       0: the server's TIME, read once. Otherwise the time to use in us, for tests only
--   capacity  leases at a time, 1..10000. Ignored by a release
--   ttl       how long the lease lasts from now, in us, 1..3600 s. Ignored by a release and a count
--   lease     its name: 22 characters of base64url. Ignored by a count
-- Reply     flat integers: now in us, rebased 1|0, code, ends, held, frees, last
--   code      0 done: granted, renewed or released; for a count, there is room
--             1 acquire: it was held already, and nothing has changed
--             2 full
--             3 not held (renew, release)
--   ends      us from now until the lease ends; 0 if it is not held
--   held      leases held after the call
--   frees     us from now until there is room if no lease is renewed or released; 0: there is room now, or it was a release
--   last      us from now until all leases have ended if none is renewed; 0: none is held, or it was a release
--
-- The bucket is a sorted set. The score of a lease is the time in us at which it ends. The member "clock" has the latest time at which
-- this script has written, negated, so that it is below every lease.
--
-- Invariants
--   1. After an acquire the bucket never holds more than capacity leases. (Lowering the capacity keeps the held leases.)
--   2. A lease that is not renewed ends exactly at its time, even if its holder has died.
--   3. A call that grants, renews and releases nothing writes nothing; except that a bucket whose clock is more than AHEAD_US
--      ahead of now (the clock was set back) is moved to now, each lease keeping its remaining time, and that is stored in any
--      case. Otherwise leases of dead holders would last until the clock has caught up. If the clock is behind by less, leases
--      last that much longer.
--   4. A clock that was set forward ends leases early: it cannot be told from time that has passed.
--   5. The key lives as long as its longest lease (rounded up, plus 1 s). A bucket whose leases have all ended decides like
--      a missing key.
--   6. A value that is not such a bucket is not treated as one and not overwritten. The reply is then an error.

local MAX = 9007199254740991
local MAX_CAPACITY = 10000
local MAX_TTL_US = 3600000000
local AHEAD_US = 5000000
local GRACE_MS = 1000
local CHUNK = 500 -- scores per command while rebasing: unpack takes a few thousand values
local ACQUIRE, RENEW, ADOPT, RELEASE, COUNT = 0, 1, 2, 3, 4
local DONE, HELD, FULL, NOT_HELD = 0, 1, 2, 3

local ceil, format, match, max = math.ceil, string.format, string.match, math.max

local function refuse(what)
  return redis.error_reply('ERR leases: ' .. what)
end

-- integer is s as a number if s is a plain decimal integer of at most limit, else nil.
local function integer(s, limit)
  local x = s and match(s, '^%d+$') and tonumber(s)
  if x and x <= limit then return x end
end

if #KEYS ~= 1 then return refuse('one key') end
if #ARGV ~= 5 then return refuse('five arguments') end
local key, lease = KEYS[1], ARGV[5]
local op, now = integer(ARGV[1], COUNT), integer(ARGV[2], MAX - 2 * MAX_TTL_US)
local capacity, ttl = integer(ARGV[3], MAX_CAPACITY), integer(ARGV[4], MAX_TTL_US)
if not op then return refuse('op') end
if not now then return refuse('now') end
if op ~= RELEASE and (not capacity or capacity < 1) then return refuse('capacity is not from 1 to 10000') end
if op < RELEASE and (not ttl or ttl < 1) then return refuse('ttl is not from 1 us to 3600 s') end
if op ~= COUNT and not (#lease == 22 and match(lease, '^[0-9A-Za-z_-]+$')) then return refuse('lease is not a name') end

if now == 0 then
  local time = redis.call('TIME') -- once: before Redis 7.2 a second reading would differ
  now = time[1] * 1000000 + time[2]
end

-- The bucket.
local function text(us) return format('%.0f', us) end
local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
if first.err and match(first.err, '^WRONGTYPE') then return redis.error_reply('CORRUPT leases: not a sorted set') end
if first.err then return first end
local clock, rebased, longest = now, 0, 0
if first[1] then
  clock = -tonumber(first[2])
  longest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  if first[1] ~= 'clock' or clock % 1 ~= 0 or clock < 0 or clock > MAX or longest % 1 ~= 0 or longest > clock + MAX_TTL_US then
    return redis.error_reply('CORRUPT leases: not leases')
  end
end

-- at is the time that decisions are made at.
local at = max(now, clock)
local held = redis.call('ZCOUNT', key, '(' .. text(at), '+inf')
if held == 0 then
  at = now -- the same as if there were no key: when it expires changes nothing
elseif clock - now > AHEAD_US then
  local shift = clock - now
  local all = redis.call('ZRANGE', key, 1, -1, 'WITHSCORES')
  for from = 1, #all, 2 * CHUNK do
    local moved = {}
    for i = from, math.min(from + 2 * CHUNK - 2, #all), 2 do
      moved[#moved + 1], moved[#moved + 2] = text(all[i + 1] - shift), all[i]
    end
    redis.call('ZADD', key, unpack(moved))
  end
  redis.call('ZADD', key, '-' .. text(now), 'clock')
  at, rebased, longest = now, 1, longest - shift
end
local ends
if op ~= COUNT and held > 0 then
  ends = tonumber(redis.call('ZSCORE', key, lease) or nil)
  if ends and ends <= at then ends = nil end
end

-- The decision.
local code = DONE
if op == RELEASE then
  code = ends and DONE or NOT_HELD
elseif op == ACQUIRE and ends then
  code = HELD
elseif op == RENEW and not ends then
  code = NOT_HELD
elseif not ends and held >= capacity then
  code = FULL
end

-- Writes.
if code == DONE and op == RELEASE then
  held, ends = held - 1, nil
  if held == 0 then
    redis.call('DEL', key)
  else
    redis.call('ZREM', key, lease)
    redis.call('ZADD', key, '-' .. text(at), 'clock')
  end
elseif code == DONE and op ~= COUNT then
  if not ends then held = held + 1 end
  ends = at + ttl
  redis.call('ZADD', key, '-' .. text(at), 'clock', text(ends), lease)
  redis.call('ZREMRANGEBYSCORE', key, 0, text(at))
  longest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIRE', key, text(ceil((longest - now) / 1000) + GRACE_MS))
end

local frees = 0
if op ~= RELEASE and held >= capacity then
  local nth = redis.call('ZRANGEBYSCORE', key, '(' .. text(at), '+inf', 'WITHSCORES', 'LIMIT', held - capacity, 1)
  frees = nth[2] - now
end
local last = op ~= RELEASE and held > 0 and longest - now or 0
return { now, rebased, code, ends and ends - now or 0, held, frees, last }
