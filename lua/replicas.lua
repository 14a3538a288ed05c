-- replicas: registers or removes one replica, and returns the entries of all replicas that still count.
--
-- KEYS      one key, the set of replicas
-- ARGV      op, id, ttl_us
--   op      0 beat: the replica is running; 1 leave: the replica ends
--   id      the id of the replica, an integer 1..2^53-1 without leading zeros, different for each process
--   ttl_us  the time in us for which an entry counts after its latest beat or leave, an integer 1000..3600000000
-- Reply     {now, entry, ...}: Redis's time in us, and the entries that count. An entry is the id of a live replica, or
--           the negative id of a replica that has left
--
-- The value is a sorted set of entries. The score of an entry is the time of its latest beat or leave.
--
-- Invariants
--   1. Only Redis's TIME in us is used. If a score is ahead of it, because the clock was set back, the score is set to
--      now. Otherwise a dead replica would count until the clock has caught up.
--   2. A replica that has left does not return: a beat that arrives after its leave changes nothing.
--   3. The set has at most 1024 entries. An additional replica is refused, so that all replicas in the set see the
--      same set.
--   4. The key expires when no entry counts any more.
--   5. Nothing is written before all arguments have been checked. A value of another type is not changed.

local MAX = 9007199254740991
local MAX_SIGNS = 1024
local BEAT, LEAVE = '0', '1'

local function refuse(what)
  return redis.error_reply('ERR replicas: ' .. what)
end

if #KEYS ~= 1 then return refuse('one key') end
if #ARGV ~= 3 then return refuse('three arguments') end
local key, op, id = KEYS[1], ARGV[1], ARGV[2]
local ttl = string.match(ARGV[3], '^%d+$') and tonumber(ARGV[3])
if op ~= BEAT and op ~= LEAVE then return refuse('op is not 0 or 1') end
if not string.match(id, '^[1-9]%d*$') or tonumber(id) > MAX then return refuse('id is not an integer from 1 to 2^53-1') end
if not ttl or ttl < 1000 or ttl > 3600000000 then return refuse('ttl_us is not an integer from 1000 to 3600000000') end

local kind = redis.call('TYPE', key).ok
if kind ~= 'zset' and kind ~= 'none' then
  return redis.error_reply('CORRUPT replicas: the value is not a sorted set')
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local left = '-' .. id

redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - ttl))
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', key, string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', key, string.format('%.0f', now), ahead)
end

local sign = op == BEAT and id or left
if op == LEAVE then redis.call('ZREM', key, id) end
if not (op == BEAT and redis.call('ZSCORE', key, left)) then
  if redis.call('ZCARD', key) >= MAX_SIGNS and not redis.call('ZSCORE', key, sign) then
    return refuse('there are ' .. MAX_SIGNS .. ' already')
  end
  redis.call('ZADD', key, string.format('%.0f', now), sign)
end
redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(ttl / 1000)))

local reply = { now }
for _, heard in ipairs(redis.call('ZRANGE', key, 0, -1)) do
  reply[#reply + 1] = tonumber(heard) -- nil if another program has added the entry, which expires like the others
end
return reply
