//! A RESTORE payload, most often one that no module wrote: a byte for the version of its encoding,
//! then the value as a server keeps it in a DUMP, without the type at its beginning and the
//! checksum at its end.

use super::look;
use super::server::{Answer, Server, ENCODING_VERSION};

const KEY: &[u8] = b"q";

pub fn restore(input: &[u8]) {
    let server = Server::begin();
    if is_taken(&server, input) {
        server.end_turn();
        look::at_queue(&server, KEY);
        work_through(&server);
        look::at_queue(&server, KEY);
    }
}

/// Much quicker, and sees less: whether it was taken for a queue, which hands out a job then.
#[allow(dead_code)]
pub fn restore_and_free(input: &[u8]) -> bool {
    let server = Server::begin();
    let is_taken = is_taken(&server, input);
    if is_taken {
        run(&server, "dq.pop q");
    }
    is_taken
}

fn is_taken(server: &Server, input: &[u8]) -> bool {
    let Some((version, value)) = input.split_first() else {
        return false;
    };
    let is_taken = server.restore(0, KEY, i32::from(version % 4), value);
    assert_eq!(server.has(0, KEY), is_taken);
    is_taken
}

fn run(server: &Server, line: &str) {
    let words: Vec<_> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    assert!(matches!(server.run(0, &words), Answer::Replied(_)));
}

/// The payload of this queue, as an input.
pub fn input_of(server: &Server, key: &[u8]) -> Vec<u8> {
    let mut input = vec![ENCODING_VERSION as u8];
    input.extend(server.dump(0, key).expect("the key is there"));
    input
}

/// What becomes of its jobs when somebody works on them, and time passes.
fn work_through(server: &Server) {
    const A_DAY_MS: u64 = 86_400_000;
    for line in [
        "dq.add q new body",
        "dq.add q waits body AFTER 1 new ONDEAD RUN",
        "dq.pop q COUNT 3",
        "dq.finish q new",
        "dq.kick q COUNT 2",
        "dq.pop q COUNT 2 NOACK",
        "dq.resume q",
        "dq.purge q STATE dead COUNT 2",
    ] {
        run(server, line);
        server.set_clock(server.clock() + A_DAY_MS);
        server.end_turn();
    }
}
