// Sends the mail that is due: in batches, renewing its leases while it works, until it is told to
// stop.
//
// It survives outages of its server: it waits and tries again. Its leases stay valid.

using System.Diagnostics;
using System.Runtime.InteropServices;
using StackExchange.Redis;

const string Queue = "mail";
const int Batch = 10;
const int BlockMs = 1_000; // how late a signal may be noticed
const int HeartbeatMs = 500; // well below the TTR of any job in the queue
const int PauseMs = 50, LongestPauseMs = 2_000; // between two tries
const int GraceMs = 5_000; // how long a worker that stops tries to say what came of its jobs
const int ReasonChars = 128; // a reason has 512 bytes, a character up to four

// Errors that waiting doesn't mend. Others pass: LOADING, READONLY, UNBLOCKED, CLUSTERDOWN and so on.
string[] mistakes = ["ERR", "WRONGTYPE", "NOAUTH", "NOPERM", "WRONGPASS"];

Stopwatch? stopping = null;
using var term = PosixSignalRegistration.Create(PosixSignal.SIGTERM, Stop);
using var interrupt = PosixSignalRegistration.Create(PosixSignal.SIGINT, Stop);

var server = new Link();
var blocking = new Link(); // DQ.POP would hold up whatever else goes over its connection

while (stopping is null)
{
    var jobs = await Pop();
    using var over = new CancellationTokenSource();
    var beating = Heartbeat(jobs, over.Token);
    foreach (var job in jobs)
    {
        if (stopping is null)
            await Work(job);
        else
            await Settle(job, "given back", "DQ.RELEASE", "UNBEGUN");
    }
    over.Cancel();
    await beating;
}
Console.WriteLine("stopped");

void Stop(PosixSignalContext signal)
{
    signal.Cancel = true; // the process goes on, to its orderly end
    stopping ??= Stopwatch.StartNew();
}

bool IsStopping() => stopping is not null;
bool IsOutOfTime() => stopping?.ElapsedMilliseconds > GraceMs;

// The work; here it is pretended. It may be done twice, so it has to be idempotent.
async Task Mail(Job job)
{
    foreach (var address in job.Body.Split(' '))
    {
        if (!address.Contains('@'))
            throw new Hopeless($"not an address: {address}");
        if (address.EndsWith("@down.example"))
            throw new IOException("down.example does not answer");
        await Task.Delay(200, job.Lost.Token);
        Console.WriteLine($"sent {job.Id} to {address}");
    }
}

// A signal doesn't break it off: its reply may be on the way, with jobs.
async Task<List<Job>> Pop()
{
    var (reply, _) = await Ask(blocking, IsStopping, "DQ.POP", Queue, "COUNT", Batch, "BLOCK", BlockMs);
    if (reply is null || reply.IsNull)
        return [];
    return ((RedisResult[]?)reply)!.Select(delivery => new Job((RedisResult[])delivery!)).ToList();
}

async Task Work(Job job)
{
    try
    {
        job.Lost.Token.ThrowIfCancellationRequested();
        await Mail(job);
    }
    catch (OperationCanceledException) when (job.Lost.IsCancellationRequested)
    {
        Report(job, "lost");
        return;
    }
    catch (Hopeless error)
    {
        await Settle(job, $"buried, {error.Message}", "DQ.BURY", "REASON", Reason(error));
        return;
    }
    catch (Exception error) // it comes back after its backoff
    {
        await Settle(job, $"failed, {error.Message}", "DQ.RELEASE", "REASON", Reason(error));
        return;
    }
    await Settle(job, "finished", "DQ.FINISH");
}

string Reason(Exception error) => error.Message[..Math.Min(error.Message.Length, ReasonChars)];

