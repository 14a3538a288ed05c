-- balances: stores cached balances that are newer than what is stored. Many balances of one hash slot in one call.
--
-- KEYS      the balances' cache keys, all in one hash slot; 1..1024
-- ARGV      per key: seq, ttl_ms, value
--   seq       the balance's version, an integer 0..2^53-1
--   ttl_ms    milliseconds the copy may live, an integer 1..2^53-1
--   value     the balance, opaque here
-- Reply     {stored}: how many were stored; the others were not newer
--
-- The stored value is "<seq> <value>", seq in decimal without leading zeros, so that a reader and this script find the
-- version without knowing the value's format.
--
-- Invariants
--   1. A stored seq never decreases while its key lives: publishers may overtake each other, run twice or retry.
--   2. The same seq again stores nothing and does not extend the TTL: a copy lives no longer than its publisher said.
--   3. Versions are compared as numbers below 2^53, where Lua's numbers are exact: "9" is older than "10".
--   4. A stored value that has no seq is not a copy of a balance and gives way. (It is a cache: what it should say is
--      known elsewhere, unlike a bucket.) So does a value of another type.
--   5. Nothing is written before all arguments have been checked.

local MAX = 9007199254740991
local MAX_KEYS = 1024

local function refuse(what)
  return redis.error_reply('ERR balances: ' .. what)
end

-- integer is s as a number if s is a plain decimal integer of at most MAX, else nil.
local function integer(s)
  local x = string.match(s, '^%d+$') and tonumber(s)
  if x and x <= MAX then return x end
end

local n = #KEYS
if n < 1 or n > MAX_KEYS then return refuse('1 to 1024 keys') end
if #ARGV ~= 3 * n then return refuse('three arguments per key') end

local seqs, ttls = {}, {}
for i = 1, n do
  local seq, ttl = integer(ARGV[3 * i - 2]), integer(ARGV[3 * i - 1])
  if not seq then return refuse('seq of key ' .. i .. ' is not an integer below 2^53') end
  if not ttl or ttl < 1 then return refuse('ttl_ms of key ' .. i .. ' is not a positive integer below 2^53') end
  seqs[i], ttls[i] = seq, ttl
end

-- A key given twice must meet its own first value: newest remembers what this call has stored.
local stored, newest = 0, {}
local olds = redis.call('MGET', unpack(KEYS))
for i = 1, n do
  local key = KEYS[i]
  local old = newest[key] or (olds[i] and integer(string.match(olds[i], '^(%d+) ') or ''))
  if not old or seqs[i] > old then
    redis.call('SET', key, string.format('%.0f ', seqs[i]) .. ARGV[3 * i], 'PX', string.format('%.0f', ttls[i]))
    newest[key] = seqs[i]
    stored = stored + 1
  end
end
return { stored }
