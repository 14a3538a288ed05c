-- interest: records the balances that checks needed, and returns the recently recorded balances. A record is a note.
--
-- KEYS      one key, the set of balances
-- ARGV      since_ms, keep_ms, most, then up to 1000 balances
--   since_ms  the cursor in the previous reply, or 0 for all notes; an integer 0..2^53-1
--   keep_ms   the time in ms for which a note counts, an integer 1..3600000
--   most      the largest number of balances in a reply, an integer 1..10000
--   balance   the hash of a balance's key, an integer 0..2^53-1 without leading zeros
-- Reply     {cursor, balance, ...}: the balances that were noted since since_ms, the oldest notes first. If a reply has
--           `most` balances, there may be more, which the next call returns. Two replies may have the same balance.
--
-- The value is a sorted set of balances. The score is the time at which a balance was last noted.
--
-- Invariants
--   1. Only Redis's TIME in ms is used. If it is behind the cursor, because the clock was set back, all notes are
--      returned. If a score is ahead of it, the score is set to now.
--   2. If a note is recorded after a reply, a call with the cursor of that reply returns it, as long as it counts. So
--      the result includes the notes of the cursor's own millisecond.
--   3. The key expires when no note counts any more.
--   4. Nothing is written before all arguments have been checked. A value of another type is not changed.

local MAX = 9007199254740991
local MAX_NOTES = 1000

local function refuse(what)
  return redis.error_reply('ERR interest: ' .. what)
end

-- integer returns s as a number if s is a plain decimal integer from least to most, else nil.
local function integer(s, least, most)
  local x = s and (s == '0' or string.match(s, '^[1-9]%d*$')) and tonumber(s)
  if x and x >= least and x <= most then return x end
end

if #KEYS ~= 1 then return refuse('one key') end
local key = KEYS[1]
local since, keep, most = integer(ARGV[1], 0, MAX), integer(ARGV[2], 1, 3600000), integer(ARGV[3], 1, 10000)
if not since then return refuse('since_ms is not an integer below 2^53') end
if not keep then return refuse('keep_ms is not an integer from 1 to 3600000') end
if not most then return refuse('most is not an integer from 1 to 10000') end
if #ARGV > 3 + MAX_NOTES then return refuse('more than ' .. MAX_NOTES .. ' balances') end
for i = 4, #ARGV do
  if not integer(ARGV[i], 0, MAX) then return refuse('balance ' .. (i - 3) .. ' is not an integer below 2^53') end
end
local kind = redis.call('TYPE', key).ok
if kind ~= 'zset' and kind ~= 'none' then
  return redis.error_reply('CORRUPT interest: the value is not a sorted set')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if #ARGV > 3 then
  local at, notes = string.format('%.0f', now), {}
  for i = 4, #ARGV do
    notes[#notes + 1] = at
    notes[#notes + 1] = ARGV[i]
  end
  redis.call('ZADD', key, unpack(notes))
  redis.call('PEXPIRE', key, ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - keep))
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', key, string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', key, string.format('%.0f', now), ahead)
end

if since > now then since = 0 end
local found = redis.call('ZRANGEBYSCORE', key, string.format('%.0f', since), '+inf', 'WITHSCORES', 'LIMIT', 0, most)
local reply = { now }
for i = 1, #found, 2 do reply[#reply + 1] = tonumber(found[i]) end
if #found == 2 * most then reply[1] = tonumber(found[#found]) end
return reply
