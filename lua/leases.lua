-- leases: grants, renews, counts or releases one lease of a concurrency limit, or restores leases that were lost.
--
-- KEYS      the bucket; then, if life is not 0, the key of the life (see limits.lua). Both are in one hash slot
-- ARGV      op, now, capacity, ttl, lease, life; a restore may have up to 500 more pairs of ttl and lease
--   op        0 acquire, 1 renew, 2 adopt (renew, or acquire if the lease is not held), 3 release, 4 count,
--             5 restore: the leases are held at least until their ttl, even beyond the capacity
--   now       0: the script uses Redis's TIME, read once. Otherwise the time that it uses, in us, for tests only
--   capacity  the largest number of leases held at a time, 1..10000. Ignored by a release
--   ttl       the time in us from now until the lease ends, 1..3600000000. Ignored by a release and a count
--   lease     the name of the lease: 22 characters of base64url. Ignored by a count
--   life      the life of the data that the caller knows; 1: the caller knows no life; 0: do not compare lives
-- Reply     flat integers: now in us, rebased 1|0, code, ends, held, frees, last, life (0: not compared)
--   code      0 done: granted, renewed, released or restored; for a count: a lease could be granted
--             1 acquire: the lease was already held, and nothing has changed
--             2 the bucket is full
--             3 the lease is not held (renew, release)
--             4 the data has another life, and nothing was decided
--   ends      us from now until the lease ends (in a restore, the first lease); 0 if it is not held
--   held      the number of leases held after the call
--   frees     us from now until a lease can be granted, if no lease is renewed or released; 0 if one can be granted
--             now, and in a release
--   last      us from now until all leases have ended, if no lease is renewed; 0 if no lease is held, and in a release
--
-- The bucket is a sorted set. The score of a lease is the time in us at which it ends. The score of the member "clock"
-- is the latest time at which this script has written, negated, so that it is lower than the score of every lease.
--
-- Invariants
--   1. An acquire or adopt grants no lease if the bucket holds capacity leases or more. It can hold more, because held
--      leases stay if the capacity is lowered, and because all lost leases are restored.
--   2. A lease that is not renewed ends exactly at its time, even if its holder has died.
--   3. A call that does not grant, renew, release or restore a lease does not change the bucket, with one exception. If
--      the score of "clock" is more than AHEAD_US ahead of now, Redis's clock was set back. Then the bucket is moved to
--      now in any case, and each lease keeps its remaining time. Otherwise leases of dead holders would last until the
--      clock has caught up. If the clock was set back by less, leases last that much longer.
--   4. If the clock is set forward, leases end early, because the script cannot distinguish this from passed time.
--   5. The key exists until its last lease has ended (rounded up, plus 1 s). If all leases of a bucket have ended, the
--      script decides as if the key did not exist.
--   6. A value that is not such a bucket is neither used nor overwritten. The reply is then an error.

local MAX = 9007199254740991
local MAX_CAPACITY = 10000
local MAX_TTL_US = 3600000000
local AHEAD_US = 5000000
local GRACE_MS = 1000
local TESTED_MS = 600000 -- instead of GRACE_MS if a test sets the time, as in limits.lua
local CHUNK = 500 -- scores per command when a bucket is moved, because unpack can return only a few thousand values
local MAX_RESTORED = 500
local MAX_LIFE_S = 34560000 -- as in limits.lua
local ACQUIRE, RENEW, ADOPT, RELEASE, COUNT, RESTORE = 0, 1, 2, 3, 4, 5
local DONE, HELD, FULL, NOT_HELD, LOST = 0, 1, 2, 3, 4

local ceil, format, match, max = math.ceil, string.format, string.match, math.max

local function refuse(what)
  return redis.error_reply('ERR leases: ' .. what)
end

-- integer returns s as a number if s is a plain decimal integer of at most limit, else nil.
local function integer(s, limit)
  local x = s and match(s, '^%d+$') and tonumber(s)
  if x and x <= limit then return x end
end

