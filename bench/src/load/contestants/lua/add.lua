-- KEYS: pool, attempts, bucket, ready, leases. ARGV: due time in ms or nothing, then id, body, ...
-- Returns how many were added: an id that is taken stays as it is.
local due = ARGV[1]
local fresh = {}
for place = 2, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[place], ARGV[place + 1]) == 1 then
    if due ~= '' then fresh[#fresh + 1] = due end
    fresh[#fresh + 1] = ARGV[place]
  end
end
if #fresh == 0 then return 0 end
if due == '' then
  redis.call('RPUSH', KEYS[4], unpack(fresh))
  return #fresh
end
redis.call('ZADD', KEYS[3], unpack(fresh))
return #fresh / 2
