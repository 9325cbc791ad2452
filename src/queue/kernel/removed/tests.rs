use crate::queue::kernel::log_state::Circumstances;
use crate::queue::operation::consume::Pop;
use crate::queue::operation::manage::{Removal, Remove};
use crate::queue::operation::produce::{Add, IfTaken};
use crate::queue::value::ids::{Id, Ids};
use crate::queue::Queue;

fn id(name: &str) -> Id<'_> {
    Id::new(name.as_bytes()).unwrap()
}

fn queue_of(jobs: &[(&str, usize)]) -> Queue {
    let mut queue = Queue::new((0, 0));
    for (name, bytes) in jobs {
        queue.apply(&Circumstances::default(), &Add::plain(id(name), &vec![b'x'; *bytes]));
    }
    queue
}

fn delete(queue: &mut Queue, name: &str) {
    queue.apply(
        &Circumstances::default(),
        &Remove { ids: Ids::from_slice(&[id(name)]), counted_as: Removal::Deleted },
    );
}

#[test]
fn a_large_job_that_is_removed_can_be_taken_once() {
    let mut queue = queue_of(&[("small", 100), ("large", 1 << 20)]);
    delete(&mut queue, "small");
    assert_eq!(queue.take_removed().bytes(), 0);
    delete(&mut queue, "large");
    assert!(queue.take_removed().bytes() > 1 << 20);
    assert_eq!(queue.take_removed().bytes(), 0);
}

#[test]
fn a_large_job_that_is_replaced_can_be_taken_once() {
    let mut queue = queue_of(&[("a", 1 << 20)]);
    let replace = Add { if_taken: IfTaken::Replace, ..Add::plain(id("a"), b"x") };
    queue.apply(&Circumstances::default(), &replace);
    assert!(queue.take_removed().bytes() > 1 << 20);
}

#[test]
fn removed_jobs_that_are_not_taken_do_not_add_up() {
    let mut queue = queue_of(&[("a", 1 << 20), ("b", 1 << 20)]);
    delete(&mut queue, "a");
    assert!(queue.clone().take_removed().bytes() == 0, "a copy of the queue has nothing to free");
    delete(&mut queue, "b");
    assert!((1 << 20..2 << 20).contains(&queue.take_removed().bytes()));
    delete(&mut queue, "b");
    queue.apply(&Circumstances::default(), &Pop::ONE);
    assert_eq!(queue.take_removed().bytes(), 0);
}
