use super::*;
use crate::queue::value::ids::ID_BYTES_MAX;

#[test]
fn ids_are_one_to_512_bytes() {
    assert_eq!(Id::new(b""), None);
    assert!(Id::new(&[0; 512]).is_some());
    assert_eq!(Id::new(&[0; 513]), None);
}

#[test]
fn a_job_keeps_the_longest_id_and_the_latest_time() {
    let id = [255; ID_BYTES_MAX];
    let id = Id::new(&id).unwrap();
    let job = Job::new(id, b"body", Time::MAX, 7, Link::new(u32::MAX));
    assert_eq!(job.id_and_body(), (id, &b"body"[..]));
    assert_eq!(job.created(), Time::MAX);
}
