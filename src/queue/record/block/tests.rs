use super::*;
use crate::queue::kernel::log_state::Circumstances;
use crate::queue::kernel::queue::Queue;
use crate::queue::operation::produce::Add;
use crate::queue::value::ids::Id;
use crate::queue::value::record::Record;
use crate::queue::value::time::Millis;

fn queue_of(jobs: usize) -> Queue {
    let mut queue = Queue::new((1, 2));
    for n in 0..jobs {
        let id = n.to_string();
        let plain = Add::plain(Id::new(id.as_bytes()).unwrap(), &[7; 300]);
        // Some have what most jobs don't have.
        let ttl = (n % 3 == 1).then(|| Millis::new(1_000_000 + n as u64).unwrap());
        let add = Add { ttl, ..plain };
        queue.apply(&Circumstances::default(), &add);
    }
    queue
}

#[test]
fn a_block_is_read_as_it_was_written_and_full_at_its_size() {
    let queue = queue_of(200);
    let (mut writer, mut written) = (BlockWriter::default(), 0);
    for job in queue.jobs() {
        written += 1;
        if writer.add(&job) {
            break;
        }
    }
    assert!(written > 90 && written < 110, "{written}");
    let read: Vec<_> = read_block(writer.bytes()).collect::<Result<_, _>>().unwrap();
    let jobs = queue.jobs().take(written);
    assert!(read
        .iter()
        .map(|(id, body, record)| (*id, *body, record.clone()))
        .eq(jobs.map(|job| (job.id.bytes(), job.body, JobRecord::of(&job)))));
}

#[test]
fn a_block_that_is_cut_short_or_goes_on_is_refused() {
    let queue = queue_of(2);
    let mut writer = BlockWriter::default();
    queue.jobs().for_each(|job| {
        writer.add(&job);
    });
    let whole = writer.bytes();
    let mut alone = BlockWriter::default();
    queue.jobs().take(1).for_each(|job| {
        alone.add(&job);
    });
    let first = alone.bytes().len();
    for cut in 1..whole.len() {
        let read: Result<Vec<_>, _> = read_block(&whole[..cut]).collect();
        let is_between_jobs = cut == first;
        assert_eq!(read.is_err(), !is_between_jobs, "cut at {cut}");
    }
    let longer = [whole, &[0xc1]].concat();
    assert!(read_block(&longer).last().unwrap().is_err());
}

/// What a record can't say alone isn't read, as where it stands by itself.
#[test]
fn a_job_with_a_value_that_cannot_be_is_refused() {
    let job = |time: &[u8], lease: &[u8], stage: u8| {
        [&[0x93, 0xc4, 1, b'a', 0xc4, 0, 0x98], time, &[1, 1, 0, 0, 1], lease, &[stage]].concat()
    };
    let past_the_last = [0xcf, 0, 1, 0, 0, 0, 0, 0, 0];
    let last_lease = [0xcf, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(read_block(&job(&[9], &[7], 1)).next().unwrap().is_ok());
    for block in [job(&past_the_last, &[7], 1), job(&[9], &last_lease, 1), job(&[9], &[7], 9)] {
        assert_eq!(read_block(&block).next(), Some(Err(RecordError::Unreadable)));
        assert_eq!(JobRecord::decode(&block[6..]), Err(RecordError::Unreadable));
    }
}
