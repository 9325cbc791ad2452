# Sends the mail that is due: in batches, renewing its leases while it works, until it is told to
# stop.
#
# It survives outages of its server: it waits and tries again. Its leases stay valid.

require "redis"

QUEUE = "mail"
BATCH = 10
BLOCK_MS = 1_000 # how late a signal may be noticed
HEARTBEAT_S = 0.5 # well below the TTR of any job in the queue
TIMEOUT_S = 5 # for a reply: more than BLOCK_MS
PAUSE_S = 0.05 # between two tries, doubled each time up to
LONGEST_PAUSE_S = 2
GRACE_S = 5 # how long a worker that stops tries to say what came of its jobs
REASON_CHARS = 128 # a reason has 512 bytes, a character up to four
# Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so
# on.
MISTAKES = %w[ERR WRONGTYPE NOAUTH NOPERM WRONGPASS].freeze

# Another attempt would fail as well.
class Hopeless < StandardError; end

# The job was cancelled, or another worker has it.
class LeaseLost < StandardError; end

Job = Struct.new(:id, :body, :lease, :attempt, :lost, :settled) do
  def check
    raise LeaseLost if lost
  end
end

# The work; here it is pretended. It may be done twice, so it has to be idempotent.
def mail(job)
  job.body.split.each do |address|
    raise Hopeless, "not an address: #{address}" unless address.include?("@")
    raise "down.example does not answer" if address.end_with?("@down.example")

    sleep 0.2
    say "sent #{job.id} to #{address}"
    job.check
  end
end

# In one write: threads print at the same time.
def say(line)
  $stdout.write("#{line}\n")
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

class Worker
  def initialize(url)
    options = { url: url, timeout: TIMEOUT_S, reconnect_attempts: 0 } # `ask` tries again
    @server = Redis.new(**options)
    @pulse = Redis.new(**options) # DQ.POP would hold up whatever else goes over its connection
  end

  def run
    %w[TERM INT].each { |signal| trap(signal) { @stopping_since ||= now } }
    until stopping?
      jobs = pop
      with_heartbeat(jobs) do
        jobs.each { |job| stopping? ? settle(job, "given back", "DQ.RELEASE", "UNBEGUN") : work(job) }
      end
    end
    say "stopped"
  end

  private

  def stopping?
    !@stopping_since.nil?
  end

  def out_of_time?
    stopping? && now > @stopping_since + GRACE_S
  end

  # A signal doesn't break it off: its reply may be on the way, with jobs.
  def pop
    popped, = ask("DQ.POP", QUEUE, "COUNT", BATCH, "BLOCK", BLOCK_MS) { stopping? }
    (popped || []).map { |delivery| Job.new(*delivery) }
  end

  def work(job)
    job.check
    mail(job)
  rescue LeaseLost
    report(job, "lost")
  rescue Hopeless => e
    settle(job, "buried, #{e.message}", "DQ.BURY", "REASON", e.message[0, REASON_CHARS])
  rescue StandardError => e # it comes back after its backoff
    settle(job, "failed, #{e.message}", "DQ.RELEASE", "REASON", e.message[0, REASON_CHARS])
  else
    settle(job, "finished", "DQ.FINISH")
  end

  # Reports what came of a job, with its lease. 0 means that it isn't ours any more.
  def settle(job, outcome, command, *options)
    job.settled = true
    accepted, tries = ask(command, QUEUE, job.id, job.lease, *options) { out_of_time? }
    if accepted.nil? # when its lease runs out, it comes back
      report(job, "#{outcome}, but the server can't be told")
    elsif accepted == 1
      report(job, outcome)
    else # a try whose reply was lost may have been accepted
      report(job, tries > 1 ? "#{outcome} before, or lost" : "lost")
    end
  end

  def report(job, outcome)
    say "#{job.id}: #{outcome}, attempt #{job.attempt}"
  end

  # Sends a command until it is answered, or the block says to give up: the reply, nil when it gave
  # up, and how many tries it took.
  def ask(*words)
    pause = PAUSE_S
    (1..).each do |tries|
      begin
        return @server.call(*words), tries
      rescue Redis::BaseError => e
        raise if MISTAKES.include?(e.message.split.first)

        say "#{words.first}: #{e.message}"
      end
      # The address may lead to another server by now: leave the one that is no primary any more.
      @server.close
      return nil, tries if yield

      sleep pause * rand(0.5..1.0) # not all workers at once
      pause = [2 * pause, LONGEST_PAUSE_S].min
    end
  end

  # Renews the leases of a batch, also of the jobs not yet begun, on a connection of its own.
  def with_heartbeat(jobs)
    over = Queue.new
    beating = Thread.new { beat(jobs) until jobs.empty? || over_within?(over, HEARTBEAT_S) }
    yield
  ensure
    over << true
    beating.join
  end

  def over_within?(over, seconds)
    deadline = now + seconds
    sleep 0.01 while over.empty? && now < deadline
    !over.empty?
  end

  def beat(jobs)
    jobs.each do |job|
      next if job.settled || job.lost

      job.lost = @pulse.call("DQ.TOUCH", QUEUE, job.id, job.lease).zero?
    end
  rescue Redis::BaseError => e # the next beat may get through, on a new connection
    say "heartbeat: #{e.message}"
    @pulse.close
  end
end

$stdout.sync = true
Worker.new(ENV.fetch("REDIS_URL", "redis://127.0.0.1:6379")).run
