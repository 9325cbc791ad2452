//! A queue in a file: its jobs in blocks, then its own record.

use dq::queue::*;

use crate::edges::BUDGET;
use crate::told::Bytes;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    blocks: Vec<Bytes>,
    groups: Bytes,
    pending: Bytes,
    edges: Bytes,
    queue: Bytes,
}

/// In which slices of what is pending are short.
pub fn new_queue(seed: (u64, u64)) -> Queue {
    let mut queue = Queue::new(seed);
    queue.set_settle_budget(BUDGET);
    queue
}

pub fn save(queue: &Queue) -> File {
    let groups = queue.group_records().encode();
    let pending = queue.pending_records().collect::<Vec<_>>().encode();
    let edges = queue.edge_records().collect::<Vec<_>>().encode();
    let (mut file, mut block) =
        (File { queue: queue.record().encode(), groups, pending, edges, ..File::default() }, 0);
    let mut writer = BlockWriter::default();
    for job in queue.jobs() {
        block += 1;
        // Small blocks, too, have to do.
        if writer.add(&job) || block % 7 == 0 {
            file.blocks.push(writer.bytes().to_vec());
            writer.clear();
        }
    }
    file.blocks.push(writer.bytes().to_vec());
    file
}

pub fn load(file: &File, seed: (u64, u64)) -> Queue {
    let mut queue = new_queue(seed);
    for (id, body, record) in jobs_of(file) {
        queue.load(id, body, &record).unwrap();
        assert_eq!(queue.load(id, body, &record), Err(RecordError::TakenId));
    }
    let record = QueueRecord::decode(&file.queue).unwrap();
    let groups = Vec::<GroupRecord>::decode(&file.groups).unwrap();
    assert_eq!(groups.len() as u64, record.groups_len());
    groups.iter().for_each(|group| queue.load_group(group).unwrap());
    let pending = Vec::<PendingRecord>::decode(&file.pending).unwrap();
    assert_eq!(pending.len() as u64, record.pending_len());
    queue.load_pending(&pending).unwrap();
    let edges = Vec::<EdgesRecord>::decode(&file.edges).unwrap();
    assert_eq!(edges.len() as u64, record.edges_len());
    queue.load_edges(&edges).unwrap();
    queue.restore(&record).unwrap();
    queue
}

fn jobs_of(file: &File) -> impl Iterator<Item = (&[u8], &[u8], JobRecord)> {
    file.blocks.iter().flat_map(|block| read_block(block)).map(Result::unwrap)
}

/// The same by way of a log: what an AOF is rewritten to.
pub fn rewritten(queue: &Queue, seed: (u64, u64)) -> Queue {
    let file = save(queue);
    let mut anew = new_queue(seed);
    for block in &file.blocks {
        let jobs: Vec<ReadJob> = read_block(block).collect::<Result<_, _>>().unwrap();
        anew.apply(&anew.circumstances(), &Effect::Jobs(jobs)).unwrap();
    }
    let groups = Vec::<GroupRecord>::decode(&file.groups).unwrap();
    for some in groups.chunks(2) {
        anew.apply(&anew.circumstances(), &Effect::Groups(some.to_vec())).unwrap();
    }
    let pending = Vec::<PendingRecord>::decode(&file.pending).unwrap();
    for some in pending.chunks(2) {
        anew.apply(&anew.circumstances(), &Effect::Pending(some.to_vec())).unwrap();
    }
    let edges = Vec::<EdgesRecord>::decode(&file.edges).unwrap();
    for some in edges.chunks(2) {
        anew.apply(&anew.circumstances(), &Effect::Edges(some.to_vec())).unwrap();
    }
    let record = QueueRecord::decode(&file.queue).unwrap();
    anew.apply(&anew.circumstances(), &Effect::Queue(record)).unwrap();
    anew
}
