-- balances: stores copies of balances in the cache, if they are newer than the stored copies. One call has many
-- balances of one hash slot.
--
-- KEYS      the balances' cache keys, all in one hash slot; 1..1024
-- ARGV      for each key: seq, ttl_ms, value
--   seq       the balance's version, an integer 0..2^53-1
--   ttl_ms    the milliseconds for which the copy may be kept, an integer 1..2^53-1
--   value     the balance, in a format that this script does not read
-- Reply     {stored}: the number of copies that were stored; the other copies were not newer
--
-- The stored value is "<seq> <value>", with seq in decimal without leading zeros. So a reader and this script find the
-- version without knowing the format of the value.
--
-- Invariants
--   1. A stored seq never decreases while its key exists, even if publishers overtake each other, run twice or retry.
--   2. If a copy with the same seq comes again, nothing is stored, and the TTL is not extended. So a copy is kept no
--      longer than its first publisher requested.
--   3. Versions are compared as numbers below 2^53, which Lua's numbers represent exactly. So "9" is older than "10".
--   4. A stored value without a seq is not a copy of a balance. It is overwritten, like a value of another type. This
--      loses nothing, because the ledger has the balance.
--   5. Nothing is written before all arguments have been checked.

local MAX = 9007199254740991
local MAX_KEYS = 1024

local function refuse(what)
  return redis.error_reply('ERR balances: ' .. what)
end

-- integer returns s as a number if s is a plain decimal integer of at most MAX, else nil.
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

-- newest has the versions that this call has stored, by key. If a key is given twice, its second value must be compared
-- with its first.
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
