-- KEYS: pool, attempts, bucket, ready, leases. ARGV: how many at most, when their leases end.
-- Returns id, body, attempt, ... The attempt is the lease, too: finishing asks for it.
local ids = redis.call('LPOP', KEYS[4], ARGV[1])
if not ids then return {} end
local bodies = redis.call('HMGET', KEYS[1], unpack(ids))
local jobs, leases = {}, {}
for place, id in ipairs(ids) do
  -- One that was deleted while it was ready has no body.
  if bodies[place] then
    local attempt = redis.call('HINCRBY', KEYS[2], id, 1)
    jobs[#jobs + 1] = id
    jobs[#jobs + 1] = bodies[place]
    jobs[#jobs + 1] = attempt
    leases[#leases + 1] = ARGV[2]
    leases[#leases + 1] = id
  end
end
if #leases > 0 then redis.call('ZADD', KEYS[5], unpack(leases)) end
return jobs
