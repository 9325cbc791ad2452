//! Who used the processors while something was measured: the server, this program, and everybody
//! else.
//!
//! Everybody else, and time that the hypervisor took (steal), is a disturbance: a sample with more
//! of it than is tolerated is dropped, and the processes that used most are named.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The kernel counts processor time in these: USER_HZ, which is 100 on every Linux.
const TICKS_A_SECOND: f64 = 100.0;
const NAMED: usize = 3;

/// Processor time by process, in ticks, and the machine's, at one moment.
struct Snapshot {
    at: Instant,
    by_process: HashMap<u32, Process>,
    /// User and system time. What interrupts take is nobody's: most of it is our own traffic.
    busy: u64,
    steal: u64,
}

#[derive(Debug, PartialEq)]
struct Process {
    name: String,
    ticks: u64,
    /// Of children that have ended: the server's, when it saves.
    ticks_of_children: u64,
}

/// Shares of one processor: 1.0 is a whole one.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub server: f64,
    pub client: f64,
    pub others: f64,
    /// How long the server ran, in seconds …
    pub server_s: f64,
    /// … and how long its main thread did.
    pub main_s: f64,
    /// How long the server was able to run, and had to wait for a processor.
    pub server_waited: f64,
    pub culprits: Vec<String>,
}

/// Begins where something is to be measured, and ends where it has been.
pub struct Watch {
    begin: Snapshot,
    server: u32,
    server_before: Scheduled,
    main_before: Scheduled,
    /// This process, or another that generates the load.
    client: u32,
    client_before: Scheduled,
    began: Instant,
}

impl Watch {
    pub fn begin(server: u32, client: u32) -> Result<Watch> {
        let begin = Snapshot::take()?;
        let (server_before, client_before) = (Scheduled::of(server), Scheduled::of(client));
        let main_before = Scheduled::of_thread(server, server);
        let began = Instant::now();
        Ok(Watch { begin, server, server_before, main_before, client, client_before, began })
    }

    pub fn end(self) -> Result<Usage> {
        let ended = Instant::now();
        let of_server = Scheduled::of(self.server).since(&self.server_before);
        let of_main = Scheduled::of_thread(self.server, self.server).since(&self.main_before);
        let of_client = Scheduled::of(self.client).since(&self.client_before);
        let ran_for_s = (ended - self.began).as_secs_f64();
        let end = Snapshot::take()?;
        let seconds = (end.at - self.begin.at).as_secs_f64();
        let share = |ticks: u64| ticks as f64 / TICKS_A_SECOND / seconds;
        let since = |pid: u32, ticks: fn(&Process) -> u64| {
            let before = self.begin.by_process.get(&pid).map_or(0, ticks);
            end.by_process.get(&pid).map_or(0, ticks).saturating_sub(before)
        };
        let used = |pid: u32| since(pid, |process| process.ticks + process.ticks_of_children);
        let (server, client) = (used(self.server), used(self.client));
        // This program watches even when another one makes the load.
        let watcher = if self.client == std::process::id() { 0 } else { used(std::process::id()) };
        let busy = end.busy.saturating_sub(self.begin.busy);
        let others = busy.saturating_sub(server + client + watcher)
            + end.steal.saturating_sub(self.begin.steal);

        let ours = [self.server, self.client, std::process::id()];
        let mut foreign: Vec<_> =
            end.by_process.iter().filter(|(pid, _)| !ours.contains(pid)).collect();
        // A child's time would be told when it ends, however long ago it was.
        let used = |pid: u32| since(pid, |process| process.ticks);
        foreign.sort_by_key(|(pid, _)| std::cmp::Reverse(used(**pid)));
        let culprits = foreign.iter().take(NAMED).filter(|(pid, _)| used(**pid) > 0);
        let culprits = culprits
            .map(|(pid, process)| format!("{} {:.0} %", process.name, 100.0 * share(used(**pid))));
        Ok(Usage {
            server: of_server.ran_s / ran_for_s,
            client: of_client.ran_s / ran_for_s,
            server_s: of_server.ran_s,
            main_s: of_main.ran_s,
            server_waited: of_server.waited_s / ran_for_s,
            others: share(others),
            culprits: culprits.collect(),
        })
    }
}

/// Waits until nobody else has used more than `tolerated` of a processor for a moment; gives up
/// after `at_most`.
pub fn wait_until_quiet(tolerated: f64, at_most: Duration) -> Result<()> {
    let deadline = Instant::now() + at_most;
    while Instant::now() < deadline {
        let watch = Watch::begin(0, std::process::id())?;
        std::thread::sleep(Duration::from_millis(150));
        if watch.end()?.others <= tolerated {
            return Ok(());
        }
    }
    Ok(())
}

