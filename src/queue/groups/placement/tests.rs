//! Which lines of a group have a seat.

use super::*;
use crate::queue::kernel::delivery::Mode;
use crate::queue::kernel::log_state::Circumstances;
use crate::queue::kernel::queue::Queue;
use crate::queue::operation::consume::{Pop, PopById};
use crate::queue::operation::manage::Alter;
use crate::queue::operation::produce::Add;
use crate::queue::operation::work::Finish;
use crate::queue::value::due::Due;
use crate::queue::value::ids::{Claim, Claims, Id};
use crate::queue::value::rate::Rate;
use crate::queue::value::time::Millis;

const GROUPS: usize = 5;

fn told(now: u64) -> Circumstances {
    Circumstances { now: Time::new(now).unwrap(), ..Circumstances::default() }
}

fn add(queue: &mut Queue, now: u64, group: usize, priority: u8, add: Add) {
    let (id, group) = (format!("{group}:{priority}"), group.to_string());
    let (id, group) = (Id::new(id.as_bytes()).unwrap(), Id::new(group.as_bytes()).unwrap());
    queue.apply(
        &told(now),
        &Add { id: Some(id), group: Some(group), priority: Some(priority), ..add },
    );
}

/// Groups with a job in each priority, of which one at a time may be worked on.
fn of_all_priorities(job: fn() -> Add<'static>) -> Queue {
    let mut queue = Queue::new((1, 2));
    let group_concurrency = Some(1);
    queue.apply(&told(0), &Alter { group_concurrency, ..Alter::default() });
    for group in 0..GROUPS {
        (0..=255).for_each(|priority| add(&mut queue, 0, group, priority, job()));
    }
    queue
}

fn seats(queue: &Queue) -> usize {
    let groups = queue.groups.as_ref().unwrap();
    groups.lanes.iter().map(|lane| lane.seats.len()).sum()
}

fn plain() -> Add<'static> {
    Add::plain(Id::new(b"x").unwrap(), b"")
}

fn pop(queue: &mut Queue, now: u64) -> Vec<String> {
    let deliveries = queue.apply(&told(now), &Pop { count: 100, ..Pop::ONE });
    let names = deliveries.iter().map(|delivery| delivery.id_and_body(queue).0.bytes().to_vec());
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

fn finish(queue: &mut Queue, now: u64, id: &str) {
    let claim = Claim { id: Id::new(id.as_bytes()).unwrap(), lease: None };
    queue.apply(&told(now), &Finish { claims: Claims::from_slice(&[claim]) });
}

/// What a POP or a FINISH moves is one line of the group, whatever it has in other priorities.
#[test]
fn the_best_ready_line_of_a_group_has_a_seat() {
    let mut queue = of_all_priorities(plain);
    for priority in 0..256 {
        assert_eq!(seats(&queue), GROUPS);
        let all: Vec<_> = (0..GROUPS).map(|group| format!("{group}:{priority}")).collect();
        assert_eq!(pop(&mut queue, 5), all);
        assert_eq!(pop(&mut queue, 5), [""; 0]);
        all.iter().for_each(|id| finish(&mut queue, 5, id));
    }
}

#[test]
fn a_job_that_is_not_ready_or_may_expire_shadows_no_other() {
    let late = of_all_priorities(|| Add { due: Due::In(Millis::new(9).unwrap()), ..plain() });
    assert_eq!(seats(&late), GROUPS * 256);
    let expiring = of_all_priorities(|| Add { ttl: Some(Millis::new(9).unwrap()), ..plain() });
    assert_eq!(seats(&expiring), GROUPS * 256);
    let mut late = late;
    assert_eq!(pop(&mut late, 9).len(), GROUPS);
    assert_eq!(seats(&late), GROUPS * 2, "as soon as something is resolved_at; the lease has one");
}

/// Of a group, what was ready is to come again, and what stands behind it is ready.
#[test]
fn when_the_clock_is_set_back_nothing_hides_behind_what_isn_t_ready_any_more() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 100, 1, 7, plain());
    add(&mut queue, 500, 1, 3, plain());
    assert_eq!(seats(&queue), 1);
    let mut looked_at = queue.clone();
    looked_at.advance(Time::new(200).unwrap());
    assert_eq!(
        seats(&looked_at),
        2,
        "also before any operation: the timer asks when a group opens"
    );
    assert_eq!(pop(&mut queue, 200), ["1:7"]);
    assert_eq!(pop(&mut queue, 500), ["1:3"]);
}

#[test]
fn a_job_that_leaves_out_of_turn_leaves_no_shadow() {
    let mut queue = of_all_priorities(plain);
    let ids = ["0:0", "1:0", "1:9"].map(|id| Id::new(id.as_bytes()).unwrap());
    let pop_by_id = PopById { ids: &ids, ttr: None, mode: Mode::Lease };
    assert_eq!(queue.apply(&told(1), &pop_by_id).len(), 2, "1 is worked on");
    ["0:0", "1:0"].iter().for_each(|id| finish(&mut queue, 1, id));
    assert_eq!(pop(&mut queue, 1), ["2:0", "3:0", "4:0", "0:1", "1:1"]);
}

#[test]
fn a_rate_moves_one_seat_of_each_group() {
    let mut queue = of_all_priorities(plain);
    let group_rate = Some(Rate::new(1, Millis::new(10).unwrap(), 1));
    queue.apply(&told(1), &Alter { group_rate, group_concurrency: Some(0), ..Alter::default() });
    for n in 0..20 {
        let all = Pop { count: 100, mode: Mode::NoAck, ..Pop::ONE };
        assert_eq!(queue.apply(&told(1 + 10 * n), &all).len(), GROUPS);
        assert_eq!(seats(&queue), GROUPS);
    }
}
