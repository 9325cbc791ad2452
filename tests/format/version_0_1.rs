//! What only version 0.1 wrote: it can be read.

use super::*;

#[test]
fn a_queue_of_0_1_has_no_heading_and_older_ones_have_less() {
    let with_settings = bytes(&[&[0x97, 0, 77, 3], TOTALS, &[50, 60], SETTINGS]);
    let shortest = bytes(&[&[0x94, 0, 77, 3], &[0x96, 1, 2, 3, 4, 5, 6]]);
    for old in [with_settings, shortest] {
        let mut queue = Queue::new(SEED);
        queue.restore(&QueueRecord::decode(&old).unwrap()).unwrap();
        assert_eq!(*queue.heading(), Heading::default());
        assert_eq!((queue.totals().added, queue.totals().deleted), (1, 6));
    }
}

#[test]
fn moves_of_0_1_and_their_causes() {
    let causes =
        [Cause::Popped, Cause::Released, Cause::Touched, Cause::Buried, Cause::Finished, Cause::Kicked];
    let waiting = job(Progress { attempt: 1, ..Progress::default() }, 100, Some(b"no"));
    for (number, cause) in (0..).zip(causes) {
        let expected = [0x91, 0x98, 0xc4, 1, b'a', number, 100, 0, 1, 0, 0xc0, 0xc4, 2, b'n', b'o'];
        assert_eq!(vec![waiting.move_record(cause)].encode(), expected);
    }
    let unknown = [0x91, 0x98, 0xc4, 1, b'a', 7, 100, 0, 1, 0, 0xc0, 0xc0];
    let unknown = Vec::<MoveRecord>::decode(&unknown).unwrap();
    assert_eq!(Effect::Move(unknown).check(), Err(RecordError::Cause));
}

#[test]
fn leases_and_drops_of_0_1() {
    let lease = vec![LeaseRecord::new(id("a"), Lease::new(70_000), at(100))].encode();
    assert_eq!(lease, [0x91, 0x93, 0xc4, 1, b'a', 0xce, 0, 1, 0x11, 0x70, 100]);
    for (number, exit) in [(0, Exit::Finished), (1, Exit::Purged)] {
        let drop = DropRecord::new(exit, [id("a"), id("bc")].into_iter()).encode();
        assert_eq!(drop, [0x92, number, 0x92, 0xc4, 1, b'a', 0xc4, 2, b'b', b'c']);
    }
    let unknown = DropRecord::decode(&[0x92, 2, 0x90]).unwrap();
    assert_eq!(Effect::Drop(unknown).check(), Err(RecordError::Cause));
}

const TWO: Attempts = Attempts::new(2);

/// A queue with the job `a`, which was put there, and what was done with it.
fn played(attempts: Attempts, steps: &[Step]) -> Queue {
    let mut queue = Queue::new(SEED);
    let plain = job(Progress::default(), 100, None);
    let put = JobView { policy: Policy { attempts, ..plain.policy }, ..plain };
    let put = Effect::Put { id: b"a", body: b"x", record: put.record() };
    queue.apply(&told(0), &put).unwrap();
    for step in steps {
        let effect = match step {
            Step::Passes(now) => {
                queue.advance(at(*now));
                continue;
            }
            Step::Leased(lease, end) => {
                Effect::Lease(vec![LeaseRecord::new(id("a"), Lease::new(*lease), at(*end))])
            }
            Step::Moved(cause, stage, time) => {
                let progress = Progress { stage: *stage, attempt: 2, ..Progress::default() };
                Effect::Move(vec![job(progress, *time, None).move_record(*cause)])
            }
        };
        queue.apply(&told(0), &effect).unwrap();
    }
    queue
}

enum Step {
    Passes(u64),
    Leased(u64, u64),
    Moved(Cause, Stage, u64),
}

/// Nothing told of the end of a lease: who gets the job next had it ended.
#[test]
fn a_log_of_0_1_comes_to_its_totals() {
    use Step::{Leased, Moved, Passes};
    let ended = |attempts, steps: &[Step]| {
        let queue = played(attempts, steps);
        let tally = queue.jobs().next().unwrap().tally;
        assert_eq!(tally, Tally::default(), "it counted nothing of a job");
        let Totals { popped, timed_out, died, .. } = *queue.totals();
        (popped, timed_out, died)
    };
    let kicked = || Moved(Cause::Kicked, Stage::Waiting, 400);
    assert_eq!(ended(TWO, &[Leased(70_000, 200)]), (1, 0, 0));
    assert_eq!(ended(TWO, &[Leased(70_000, 200), Leased(70_001, 300)]), (2, 1, 0));
    assert_eq!(ended(TWO, &[Leased(70_000, 200), Passes(200), Leased(70_001, 300)]), (2, 1, 0), "once");
    assert_eq!(ended(TWO, &[Leased(70_000, 200), Passes(199), Leased(70_001, 300)]), (2, 1, 0));
    assert_eq!(ended(TWO, &[Leased(70_000, 200), Leased(70_001, 300), kicked()]), (2, 2, 1));
    assert_eq!(ended(Attempts::new(9), &[Leased(70_000, 200), Leased(70_001, 300), kicked()]), (2, 2, 0));
    let released = Moved(Cause::Released, Stage::Waiting, 150);
    assert_eq!(ended(TWO, &[Leased(70_000, 200), released]), (1, 0, 0));
    let buried = || Moved(Cause::Buried, Stage::Dead, 150);
    assert_eq!(ended(TWO, &[Leased(70_000, 200), buried(), kicked()]), (1, 0, 1), "by being buried");
}

#[test]
fn an_effect_tells_its_highest_lease() {
    let leases = [7, 9, 8].map(|lease| LeaseRecord::new(id("a"), Lease::new(lease), at(100)));
    let leased = |lease| Progress {
        stage: Stage::Leased,
        attempt: 1,
        lease: Some(Lease::new(lease)),
        expires_at: None,
    };
    let moved = [7, 9, 8].map(|lease| job(leased(lease), 100, None).move_record(Cause::Touched));
    let put = Effect::Put { id: b"a", body: b"x", record: job(leased(9), 100, None).record() };
    for effect in [Effect::Lease(leases.to_vec()), Effect::Move(moved.to_vec()), put] {
        assert_eq!(effect.highest_lease(), Lease::new(9));
    }
    assert_eq!(Effect::Groups(Vec::new()).highest_lease(), Lease::default());
}
