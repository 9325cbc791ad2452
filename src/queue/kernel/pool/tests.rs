use super::*;

#[test]
fn ids_are_told_by_their_hash_and_memory_is_that_of_jobs_index_and_bodies() {
    let mut pool = Pool::new((1, 2));
    let (mut hashes, mut bytes) = (std::collections::BTreeSet::new(), 0);
    for n in 0..1_000u64 {
        let name = n.to_string();
        let id = Id::new(name.as_bytes()).unwrap();
        let found = pool.look_up(id);
        hashes.insert(found.hash);
        let slot = pool.insert(id, b"a body", Time::ZERO, 0, found).unwrap();
        bytes += pool.get(slot).unwrap().size();
    }
    assert!(hashes.len() > 990);
    let (jobs, ids) = (pool.jobs.memory(), pool.ids.memory());
    assert!(jobs > 32_000 && ids > 3_000 && bytes > 9_000, "{jobs}, {ids} and {bytes}");
    assert_eq!(pool.memory(), jobs + ids + bytes);
    let slots = pool.scan(0, 1_000, usize::MAX).0;
    for slot in &slots {
        bytes -= pool.remove(*slot).unwrap().size();
        assert_eq!(pool.bytes, bytes);
    }
    assert_eq!((pool.len(), pool.bytes), (0, 0));
}

#[test]
fn a_pool_that_expects_jobs_has_their_chains_at_once() {
    let mut pool = Pool::new((1, 2));
    pool.reserve(1_000);
    assert!(pool.memory() >= 3_200, "{}", pool.memory());
}