// Reports what came of a job, with its lease. 0 means that it isn't ours any more.
async Task Settle(Job job, string outcome, string command, params object[] options)
{
    job.IsSettled = true;
    var (accepted, tries) = await Ask(server, IsOutOfTime, command, [Queue, job.Id, job.Lease, .. options]);
    if (accepted is null) // when its lease runs out, it comes back
        Report(job, $"{outcome}, but the server can't be told");
    else if ((long)accepted == 1)
        Report(job, outcome);
    else // a try whose reply was lost may have been accepted
        Report(job, tries > 1 ? $"{outcome} before, or lost" : "lost");
}

void Report(Job job, string outcome) => Console.WriteLine($"{job.Id}: {outcome}, attempt {job.Attempt}");

// Sends a command until it is answered: the reply, null when it gave up, and how many tries it took.
async Task<(RedisResult?, int)> Ask(Link link, Func<bool> givesUp, string command, params object[] words)
{
    var pause = PauseMs;
    for (var tries = 1; ; tries++)
    {
        try
        {
            return (await link.Send(command, words), tries);
        }
        catch (Exception error) when (Passes(error))
        {
            Console.WriteLine($"{command}: {error.Message}");
        }
        if (givesUp())
            return (null, tries);
        await Task.Delay(Random.Shared.Next(pause / 2, pause)); // not all workers at once
        pause = Math.Min(2 * pause, LongestPauseMs);
    }
}

bool Passes(Exception error) =>
    error is RedisException or TimeoutException && !mistakes.Contains(error.Message.Split(' ')[0]);

// Renews the leases of a batch, also of the jobs not yet begun, until it is over.
async Task Heartbeat(List<Job> jobs, CancellationToken over)
{
    while (!over.IsCancellationRequested)
    {
        await Task.Delay(HeartbeatMs, over).ContinueWith(_ => { }, CancellationToken.None);
        if (over.IsCancellationRequested)
            return;
        try
        {
            foreach (var job in jobs.Where(job => !job.IsSettled && !job.Lost.IsCancellationRequested))
                if ((long)await server.Send("DQ.TOUCH", Queue, job.Id, job.Lease) == 0)
                    job.Lost.Cancel();
        }
        catch (Exception error) when (Passes(error)) // the next beat may get through
        {
            Console.WriteLine($"heartbeat: {error.Message}");
        }
    }
}

// Another attempt would fail as well.
sealed class Hopeless(string message) : Exception(message);

// From a delivery: id, body, lease, attempt.
sealed class Job(RedisResult[] delivery)
{
    public string Id { get; } = (string)delivery[0]!;
    public string Body { get; } = (string)delivery[1]!;
    public long Lease { get; } = (long)delivery[2];
    public long Attempt { get; } = (long)delivery[3];
    public CancellationTokenSource Lost { get; } = new();
    public volatile bool IsSettled;
}

// A connection that is opened anew after each error: its address may lead to another server by then.
sealed class Link
{
    private ConnectionMultiplexer? multiplexer;

    public async Task<RedisResult> Send(string command, params object[] words)
    {
        var mine = multiplexer;
        try
        {
            multiplexer = mine ??= await Connect();
            return await mine.GetDatabase().ExecuteAsync(command, words);
        }
        catch
        {
            if (ReferenceEquals(multiplexer, mine))
                multiplexer = null;
            if (mine is not null)
                await mine.DisposeAsync();
            throw;
        }
    }

    private static Task<ConnectionMultiplexer> Connect()
    {
        var url = new Uri(Environment.GetEnvironmentVariable("REDIS_URL") ?? "redis://127.0.0.1:6379");
        return ConnectionMultiplexer.ConnectAsync(new ConfigurationOptions
        {
            EndPoints = { { url.Host, url.Port < 0 ? 6379 : url.Port } },
            AbortOnConnectFail = true, // `Ask` tries again
            ConnectTimeout = 5_000,
            AsyncTimeout = 5_000, // for a reply: more than BlockMs
            BacklogPolicy = BacklogPolicy.FailFast,
        });
    }
}
