//! A session: commands as they come, and what holds whatever they are.
//!
//! Lines that are no commands of the module:
//!
//! | line | what happens |
//! | --- | --- |
//! | `@ms` | time passes; `@-ms`: the clock is set back |
//! | `DEL key`, `RENAME from to`, `COPY from to`, `FLUSHALL`, `INFO` | as in a server |
//! | `RELOAD` | a file is written and loaded |
//! | `DEFRAG`, `DEFRAG n` | all memory gets other addresses, in slices of n allocations |
//! | `KILL n` | one of those who wait goes away |
//! | `FOLLOW` | from here on the server is a replica, and the lines are the log of its primary |
//!
//! The words `$0` to `$9` are leases: the last one that a reply told, the last but one …

use super::look;
use super::script::Line;
use super::server::{Answer, Place, Server, Word};

/// Of an error: what a client goes by.
const PREFIXES: [&str; 6] = ["ERR ", "WRONGTYPE ", "EXISTS ", "FULL ", "NOJOB ", "NOTHELD "];

/// After this many turns without a command, what the timer does of its own accord is done, or goes
/// on in the next line.
const TURNS_OF_TIMER: usize = 3;

/// The last millisecond that there is for the module, and some beyond.
const CLOCK_MAX: u64 = (1 << 48) + 10;

pub struct Session<'s> {
    server: &'s Server,
    log: Vec<(i32, Line)>,
    digests: Vec<(Place, Vec<u8>)>,
    follows: bool,
}

/// Plays the lines, and sees that a replica that gets the log comes to the same.
pub fn play(lines: &[Line]) {
    let server = Server::begin();
    let mut session = Session::new(&server);
    session.play(lines);
    session.end();
}

/// The log of such a session, as lines of one that follows.
pub fn log_of(lines: &[Line]) -> Vec<Line> {
    let server = Server::begin();
    let mut session = Session::new(&server);
    session.play(lines);
    let entries = std::mem::take(&mut session.log).into_iter().map(|(_, words)| words);
    std::iter::once(vec![b"FOLLOW".to_vec()]).chain(entries).collect()
}

impl<'s> Session<'s> {
    pub fn new(server: &'s Server) -> Session<'s> {
        Session { server, log: Vec::new(), digests: Vec::new(), follows: false }
    }

    pub fn play(&mut self, lines: &[Line]) {
        lines.iter().for_each(|line| self.line(line));
    }

    fn line(&mut self, line: &Line) {
        let words: Line = line.iter().map(|word| self.told(word)).collect();
        self.plain_line(&words);
    }

    fn plain_line(&mut self, words: &Line) {
        let Some((name, rest)) = words.split_first() else {
            return;
        };
        match (&name[..], rest) {
            ([b'@', ms @ ..], []) => self.pass(ms),
            (b"FOLLOW", []) => self.follow(),
            (b"KILL", [which]) => self.server.disconnect(number(which) as usize),
            (b"INFO", []) => look::at_info(self.server),
            (b"RELOAD", []) => self.reload(),
            (b"DEFRAG", []) => self.defrag(None),
            (b"DEFRAG", [slice]) => self.defrag(Some(number(slice) as usize)),
            (b"DEL", [key]) => self.servers_own(words, |server| server.delete(0, key)),
            (b"RENAME", [from, to]) => self.servers_own(words, |server| server.rename(0, from, to)),
            (b"COPY", [from, to]) => {
                self.servers_own(words, |server| server.copy((0, from), (0, to)))
            }
            (b"FLUSHALL", []) => self.servers_own(words, Server::flush),
            _ => self.command(words),
        }
        self.turn();
    }

    fn told(&self, word: &Word) -> Word {
        let lease = match word[..] {
            [b'$', digit @ b'0'..=b'9'] => self.server.lease((digit - b'0').into()),
            _ => None,
        };
        lease.map_or_else(|| word.clone(), |lease| lease.to_string().into_bytes())
    }

    /// What comes with a log is of its primary's time.
    fn pass(&mut self, ms: &[u8]) {
        let clock = self.server.clock();
        self.server.set_clock(match ms {
            [b'-', ms @ ..] => clock.saturating_sub(number(ms)),
            ms => clock.saturating_add(number(ms)).min(CLOCK_MAX),
        });
        (1..TURNS_OF_TIMER).for_each(|_| self.turn());
    }

    fn follow(&mut self) {
        self.follows = true;
        self.server.follow(true);
    }

    fn servers_own(&mut self, words: &Line, act: impl FnOnce(&Server)) {
        act(self.server);
        self.log.push((0, words.clone()));
        self.digests = self.server.digests();
    }

    fn reload(&mut self) {
        let before = self.server.digests();
        self.server.reload();
        assert_eq!(before, self.server.digests(), "a file is what was written");
    }

    fn defrag(&mut self, slice: Option<usize>) {
        let before = self.server.digests();
        self.server.defrag(slice);
        assert_eq!(before, self.server.digests(), "the content is what it was");
    }

    fn command(&mut self, words: &Line) {
        let Answer::Replied(replied) = self.server.run_in_turn(0, words) else {
            return;
        };
        let log = self.server.take_log();
        if let Some(error) = &replied.error {
            assert!(
                PREFIXES.iter().any(|prefix| error.starts_with(prefix)),
                "an error without a prefix: {error}"
            );
            // What has died before it is in the log, also before an error.
            assert!(log.iter().all(is_settle), "an error, and yet logged: {error}");
        }
        self.heard(log);
    }

    /// Whatever has changed is in the log.
    fn heard(&mut self, log: Vec<(i32, Line)>) {
        let digests = self.server.digests();
        if log.is_empty() && !self.follows {
            assert!(digests == self.digests, "something has changed and isn't logged");
        }
        self.digests = digests;
        self.log.extend(log);
    }

    fn turn(&mut self) {
        self.server.end_turn();
        let log = self.server.take_log();
        self.heard(log);
    }

    fn end(mut self) {
        // What may leave for a sink has left: a look has turns, too.
        (0..TURNS_OF_TIMER).for_each(|_| self.turn());
        look::at_everything(self.server);
        let log = self.server.take_log();
        self.heard(log);
        if !self.follows {
            self.repeat();
        }
    }

    /// By a replica with the whole log.
    fn repeat(self) {
        self.server.flush();
        let mut replica = Session::new(self.server);
        replica.follow();
        self.log.iter().for_each(|(_, entry)| replica.plain_line(entry));
        let is_same = self.digests == self.server.digests();
        drop(replica);
        assert!(is_same, "a replica has come to something else");
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if self.follows {
            self.server.follow(false);
        }
    }
}

/// `DQ.APPLY key unix-ms circumstances SETTLE id ...`
fn is_settle((_, words): &(i32, Line)) -> bool {
    words.get(4).is_some_and(|word| word == b"SETTLE")
}

fn number(digits: &[u8]) -> u64 {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
