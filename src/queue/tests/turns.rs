//! Whose turn it is, however many groups come: no group waits for those that came later.

use std::collections::BTreeMap;

use super::groups::leaving;
use super::*;

/// One new group for each delivery, so that a round which took them in would never end.
#[test]
fn while_new_groups_keep_coming_the_others_are_served() {
    for step in [0, 1] {
        let mut queue = Queue::new((1, 2));
        for name in ["a1", "a2", "a3"] {
            add(&mut queue, 0, &Add { group: Some(id("a")), ..plain(name) });
        }
        ["n1", "n2", "n3"].iter().for_each(|name| add(&mut queue, 0, &plain(name)));
        let mut left = Vec::new();
        for n in 0..30u64 {
            let (now, name) = (n * step, format!("order:{n}"));
            add(&mut queue, now, &Add { group: Some(id(&name)), ..plain(&name) });
            left.extend(leaving(&mut queue, now, 1));
        }
        let old: Vec<&String> = left.iter().filter(|name| !name.starts_with("order:")).collect();
        assert_eq!(old, ["n1", "a1", "n2", "a2", "n3", "a3"], "{step} ms: {left:?}");
        let first = left.iter().position(|name| name == "order:0");
        assert_eq!(first, Some(2), "{step} ms: {left:?}");
    }
}

/// As the clock stands still, or was set back.
#[test]
fn a_group_that_comes_again_and_again_in_one_millisecond_holds_up_no_other() {
    let mut queue = Queue::new((1, 2));
    for now in [1_000, 1_000, 500] {
        for name in ["a1", "a2", "b1", "b2"] {
            let name = format!("{name}-{now}-{}", queue.len());
            add(&mut queue, now, &Add { group: Some(id(&name[..1])), ..plain(&name) });
        }
        let mut left = Vec::new();
        for n in 0..20 {
            let name = format!("c{n}-{now}-{}", queue.len());
            add(&mut queue, now, &Add { group: Some(id("c")), ..plain(&name) });
            let popped = queue.apply(&told(now), &Pop { mode: Mode::NoAck, ..Pop::ONE });
            left.push(popped.iter().next().unwrap().id_and_body(&queue).0.bytes()[0]);
        }
        assert!(left.iter().filter(|name| **name == b'a').count() >= 2, "{left:?}");
        assert!(left.iter().filter(|name| **name == b'b').count() >= 2, "{left:?}");
        queue.apply(&told(now), &Pop { count: 99, mode: Mode::NoAck, ..Pop::ONE });
    }
}

/// What falls due by the passing of time comes, too.
#[test]
fn while_groups_keep_falling_due_the_others_are_served() {
    let mut queue = Queue::new((1, 2));
    for n in 0..100u64 {
        let name = format!("reminder:{n}");
        let due = Due::In(span(n));
        add(&mut queue, 0, &Add { group: Some(id(&name)), due, ..plain(&name) });
    }
    ["a1", "a2", "a3"]
        .iter()
        .for_each(|name| add(&mut queue, 0, &Add { group: Some(id("a")), ..plain(name) }));
    let left: Vec<String> = (0..20).flat_map(|now| leaving(&mut queue, now, 1)).collect();
    let of_a: Vec<&String> = left.iter().filter(|name| name.starts_with('a')).collect();
    assert_eq!(of_a, ["a1", "a2", "a3"], "{left:?}");
}

/// A group with ready jobs; the one without a name is of the jobs that have none.
#[derive(Default)]
struct Waiting {
    jobs: usize,
    /// The step in which it came, and the one since which it waits: it came, or was served.
    came: usize,
    since: usize,
    /// How often others were served meanwhile.
    passed: BTreeMap<String, usize>,
}

/// Random comings, and what the queue delivers.
struct Session {
    queue: Queue,
    numbers: u64,
    now: u64,
    step: usize,
    waiting: BTreeMap<String, Waiting>,
}

impl Session {
    fn draw(&mut self, below: u64) -> u64 {
        self.numbers = self
            .numbers
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.numbers >> 33) % below
    }

    fn come(&mut self, group: &str, jobs: u64) {
        for n in 0..jobs {
            let name = format!("{group}#{}-{n}-{}", self.step, self.queue.len());
            add(
                &mut self.queue,
                self.now,
                &Add { group: Id::new(group.as_bytes()), ..plain(&name) },
            );
        }
        let step = self.step;
        let new = || Waiting { came: step, since: step, ..Waiting::default() };
        self.waiting.entry(group.to_owned()).or_insert_with(new).jobs += jobs as usize;
    }

    fn serve(&mut self) {
        let popped = self.queue.apply(&told(self.now), &Pop { mode: Mode::NoAck, ..Pop::ONE });
        let delivery = popped.iter().next().unwrap();
        let name = String::from_utf8(delivery.id_and_body(&self.queue).0.bytes().to_vec()).unwrap();
        let served = name.split_once('#').unwrap().0;
        let mut one = self.waiting.remove(served).unwrap();
        for (name, other) in &mut self.waiting {
            // Those without a group are one that is always there.
            assert!(one.came <= other.since || served.is_empty(), "{served} came after {name}");
            let passed = other.passed.entry(served.to_owned()).or_default();
            *passed += 1;
            assert!(*passed <= 2, "step {}: {name} waits for {served}", self.step);
        }
        one.jobs -= 1;
        if one.jobs > 0 {
            (one.since, one.passed) = (self.step, BTreeMap::new());
            self.waiting.insert(served.to_owned(), one);
        }
    }
}

/// Others that stood there before are served twice at most while a group waits: in the rest of a
/// round, and in the next one. Those that came later aren't at all.
#[test]
fn a_group_waits_for_at_most_two_jobs_of_each_group_that_was_there_before() {
    for seed in 0..60u64 {
        let (queue, waiting) = (Queue::new((1, 2)), BTreeMap::new());
        let numbers = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut session = Session { queue, numbers, now: 1_000, step: 0, waiting };
        let (fresh, old, clock) = (session.draw(4), 1 + session.draw(8), session.draw(3));
        for step in 0..400 {
            session.step = step;
            session.now += u64::from(session.draw(3) < clock);
            for _ in 0..1 + session.draw(2) {
                let group = match session.draw(4 + fresh) {
                    0 => String::new(),
                    1..4 => format!("old {}", session.draw(old)),
                    _ => format!("fresh {step}"),
                };
                let jobs = if session.draw(20) == 0 { 30 } else { 1 };
                session.come(&group, jobs);
            }
            session.serve();
        }
    }
}
