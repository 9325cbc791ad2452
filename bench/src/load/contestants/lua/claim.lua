-- KEYS: pool, attempts, bucket, ready, leases. ARGV: an id that BLMOVE has moved to '{queue}:claimed', when its lease ends.
-- Returns id, body, attempt, as taking does.
local body = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('LREM', '{queue}:claimed', 1, ARGV[1])
if not body then return {} end
local attempt = redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
redis.call('ZADD', KEYS[5], ARGV[2], ARGV[1])
return {ARGV[1], body, attempt}
