//! Groups without jobs: which are remembered, for what, and for how long.

use super::groups::leaving;
use super::*;

/// A pause isn't refused when memory is full.
#[test]
fn the_number_of_paused_groups_without_jobs_is_limited() {
    let mut queue = Queue::new((1, 2));
    let pause = |queue: &mut Queue, now, group: &str, ms: Option<u64>| {
        let before = *queue.log_state();
        let pause = Pause { group: Some(id(group)), span: ms.map(span) };
        let paused = queue.apply(&told(now), &pause);
        assert!(paused == Altered::Yes || *queue.log_state() == before);
        paused
    };
    queue.apply(
        &told(1),
        &Alter { group_rate: Some(Rate::new(1, span(1_000), 1)), ..Alter::default() },
    );
    // Remembered by their rates.
    for name in ["had its turn", "0"] {
        add(&mut queue, 1, &Add { group: Some(id(name)), ..plain(name) });
        queue.apply(&told(1), &Pop { mode: Mode::NoAck, ..Pop::ONE });
    }
    add(&mut queue, 1, &Add { group: Some(id("busy")), ..plain("a") });
    for n in 0..PAUSED_GROUPS_MAX {
        assert_eq!(pause(&mut queue, 1, &n.to_string(), (n < 2).then_some(9)), Altered::Yes);
    }
    assert_eq!(queue.groups_len(), PAUSED_GROUPS_MAX + 2);
    for queue in [&mut script::loaded(&queue), &mut queue] {
        assert_eq!(pause(queue, 5, "more", None), Altered::TooManyPaused);
        assert_eq!(queue.groups_len(), PAUSED_GROUPS_MAX + 2);
        assert_eq!(pause(queue, 5, "busy", None), Altered::Yes, "it has jobs");
        assert_eq!(pause(queue, 5, "7", None), Altered::Yes, "it is paused already");
        assert_eq!(queue.apply(&told(6), &Resume::Group(id("8"))), Resumed::Pause(true));
        assert_eq!(pause(queue, 6, "more", None), Altered::Yes, "another isn't any more");
        assert_eq!(pause(queue, 9, "another", None), Altered::TooManyPaused);
        assert_eq!(pause(queue, 10, "another", None), Altered::Yes, "two pauses are over");
        add(queue, 10, &Add { group: Some(id("9")), ..plain("b") });
        assert_eq!(pause(queue, 10, "a third", None), Altered::Yes, "one has a job");
        assert_eq!(pause(queue, 10, "a fourth", None), Altered::Yes);
        assert_eq!(pause(queue, 10, "a fifth", None), Altered::TooManyPaused);
        // That these are remembered doesn't count, nor that one was paused up to now.
        queue.advance(at(10));
        for known in ["had its turn", "0"] {
            assert!(
                queue.group(id(known)).is_some_and(|group| group.paused_until.is_none()),
                "{known}"
            );
            assert_eq!(pause(queue, 10, known, None), Altered::TooManyPaused, "{known}");
        }
    }
}

#[test]
fn a_group_is_forgotten_when_nothing_of_it_counts() {
    check("@0 ADD a group=g | POP NOACK -> a#1 | GROUP g -> nil | ADD b | LOAD | POP -> b#1 | FINISH b * | ADD x group=x | ADD y group=x | POP n=2 -> x#1 y#1 | FINISH x * | GROUP x -> 0 1 0");
    check("@0 ALTER eachrate=1/50 | ADD a group=g | DEL a | GROUP g -> nil | ADD b group=g | POP NOACK -> b#1 | GROUP g -> 0 0 0");
    let mut queue = Queue::new((1, 2));
    for n in 0..10_000 {
        let name = n.to_string();
        let plain = plain("a");
        let id = Id::new(name.as_bytes());
        add(&mut queue, 0, &Add { id, group: id, ..plain });
        let popped = queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE });
        assert_eq!(popped.len(), 1);
        assert_eq!(queue.groups_len(), 0);
    }
}

/// Whoever comes has the next round, so the turns of groups without jobs need not be remembered.
#[test]
fn a_group_that_comes_again_leaves_behind_those_that_have_not_had_their_turn() {
    let mut queue = Queue::new((1, 2));
    for n in 0..500u64 {
        let name = n.to_string();
        add(&mut queue, 0, &Add { group: Some(id(&name)), ..plain(&name) });
    }
    let popped = queue.apply(&told(0), &Pop { count: 200, mode: Mode::NoAck, ..Pop::ONE });
    assert_eq!((popped.len(), queue.groups_len()), (200, 300));
    for n in 0..200u64 {
        let name = format!("again-{n}");
        let group = (n / 10).to_string();
        add(&mut queue, 0, &Add { group: Some(id(&group)), ..plain(&name) });
    }
    assert_eq!(queue.groups_len(), 320);
    let left = leaving(&mut queue, 0, 301);
    assert_eq!((&*left[0], &*left[299], &*left[300]), ("200", "499", "again-0"));
}

