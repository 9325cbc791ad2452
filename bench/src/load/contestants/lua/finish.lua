-- KEYS: pool, attempts, bucket, ready, leases. ARGV: id, attempt, ...
-- Returns how many were finished: those whose attempt is still the last one.
local ids, finished = {}, {}
for place = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[place] end
local attempts = redis.call('HMGET', KEYS[2], unpack(ids))
for place, id in ipairs(ids) do
  if attempts[place] == ARGV[2 * place] then finished[#finished + 1] = id end
end
if #finished == 0 then return 0 end
redis.call('HDEL', KEYS[1], unpack(finished))
redis.call('HDEL', KEYS[2], unpack(finished))
redis.call('ZREM', KEYS[5], unpack(finished))
return #finished
