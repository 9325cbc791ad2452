//! What a delivery says of itself, and of the job that it delivered.

use super::rounds::schedule_of;
use super::*;

#[test]
fn leases_of_a_moment_begin_at_a_number_made_of_it() {
    assert_eq!(Lease::first_at(at(0)), Lease::default());
    assert_eq!(Lease::first_at(at(3)), Lease::new(3 * 2_048));
    assert_eq!(Lease::first_at(Time::MAX), Lease::new(Lease::MAX.number() - 1));
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 3, &plain("a"));
    assert_eq!(popped(&mut queue, 3), Lease::first_at(at(3)));
}

#[test]
fn a_delivery_is_called_by_its_occurrence_or_by_when_it_was_due() {
    let schedule = schedule_of(&["every=100"], Some(Due::At(at(50))));
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { schedule, ..plain("scheduled") });
    add(&mut queue, 0, &Add { due: Due::In(span(60)), ..plain("once") });
    let occurrences = |queue: &mut Queue, now| -> Vec<Time> {
        let popped = queue.apply(&told(now), &Pop { count: 9, ..Pop::ONE });
        popped.iter().map(|delivery| delivery.occurrence()).collect()
    };
    assert_eq!(occurrences(&mut queue, 70), [at(50), at(60)]);
    // Another attempt at the same occurrence; of the other job the lease ended then.
    assert_eq!(occurrences(&mut queue, 130), [at(50), at(130)]);
}