#[test]
fn a_look_through_all_groups_shows_those_that_have_jobs_or_are_paused() {
    let mut queue = Queue::new((1, 2));
    assert_eq!(queue.scan_groups(0, 7), (vec![], None));
    // By its rate, one without jobs is remembered.
    let group_rate = Some(Rate::new(1, span(1_000), 1));
    queue.apply(&told(0), &Alter { group_rate, ..Alter::default() });
    add(&mut queue, 0, &Add { group: Some(id("left")), ..plain("gone") });
    assert_eq!(queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE }).len(), 1);
    let mut wanted: Vec<String> = (0..50).map(|n: u32| n.to_string()).collect();
    for name in &wanted {
        add(&mut queue, 0, &Add { group: Some(id(name)), due: Due::In(span(9)), ..plain(name) });
    }
    for (name, ms) in [("paused", 6), ("was paused", 5)] {
        queue.apply(&told(0), &Pause { group: Some(id(name)), span: Some(span(ms)) });
    }
    wanted.push("paused".into());
    queue.advance(at(5));
    for remembered in ["left", "was paused"] {
        assert!(queue.group(id(remembered)).is_some(), "{remembered}");
    }
    let (mut seen, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        let (groups, next) = queue.scan_groups(at, 7);
        assert!(groups.len() <= 7);
        assert!(groups.iter().all(|group| queue.group(group.name) == Some(*group)));
        seen.extend(
            groups.iter().map(|group| String::from_utf8(group.name.bytes().to_vec()).unwrap()),
        );
        from = next;
    }
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);
}

#[test]
fn a_queue_without_groups_remembers_no_turns() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    add(&mut queue, 0, &Add { group: Some(id("g")), ..plain("b") });
    popped(&mut queue, 0);
    let records = queue.group_records();
    assert_eq!(records.len(), 2, "of those without a group, and of one");
    let (mut loaded, mut replica) = (Queue::new((1, 2)), Queue::new((1, 2)));
    loaded.load_group(&records[0]).unwrap();
    loaded.restore(&queue.record()).unwrap();
    replica.apply(&told(0), &Effect::Groups(records[..1].to_vec())).unwrap();
    for queue in [loaded, replica] {
        assert_eq!((queue.group_records(), queue.record().groups_len()), (vec![], 0));
    }
}

#[test]
fn groups_give_back_the_memory_that_they_took() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("first"));
    let before = queue.memory();
    for n in 0..3_000 {
        let (name, group) = (n.to_string(), (n % 7).to_string());
        let (id, group) = (Id::new(name.as_bytes()), Id::new(group.as_bytes()));
        add(&mut queue, 0, &Add { id, group, ..plain("x") });
    }
    assert!(queue.memory() > before + 3_000 * 40);
    for n in 0..3_000 {
        let name = n.to_string();
        queue.apply(
            &told(1),
            &Remove { ids: Ids::from_slice(&[id(&name)]), counted_as: Removal::Deleted },
        );
    }
    assert_eq!((queue.len(), queue.groups_len()), (1, 0));
    // A page of each slab stays.
    assert!(queue.memory() < before + 200_000, "{} after {before}", queue.memory());
}

/// 350 bytes each would stay until commands come.
#[test]
fn the_timer_forgets_groups_without_jobs_while_there_are_no_commands() {
    let mut queue = Queue::new((1, 2));
    queue.apply(
        &told(0),
        &Alter { group_rate: Some(Rate::new(1, span(5_000), 1)), ..Alter::default() },
    );
    // These stand before all others, and don't count for nothing by themselves.
    for n in 0..PAUSED_GROUPS_MAX {
        queue.apply(&told(0), &Pause { group: Some(id(&format!("paused {n}"))), span: None });
    }
    for n in 0..5_000 {
        let name = n.to_string();
        add(&mut queue, 0, &Add { group: Some(id(&name)), ..plain(&name) });
        assert_eq!(queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE }).len(), 1);
    }
    let mut replica = script::loaded(&queue);
    assert_eq!(queue.groups_len(), 6_000);
    assert_eq!(
        queue.forgets_groups_at(at(999)),
        Some(at(1_000)),
        "while there are commands, these forget groups"
    );
    assert_eq!(queue.forgets_groups_at(at(1_000)), Some(at(5_000)));
    let log_state = *queue.log_state();
    let forgotten = queue.apply(&told(4_999), &ForgetGroups);
    assert_eq!((forgotten, *queue.log_state()), (Affected(0), log_state), "their rate counts");
    let (mut now, mut steps) = (5_000, 0);
    while queue.groups_len() > PAUSED_GROUPS_MAX {
        queue.advance(at(now));
        let next = queue.find_wake_at().expect("the timer comes as long as there are any");
        if next.unix_ms() > now {
            now = next.unix_ms();
            continue;
        }
        for queue in [&mut queue, &mut replica] {
            assert!(queue.apply(&told(now), &ForgetGroups).0 > 0);
        }
        assert_eq!(replica.log_state(), queue.log_state());
        assert_eq!(replica.group_records(), queue.group_records());
        steps += 1;
    }
    assert!(steps <= 4, "{steps}");
    // It doesn't come for those that are paused until they are resumed.
    now += 1_000;
    queue.advance(at(now));
    assert_eq!((queue.find_wake_at(), queue.groups_len()), (None, PAUSED_GROUPS_MAX));
}

/// The end of one pause doesn't keep the timer from groups behind it.
#[test]
fn the_timer_comes_for_the_first_group_that_counts_for_nothing() {
    let mut queue = Queue::new((1, 2));
    for (name, ms) in [("long", 1_000_000), ("short", 3_000)] {
        queue.apply(&told(0), &Pause { group: Some(id(name)), span: Some(span(ms)) });
    }
    assert_eq!(queue.forgets_groups_at(at(1_000)), Some(at(3_000)));
    assert_eq!(queue.apply(&told(3_000), &ForgetGroups), Affected(1));
    assert!(queue.group(id("long")).is_some());
}
