//! The calendar for one operation: what is asked of it, and what it answers, which goes into the
//! log.

use super::host::Host;
use crate::queue::{self, Cron, Following, Time};

/// So many occurrences are counted as missed by one operation: each takes up to a microsecond.
const COUNTED_MAX: u32 = 1_000;

/// Writes down what it answers.
pub struct RecordingCalendar<H> {
    host: H,
    /// Most operations ask nothing.
    said: Option<Box<Said>>,
}

struct Said {
    answers: Vec<Following>,
    /// How many more are counted.
    counted: u32,
    /// The last question, which often comes again.
    last: (Cron, Time, Time),
}

impl<H: Host> RecordingCalendar<H> {
    pub fn new(host: H) -> RecordingCalendar<H> {
        RecordingCalendar { host, said: None }
    }

    pub fn answers(&self) -> &[Following] {
        self.said.as_ref().map_or(&[], |said| &said.answers)
    }

    fn look_up(&self, cron: &Cron, from: Time, after: Time, counted: &mut u32) -> Following {
        // Whatever is in a queue was read when it was added; but by another version, perhaps.
        let Ok(reading) = self.host.with(|state| state.cron_cache.read(cron)) else {
            return Following::default();
        };
        let (mut missed, mut times) = (0, reading.times_after(from));
        while *counted > 0 {
            match times.next() {
                Some(next) if next <= after => missed += 1,
                Some(next) => return Following { next: Some(next), missed },
                // None in a hundred years from there, which may be long ago.
                None => break,
            }
            *counted -= 1;
        }
        Following { next: reading.next(after), missed }
    }
}

impl<H: Host> queue::Calendar for RecordingCalendar<H> {
    fn following(&mut self, cron: &Cron, from: Time, after: Time) -> Following {
        let said = self.said.take();
        let (mut answers, mut counted) = (Vec::new(), COUNTED_MAX);
        let mut asked_again = None;
        if let Some(said) = said {
            let (last, last_from, last_after) = &said.last;
            let is_asked_again = last == cron && (*last_from, *last_after) == (from, after);
            asked_again = said.answers.last().copied().filter(|_| is_asked_again);
            (answers, counted) = (said.answers, said.counted);
        }
        let answer = asked_again.unwrap_or_else(|| self.look_up(cron, from, after, &mut counted));
        answers.push(answer);
        self.said = Some(Box::new(Said { answers, counted, last: (cron.clone(), from, after) }));
        answer
    }
}
