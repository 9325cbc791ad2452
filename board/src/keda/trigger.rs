//! The metadata of a trigger, as a ScaledObject has it. Words that aren't ours are KEDA's own, or
//! its user's: `scalerAddress`, for one.

use std::collections::HashMap;
use std::str::FromStr;

use tonic::Status;

const WITHIN: u64 = 60;
/// A day: workers need no earlier start.
const WITHIN_MAX: u64 = 86_400;
const JOBS_PER_WORKER: i64 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The name of a server of --redis.
    pub redis: Option<String>,
    pub queue: String,
    pub within_ms: u64,
    pub jobs_per_worker: i64,
}

impl Trigger {
    pub fn read(metadata: &HashMap<String, String>) -> Result<Trigger, Status> {
        let queue = metadata.get("queue").ok_or_else(|| refused("queue is missing"))?;
        let within: u64 = number(metadata, "within", WITHIN)?;
        if !(1..=WITHIN_MAX).contains(&within) {
            return Err(refused("within must be 1 to 86400 seconds"));
        }
        let jobs_per_worker: i64 = number(metadata, "jobsPerWorker", JOBS_PER_WORKER)?;
        if jobs_per_worker < 1 {
            return Err(refused("jobsPerWorker must be at least 1"));
        }
        let redis = metadata.get("redis").cloned();
        Ok(Trigger { redis, queue: queue.clone(), within_ms: within * 1_000, jobs_per_worker })
    }

    /// Which of the servers it is about: the one that it names, or the only one.
    pub fn place_in(&self, names: &[&str]) -> Result<usize, Status> {
        let place = match &self.redis {
            Some(redis) => names.iter().position(|name| name == redis),
            None => (names.len() == 1).then_some(0),
        };
        place.ok_or_else(|| refused(&format!("redis must be one of: {}", names.join(", "))))
    }
}

fn number<T: FromStr>(
    metadata: &HashMap<String, String>,
    word: &str,
    default: T,
) -> Result<T, Status> {
    match metadata.get(word) {
        Some(text) => {
            text.parse().map_err(|_| refused(&format!("{word} must be a whole number, not {text}")))
        }
        None => Ok(default),
    }
}

fn refused(why: &str) -> Status {
    Status::invalid_argument(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Trigger, String> {
        let pairs = pairs.iter().map(|(word, value)| (word.to_string(), value.to_string()));
        Trigger::read(&pairs.collect()).map_err(|status| status.message().into())
    }

    #[test]
    fn a_trigger_needs_a_queue_and_has_defaults_for_the_rest() {
        let trigger = |within_ms, jobs_per_worker| {
            Ok(Trigger { redis: None, queue: "mail".into(), within_ms, jobs_per_worker })
        };
        assert_eq!(read(&[("queue", "mail"), ("scalerAddress", "b:1")]), trigger(60_000, 10));
        let all = [("queue", "mail"), ("within", "300"), ("jobsPerWorker", "50")];
        assert_eq!(read(&all), trigger(300_000, 50));
        assert_eq!(read(&[]), Err("queue is missing".into()));
        for wrong in ["0", "86401", "-1", "5m", ""] {
            assert!(read(&[("queue", "mail"), ("within", wrong)]).is_err(), "{wrong}");
        }
        for wrong in ["0", "-1", "1.5"] {
            assert!(read(&[("queue", "mail"), ("jobsPerWorker", wrong)]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_trigger_names_one_of_several_servers() {
        let place = |redis: Option<&str>, names: &[&str]| {
            let redis = redis.map(|name| ("redis", name));
            let pairs: Vec<_> = [Some(("queue", "mail")), redis].into_iter().flatten().collect();
            let place = read(&pairs).unwrap().place_in(names);
            place.map_err(|status| status.message().to_string())
        };
        assert_eq!(place(None, &[""]), Ok(0));
        assert_eq!(place(Some("b"), &["a", "b"]), Ok(1));
        assert_eq!(place(None, &["a", "b"]), Err("redis must be one of: a, b".into()));
        assert_eq!(place(Some("c"), &["a", "b"]), Err("redis must be one of: a, b".into()));
        assert!(place(Some("c"), &[""]).is_err());
    }
}
