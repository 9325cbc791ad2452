//! Looking at whatever there is, in every way in which a client can, and seeing that it adds up.

use super::server::{Answer, Replied, Server, Word, ENCODING_VERSION};

const STATES: [&str; 6] = ["delayed", "ready", "reserved", "dead", "done", "held"];
const COPY: &[u8] = b"the copy";

/// The words, with a space between; `key` is the second one.
fn ask(server: &Server, command: &str, key: &[u8], rest: &str) -> Replied {
    let mut words: Vec<Word> = vec![command.into(), key.into()];
    words.extend(rest.split(' ').filter(|word| !word.is_empty()).map(|word| word.into()));
    match server.run_in_turn(0, &words) {
        Answer::Replied(replied) => replied,
        other => panic!("{command} {rest}: {other:?}"),
    }
}

/// All in one turn: the timer doesn't come between two looks.
pub fn at_everything(server: &Server) {
    at_info(server);
    let places: Vec<_> = server.digests().into_iter().map(|(place, _)| place).collect();
    for (database, key) in places {
        if database == 0 {
            at_queue(server, &key);
        }
    }
}

/// What the server's INFO says of all queues is what they are.
pub fn at_info(server: &Server) {
    let info = server.info();
    let field =
        |name: &str| info.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
    assert_eq!(field("bugs").as_deref(), Some("0"));
    assert_eq!(field("queues"), Some(server.digests().len().to_string()));
}

pub fn at_queue(server: &Server, key: &[u8]) {
    let len = |rest: &str| ask(server, "dq.len", key, rest).numbers[0];
    let all = len("");
    let by_state: Vec<i64> = STATES.iter().map(|state| len(&format!("STATE {state}"))).collect();
    assert_eq!(all, by_state.iter().sum::<i64>(), "every job is in one state: {by_state:?}");
    for (state, jobs) in STATES.iter().zip(&by_state) {
        let first = ask(server, "dq.peek", key, &format!("STATE {state} COUNT 3"));
        assert_eq!(first.bulks.is_empty(), *jobs == 0, "{state}: {jobs} jobs, but {first:?}");
    }
    let ids = scan(server, key);
    assert_eq!(ids.len() as i64, all, "DQ.SCAN sees every job once");
    for id in ids.iter().take(3) {
        let ask = |name: &str| server.run_in_turn(0, &[name.into(), key.to_vec(), id.clone()]);
        assert!(matches!(ask("dq.get"), Answer::Replied(job) if !job.bulks.is_empty()));
        assert!(matches!(ask("dq.deps"), Answer::Replied(Replied { error: None, .. })));
    }
    ask(server, "dq.info", key, "");
    is_the_same_elsewhere(server, key);
}

fn scan(server: &Server, key: &[u8]) -> Vec<Word> {
    const CALLS_MAX: usize = 1_000;
    let (mut ids, mut cursor) = (Vec::new(), "0".to_string());
    for _ in 0..CALLS_MAX {
        let mut part = ask(server, "dq.scan", key, &format!("{cursor} COUNT 50")).bulks.into_iter();
        cursor = part
            .next()
            .map(|cursor| String::from_utf8_lossy(&cursor).into_owned())
            .unwrap_or_default();
        ids.extend(part);
        if cursor == "0" {
            break;
        }
    }
    ids.sort();
    ids.dedup();
    ids
}

/// A DUMP of it, a copy, and what a rewritten AOF makes.
fn is_the_same_elsewhere(server: &Server, key: &[u8]) {
    let digest = digest_at(server, key).expect("it is there");
    let file = server.dump(0, key).expect("it is there");
    assert!(server.restore(0, COPY, ENCODING_VERSION, &file), "what was dumped can be restored");
    assert!(
        digest_at(server, COPY).as_ref() == Some(&digest),
        "what was restored is another queue"
    );
    server.delete(0, COPY);
    server.copy((0, key), (0, COPY));
    assert!(digest_at(server, COPY).as_ref() == Some(&digest), "a copy is another queue");
    server.delete(0, COPY);
    let commands = server.rewrite(0, key);
    // While a server loads an AOF, the timer rests, too: it would forget groups for which only the
    // rate counts, which comes last.
    for mut words in commands {
        words[1] = COPY.to_vec();
        let answer = server.run_in_turn(0, &words);
        assert!(matches!(answer, Answer::Replied(Replied { error: None, .. })), "{words:?}");
    }
    assert!(
        digest_at(server, COPY).as_ref() == Some(&digest),
        "a rewritten AOF makes another queue"
    );
    server.delete(0, COPY);
    // What was logged of that is of nobody's concern.
    server.take_log();
}

fn digest_at(server: &Server, key: &[u8]) -> Option<Vec<u8>> {
    let digests = server.digests().into_iter();
    digests.filter(|(place, _)| *place == (0, key.to_vec())).map(|(_, digest)| digest).next()
}
