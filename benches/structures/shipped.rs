//! The core as it is shipped, through its one door. It does more than the candidates: it checks
//! limits, keeps policies, details and totals, and mixes the check of its log. Compiled in here,
//! since the crate brings the allocator of the server.

use crate::queue::{
    Add, Circumstances, Due, Id, Ids, Millis, Mode, Pop, Queue, Removal, Remove, Time,
};

use crate::candidate::Candidate;

pub struct Shipped {
    queue: Queue,
    now: Time,
}

impl Shipped {
    fn told(&self) -> Circumstances {
        Circumstances { now: self.now, ..Circumstances::default() }
    }

    fn let_time_pass(&mut self, now_ms: u64) {
        self.now = self.now.max(time(now_ms));
        self.queue.advance(self.now);
    }
}

fn time(ms: u64) -> Time {
    Time::new(ms).unwrap()
}

impl Candidate for Shipped {
    fn new(start_ms: u64) -> Self {
        Shipped { queue: Queue::new((6, 7)), now: time(start_ms) }
    }

    fn add(&mut self, id: &[u8], body: &[u8], due_ms: u64) -> bool {
        let before = self.queue.len();
        let add = Add {
            due: Due::At(time(due_ms)),
            ttr: Millis::new(60_000),
            ..Add::plain(Id::new(id).unwrap(), body)
        };
        self.queue.apply(&self.told(), &add);
        self.queue.len() > before
    }

    fn cancel(&mut self, id: &[u8]) -> bool {
        let ids = [Id::new(id).unwrap()];
        self.queue
            .apply(
                &self.told(),
                &Remove { ids: Ids::from_slice(&ids), counted_as: Removal::Deleted },
            )
            .0
            == 1
    }

    /// All at once: it counts buckets, a few nanoseconds each.
    fn promote(&mut self, now_ms: u64, _at_most: usize) -> bool {
        self.let_time_pass(now_ms);
        true
    }

    fn ready(&self) -> usize {
        self.queue.counts().ready
    }

    fn pop(&mut self, now_ms: u64, seen: &mut impl FnMut(&[u8])) -> bool {
        self.let_time_pass(now_ms);
        let pop = Pop { mode: Mode::NoAck, ..Pop::ONE };
        let deliveries = self.queue.apply(&self.told(), &pop);
        let Some(delivery) = deliveries.iter().next() else {
            return false;
        };
        seen(delivery.id_and_body(&self.queue).0.bytes());
        true
    }
}
