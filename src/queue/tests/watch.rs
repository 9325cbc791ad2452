//! What a queue tells of jobs that are watched.

use super::*;

fn at(ms: u64) -> Circumstances {
    Circumstances { now: Time::new(ms).unwrap(), ..Circumstances::default() }
}

fn id(name: &str) -> Id<'_> {
    Id::new(name.as_bytes()).unwrap()
}

fn span(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

/// A queue with jobs of these names, each of which is delivered. Returns their leases.
fn held(names: &[&str]) -> (Queue, Vec<Lease>) {
    let mut queue = Queue::new((1, 2));
    for name in names {
        queue.apply(&at(0), &Add { ttr: Some(span(10)), ..Add::plain(id(name), b"x") });
    }
    let deliveries = queue.apply(&at(0), &Pop { count: names.len(), ..Pop::ONE });
    let leases = deliveries.iter().map(|delivery| delivery.lease).collect();
    (queue, leases)
}

/// The ids, and the results of those that were finished.
fn told(queue: &mut Queue) -> Vec<(String, Option<Option<String>>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let news = queue.take_news().into_iter();
    news.map(|JobNews { id, finished, .. }| {
        (text(&id), finished.map(|finished| finished.result.map(|result| text(&result))))
    })
    .collect()
}

fn finish(queue: &mut Queue, name: &str, result: Option<&[u8]>) {
    let claim = Claim { id: id(name), lease: None };
    let done = Done { claim, result, keep: None, adds: Vec::new() };
    assert!(queue.apply(&at(1), &done).has_changed());
}

#[test]
fn a_queue_tells_of_watched_jobs_alone_and_of_each_once() {
    let (mut queue, _) = held(&["a", "b"]);
    assert!(queue.watch(id("a")));
    assert!(!queue.watch(id("nobody")));
    assert!(!queue.has_news());
    finish(&mut queue, "b", Some(b"of b"));
    assert!(!queue.has_news());
    finish(&mut queue, "a", Some(b"of a"));
    assert!(queue.has_news());
    assert_eq!(told(&mut queue), [("a".into(), Some(Some("of a".into())))]);
    assert_eq!(told(&mut queue), []);
    queue.apply(&at(1), &Add::plain(id("a"), b"x"));
    queue.apply(&at(1), &Add { if_taken: IfTaken::Replace, ..Add::plain(id("a"), b"y") });
    assert_eq!(told(&mut queue), []);
}

#[test]
fn a_copy_is_watched_by_none_and_no_digest_knows() {
    let (mut queue, _) = held(&["a"]);
    let (before, memory, of_copy) = (queue.record(), queue.memory(), queue.clone().memory());
    queue.watch(id("a"));
    assert_eq!(queue.record(), before);
    assert!(queue.memory() > memory);
    let mut copy = queue.clone();
    assert_eq!(copy.memory(), of_copy);
    finish(&mut copy, "a", None);
    assert!(!copy.has_news());
    finish(&mut queue, "a", None);
    assert!(queue.has_news());
    assert_eq!(queue.record(), copy.record());
}

#[test]
fn the_lease_that_a_job_had_is_told() {
    let (mut queue, leases) = held(&["a"]);
    queue.watch(id("a"));
    queue.apply(&at(10), &Pop::ONE);
    let news = queue.take_news();
    assert_eq!(news, [JobNews { id: b"a"[..].into(), lease: Some(leases[0]), finished: None }]);
}

#[test]
fn slots_of_any_number_are_watched() {
    let names: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut queue, _) = held(&names);
    for name in ["63", "64", "199"] {
        queue.watch(id(name));
        let ids = names.iter().map(|name| id(name)).filter(|one| *one != id(name));
        let touched: Vec<Claim> = ids.map(|id| Claim { id, lease: None }).collect();
        let renew = Renew { claims: Claims::from_slice(&touched), ttr: None };
        assert_eq!(queue.apply(&at(1), &renew).extended, 199);
        assert!(!queue.has_news());
        let claims = Claims::from_slice(&[Claim { id: id(name), lease: None }]);
        queue.apply(&at(1), &Renew { claims, ttr: None });
        assert_eq!(told(&mut queue), [(name.into(), None)]);
    }
}

#[test]
fn renew_extends_each_lease_as_touch_does_and_names_the_void_ones() {
    let (mut queue, leases) = held(&["a", "b", "c"]);
    queue.apply(&at(0), &Remove { ids: Ids::from_slice(&[id("b")]), counted_as: Removal::Deleted });
    let claim = |name, lease| Claim { id: id(name), lease };
    let claims = [
        claim("a", Some(leases[0])),
        claim("b", Some(leases[1])),
        claim("c", Some(leases[0])),
        claim("c", None),
        claim("nobody", None),
    ];
    let renew = Renew { claims: Claims::from_slice(&claims), ttr: Some(span(50)) };
    let renewed = queue.apply(&at(5), &renew);
    assert_eq!(renewed, Renewed { void: vec![1, 2, 4], extended: 2 });
    assert!(["a", "c"].iter().all(|name| queue.get(id(name)).unwrap().time == at(55).now));
    // Each by its own TTR; and what extends nothing changes nothing.
    queue.apply(&at(6), &Renew { ttr: None, ..renew });
    assert_eq!(queue.get(id("a")).unwrap().time, at(16).now);
    let none = Renew { claims: Claims::from_slice(&claims[1..3]), ttr: None };
    let before = queue.record();
    assert!(!queue.apply(&at(7), &none).has_changed());
    assert_eq!(queue.record(), before);
}

#[test]
fn a_lease_is_good_until_the_job_is_delivered_again_or_its_life_is_over() {
    let mut queue = Queue::new((1, 2));
    queue.apply(&at(0), &Add { ttl: Some(span(100)), ..Add::plain(id("a"), b"x") });
    let pop = Pop { ttr: Some(span(10)), ..Pop::ONE };
    let lease = queue.apply(&at(0), &pop).iter().next().unwrap().lease;
    let claim = Claim { id: id("a"), lease: Some(lease) };
    assert_eq!(
        [0, 9, 50, 99, 100].map(|ms| queue.is_valid(at(ms).now, &claim)),
        [true, true, true, true, false]
    );
    queue.apply(&at(50), &pop);
    assert!(!queue.is_valid(at(50).now, &claim));
}
