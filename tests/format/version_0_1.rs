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
    let causes = [
        Cause::Popped,
        Cause::Released,
        Cause::Touched,
        Cause::Buried,
        Cause::Finished,
        Cause::Kicked,
        Cause::Returned,
    ];
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
