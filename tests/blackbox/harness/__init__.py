"""What the tests are made with.

paths          where things are in the repository
ports          ports for what isn't one of them
server         servers: start, crash, replicate; eventually()
cluster        three primaries with their replicas; slots that move
resp           the protocol, read as it comes
transcript     sessions that read as in redis-cli
pipelined      a connection on which commands go out before replies come
consumers      transcripts with consumers that wait
crowd          a thousand of them, who come and go
clock          the time; wall_clock: one for a server, which is set while it runs
patience       tests that prepare something for a time that lies ahead
marks          where and when a test runs

shown, queues  what is to be seen of jobs and queues, in a session and by redis-py
states         a queue with jobs in each state
zoo            a queue with a job of every kind, none of which changes for an hour
worker         a worker that has just taken a job
workload       random commands, the same for the same seed
observer       seeing to it that a refused command changes nothing
payloads       DUMP payloads made by hand
golden         files of older versions
elsewhere      a queue is the same out of files and as a copy
command_table  what the server is told about each command
"""
