//! The calendar for one operation. It records its answers, which are logged.

use crate::queue::{self, Cron, Following, Time};
use crate::services::host::Host;

/// One operation counts at most this many missed occurrences: each takes up to a microsecond.
const COUNTED_MAX: u32 = 1_000;

/// Records its answers.
pub struct RecordingCalendar<H> {
    host: H,
    /// `None` for most operations, which ask nothing.
    said: Option<Box<Said>>,
}

struct Said {
    answers: Vec<Following>,
    /// How many more missed occurrences may be counted.
    counted: u32,
    /// The last question, which is often repeated.
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
        // It was valid when it was added; but this version may not read what another one accepted.
        let Ok(reading) = self.host.with(|state| state.cron_cache.read(cron)) else {
            return Following::default();
        };
        let (mut missed, mut times) = (0, reading.times_after(from));
        while *counted > 0 {
            match times.next() {
                Some(next) if next <= after => missed += 1,
                Some(next) => return Following { next: Some(next), missed },
                // There is none in the hundred years after `from`, but there may be one after
                // `after`.
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
