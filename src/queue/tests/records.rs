//! Records: what is in files.

use super::*;

#[test]
fn an_expiry_at_the_last_moment_there_is_is_none() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    let job = queue.get(id("a")).unwrap();
    let expires_at = |expiry| {
        let progress = Progress { expires_at: Some(expiry), ..job.progress };
        let record = JobRecord::of(&JobView { progress, ..job });
        record.job(b"a", b"body").unwrap().progress.expires_at
    };
    assert_eq!(expires_at(at(5)), Some(at(5)));
    assert_eq!(expires_at(Time::MAX), None);
}

#[test]
fn a_record_without_totals_or_history_has_all_the_rest() {
    let mut queue = Queue::new((1, 2));
    let rate = Some(Rate::new(3, span(100), 2));
    queue.apply(&told(7), &Alter { rate, ttr: Some(span(9)), ..Alter::default() });
    add(&mut queue, 8, &Add { id: None, ..plain("made") });
    popped(&mut queue, 9);
    queue.advance(at(70));
    queue.apply(&told(80), &Pause { group: None, span: None });
    let record = queue.record();
    assert!(record.totals != Totals::default() && record.counted > Time::ZERO);
    let without_totals =
        QueueRecord { totals: Totals::default(), counted: Time::ZERO, ..record.clone() };
    assert_eq!(record.without_totals(), without_totals);
    assert_ne!(record.without_history(), without_totals, "the check");
    let LogState { clock, defaults, check } = record.without_history().log_state;
    let log_state = *queue.log_state();
    assert_eq!((clock, defaults, check), (log_state.clock, log_state.defaults, Checksum(0)));
    let mut other = Queue::new((1, 2));
    other
        .restore(&QueueRecord { totals: record.totals, counted: record.counted, ..without_totals })
        .unwrap();
    assert_eq!(other.record(), record);
}

#[test]
fn each_fault_of_a_record_is_said_in_words_of_its_own() {
    use RecordError::*;
    let faults = [Unreadable, TrailingBytes, Impossible, Id, TakenId, TooMany, TooManyEdges];
    let words: std::collections::BTreeSet<String> =
        faults.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), faults.len());
    assert!(words.iter().all(|words| words.split(' ').count() > 3));
}

#[test]
fn a_record_may_not_bring_the_last_lease_there_is() {
    let read = |number| {
        let record = QueueRecord { last_lease: Lease::new(number), ..QueueRecord::default() };
        QueueRecord::decode(&record.encode()).map(|read| assert_eq!(read, record))
    };
    assert_eq!(read(Lease::MAX.number() - 1), Ok(()));
    assert_eq!(read(Lease::MAX.number()), Err(RecordError::Unreadable));
}
