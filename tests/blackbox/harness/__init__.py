"""The helpers of the tests on real servers.

paths          where files of the repository are
ports          free ports, for programs that are not one of the harness's servers
server         servers: start, crash, replicate; eventually()
cluster        three primaries with their replicas; slots that move
cluster_load   producers and workers of a cluster, and a check of the replies they got
atomic_moves   slots that move atomically
address        an address that can be moved from one server to another
failover       a planned failover
io_threads     servers that read and write on threads
resp           the Redis protocol, read without interpretation
transcript     sessions that read as in redis-cli
pipelined      a connection that sends commands before the replies to earlier ones are there
consumers      transcripts with consumers that wait
crowd          a thousand consumers that come and go
clock          the time; wall_clock: a clock for one server, which the test can set
patience       tests that prepare something for a time in the future
marks          where and when a test runs
example_programs  the programs of examples/

shown, queues  fields of jobs and queues, in a session and by redis-py
states         a queue with jobs in each state
zoo            a queue with a job of every kind; none changes for an hour
worker         a worker that has just taken a job
workload       random commands; the same seed gives the same commands
observer       checks that a refused command changes nothing
payloads       DUMP payloads made by hand
golden         files of older versions
elsewhere      checks that a queue is the same after a restart and as a copy
command_table  what COMMAND INFO must say about each command
"""