local key, op, now = KEYS[1], integer(ARGV[1], RESTORE), integer(ARGV[2], MAX - 2 * MAX_TTL_US)
local capacity, life = integer(ARGV[3], MAX_CAPACITY), integer(ARGV[6], MAX)
if not op then return refuse('op') end
if not now then return refuse('now') end
if not life then return refuse('life') end
if #KEYS ~= (life > 0 and 2 or 1) then return refuse('one key, and that of the life if it is not 0') end
if #ARGV ~= 6 and (op ~= RESTORE or #ARGV % 2 > 0 or #ARGV > 6 + 2 * MAX_RESTORED) then return refuse('six arguments') end
if op ~= RELEASE and (not capacity or capacity < 1) then return refuse('capacity is not from 1 to 10000') end
local ttls, leases = { integer(ARGV[4], MAX_TTL_US) }, { ARGV[5] }
for i = 7, #ARGV, 2 do
  ttls[#leases + 1], leases[#leases + 1] = integer(ARGV[i], MAX_TTL_US), ARGV[i + 1]
end
for i = 1, #leases do
  if op ~= RELEASE and op ~= COUNT and (not ttls[i] or ttls[i] < 1) then return refuse('ttl is not from 1 us to 3600 s') end
  if op ~= COUNT and not (#leases[i] == 22 and match(leases[i], '^[0-9A-Za-z_-]+$')) then return refuse('lease is not a name') end
end
local ttl, lease, grace = ttls[1], leases[1], TESTED_MS

if now == 0 then
  grace = GRACE_MS
  local time = redis.call('TIME') -- once: before Redis 7.2 a second reading would differ
  now = time[1] * 1000000 + time[2]
end

if life > 0 then
  local lives = tonumber(redis.call('GET', KEYS[2]) or nil)
  if not lives then
    -- If Redis cannot write now, a later call writes the life.
    local written = redis.pcall('SET', KEYS[2], string.format('%.0f', now), 'EX', MAX_LIFE_S)
    lives = written.ok and now or 0
  end
  if life > 1 and lives ~= life then return { now, 0, LOST, 0, 0, 0, 0, lives } end
  life = lives
end

-- The bucket is read, and checked to be a bucket of leases.
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

-- at is the time with which the call is decided.
local at = max(now, clock)
local held = redis.call('ZCOUNT', key, '(' .. text(at), '+inf')
if held == 0 then
  at = now -- as if the key did not exist, so its expiry changes no decision
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
if op < COUNT and held > 0 then
  ends = tonumber(redis.call('ZSCORE', key, lease) or nil)
  if ends and ends <= at then ends = nil end
end

-- The call is decided: code, and for a restore ends.
local code = DONE
if op == RESTORE then
  ends = at + ttl
elseif op == RELEASE then
  code = ends and DONE or NOT_HELD
elseif op == ACQUIRE and ends then
  code = HELD
elseif op == RENEW and not ends then
  code = NOT_HELD
elseif not ends and held >= capacity then
  code = FULL
end

-- The bucket is written.
if code == DONE and op == RELEASE then
  held, ends = held - 1, nil
  if held == 0 then
    redis.call('DEL', key)
  else
    redis.call('ZREM', key, lease)
    redis.call('ZADD', key, '-' .. text(at), 'clock')
  end
elseif code == DONE and op ~= COUNT then
  if op == RESTORE then
    for i = 1, #leases do
      local known = tonumber(redis.call('ZSCORE', key, leases[i]) or nil)
      if not known or known < at + ttls[i] then redis.call('ZADD', key, text(at + ttls[i]), leases[i]) end
    end
    redis.call('ZADD', key, '-' .. text(at), 'clock')
    held = redis.call('ZCOUNT', key, '(' .. text(at), '+inf')
  else
    if not ends then held = held + 1 end
    ends = at + ttl
    redis.call('ZADD', key, '-' .. text(at), 'clock', text(ends), lease)
  end
  redis.call('ZREMRANGEBYSCORE', key, 0, text(at))
  longest = tonumber(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  redis.call('PEXPIRE', key, text(ceil((longest - now) / 1000) + grace))
end

local frees = 0
if op ~= RELEASE and held >= capacity then
  local nth = redis.call('ZRANGEBYSCORE', key, '(' .. text(at), '+inf', 'WITHSCORES', 'LIMIT', held - capacity, 1)
  frees = nth[2] - now
end
local last = op ~= RELEASE and held > 0 and longest - now or 0
return { now, rebased, code, ends and ends - now or 0, held, frees, last, life }