impl Snapshot {
    fn take() -> Result<Snapshot> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().context("/proc/stat is empty")?;
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        let field = |place: usize| ticks.get(place).copied().unwrap_or(0);
        let by_process = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, process(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
        });
        let by_process = by_process.collect();
        // user, nice, system; steal is the eighth.
        Ok(Snapshot {
            at: Instant::now(),
            by_process,
            busy: field(0) + field(1) + field(2),
            steal: field(7),
        })
    }
}

/// Name and processor time from /proc/PID/stat, where the name may hold spaces and parentheses.
fn process(stat: &str) -> Option<Process> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u64>().ok();
    // utime, stime, cutime, cstime
    let (ticks, ticks_of_children) = (ticks(11)? + ticks(12)?, ticks(13)? + ticks(14)?);
    Some(Process { name: name.to_owned(), ticks, ticks_of_children })
}

/// How long all threads of a process have run, and have waited for a processor, to the nanosecond.
#[derive(Default)]
struct Scheduled {
    ran_s: f64,
    waited_s: f64,
}

impl Scheduled {
    /// Of a process that isn't there: nothing.
    fn of(pid: u32) -> Scheduled {
        let mut sum = Scheduled::default();
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
            let of_thread = Scheduled::of_thread(pid, number.unwrap_or(0));
            sum.ran_s += of_thread.ran_s;
            sum.waited_s += of_thread.waited_s;
        }
        sum
    }

    /// Of one of its threads. The main thread has the number of the process.
    fn of_thread(pid: u32, thread: u32) -> Scheduled {
        let path = format!("/proc/{pid}/task/{thread}/schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut fields = text.split_whitespace().filter_map(|field| field.parse::<f64>().ok());
        let mut seconds = || fields.next().unwrap_or(0.0) / 1e9;
        Scheduled { ran_s: seconds(), waited_s: seconds() }
    }

    /// Threads that have ended in between take their time with them.
    fn since(&self, before: &Scheduled) -> Scheduled {
        Scheduled {
            ran_s: (self.ran_s - before.ran_s).max(0.0),
            waited_s: (self.waited_s - before.waited_s).max(0.0),
        }
    }
}

/// How long a process has run so far, in seconds.
pub fn ran_s(pid: u32) -> f64 {
    Scheduled::of(pid).ran_s
}

/// How long all processors have been busy, or were taken by the hypervisor, up to a moment.
pub struct Busy(u64);

impl Busy {
    pub fn now() -> Result<Busy> {
        let snapshot = Snapshot::take()?;
        Ok(Busy(snapshot.busy + snapshot.steal))
    }

    /// In seconds of one processor.
    pub fn since(&self, before: &Busy) -> f64 {
        self.0.saturating_sub(before.0) as f64 / TICKS_A_SECOND
    }
}

/// How much memory a process has, its own and shared, in bytes.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// "AMD EPYC", "2", "23 GiB", "6.18.44"
pub fn description() -> Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| "unknown processor".into());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kib: u64 = memory.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let is_virtual = cpu.contains(" hypervisor");
    Ok(format!(
        "{model}, {processors} processors{}, {:.0} GiB, Linux {}",
        if is_virtual { " of a virtual machine" } else { "" },
        kib as f64 / 1024.0 / 1024.0,
        kernel.split('-').next().unwrap_or_default().trim(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_hold_brackets_and_spaces() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 0 1 2 3 4 100 20 3 4 20 0";
        let found = Process { name: "a) b (c)".into(), ticks: 120, ticks_of_children: 7 };
        assert_eq!(process(stat), Some(found));
        assert_eq!(process("7 (a"), None);
    }

    #[test]
    fn the_processor_time_of_a_process_is_seen() {
        let watch = Watch::begin(0, std::process::id()).unwrap();
        let before = Scheduled::of(std::process::id());
        // However busy the machine is: until it has worked so long.
        while Scheduled::of(std::process::id()).since(&before).ran_s < 0.05 {
            std::hint::black_box(0);
        }
        let began = watch.began;
        let usage = watch.end().unwrap();
        let worked_s = usage.client * began.elapsed().as_secs_f64();
        assert!(worked_s > 0.05 && usage.server == 0.0, "{usage:?}");
    }
}
