-- leases: gives, renews, counts or takes back one lease of a concurrency limit.
--
-- KEYS      the bucket: one key
-- ARGV      op, now, capacity, ttl, lease
--   op        0 acquire, 1 renew, 2 adopt (renew, or acquire if it is not held), 3 release, 4 count
--   now       0: this server's TIME, read once. Otherwise the time to use, in us: for tests only
--   capacity  leases at a time, 1..10000. A release does not look at it
--   ttl       how long the lease is to last from now, in us, 1..3600 s. A release and a count do not look at it
--   lease     its name: 22 characters of base64url. A count does not look at it
-- Reply     flat integers: now in us, rebased 1|0, code, ends, held, frees
--   code      0 done: given, renewed, taken back, or there is room (count)
--             1 acquire: it was held already, and nothing has changed
--             2 full
--             3 not held (renew, release)
--   ends      us from now until the lease ends; 0 if it is not held
--   held      leases held after the call
--   frees     us from now until there is room if nobody renews and nobody gives back; 0: there is room now, or a release
--
-- The bucket is a sorted set: a lease's score is the time in us at which it ends, and the member "clock" has the latest
-- time this script has written at, negated, so that it is below every lease.
--
-- Invariants
--   1. An acquire never makes the bucket hold more than capacity leases. (A capacity that was lowered leaves what is held.)
--   2. A lease that nobody renews ends at its time, whatever becomes of its holder; it is over at that time, not after it.
--   3. A call that gives, renews or takes back nothing writes nothing; except that a bucket whose clock is more than
--      AHEAD_US ahead of now (the clock was set back) is moved to now with the time each lease has left, and that is
--      stored in any case: were it not, leases whose holders have died would last until the clock has caught up.
--      A clock that is behind by less is waited for: leases last that much longer.
--   4. A clock that was set forward ends leases early: nothing tells it from time that has passed.
--   5. The key lives as long as its longest lease (rounded up, plus 1 s). A bucket whose leases have all ended decides like
--      one that has no key.
--   6. A value that is not such a bucket is never taken for one, never overwritten, and answered with an error.

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
local clock, rebased = now, 0
if first[1] then
  clock = -tonumber(first[2])
  local longest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
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
  at, rebased = now, 1
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
  local longest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIRE', key, text(ceil((longest - now) / 1000) + GRACE_MS))
end

local frees = 0
if op ~= RELEASE and held >= capacity then
  local nth = redis.call('ZRANGEBYSCORE', key, '(' .. text(at), '+inf', 'WITHSCORES', 'LIMIT', held - capacity, 1)
  frees = nth[2] - now
end
return { now, rebased, code, ends and ends - now or 0, held, frees }
