-- KEYS: pool, attempts, bucket, ready, leases. ARGV: now in ms.
-- Makes ready what is due and what was leased for too long, at most BATCH of each: others wait meanwhile.
-- Returns in how many ms there may be more to do: 0, at once.
local BATCH = 1000
local again = 1000
for _, key in ipairs({KEYS[3], KEYS[5]}) do
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', ARGV[1], 'LIMIT', 0, BATCH)
  if #ids > 0 then
    redis.call('RPUSH', KEYS[4], unpack(ids))
    redis.call('ZREM', key, unpack(ids))
  end
  if #ids == BATCH then
    again = 0
  else
    local next = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if next[2] then again = math.min(again, math.max(0, tonumber(next[2]) - tonumber(ARGV[1]))) end
  end
end
return again
