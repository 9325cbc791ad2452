//! Which jobs are meant: by why they died, by a text in them.

use aho_corasick::AhoCorasick;

use super::job::Job;
use crate::reasons;

/// Which jobs are meant; all, when nothing is said.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The pattern of the reason: see [`reasons::pattern`].
    pub why: Option<String>,
    pub find: Option<Needle>,
}

/// A longer text is in no job: a finder of it would take much memory.
const NEEDLE_MAX: usize = 4 << 10;

/// Bytes that are sought, the letters A to Z in either case.
#[derive(Debug, Clone)]
pub struct Needle {
    pub text: Vec<u8>,
    /// `None` finds nothing: what can't be sought must not be taken for all.
    finder: Option<AhoCorasick>,
}

impl Needle {
    /// `None` for an empty text.
    pub fn new(text: &[u8]) -> Option<Needle> {
        if text.is_empty() {
            return None;
        }
        let build = || AhoCorasick::builder().ascii_case_insensitive(true).build([text]).ok();
        let finder = if text.len() <= NEEDLE_MAX { build() } else { None };
        Some(Needle { text: text.to_vec(), finder })
    }

    fn is_in(&self, text: &[u8]) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(text))
    }
}

impl Filter {
    pub fn is_all(&self) -> bool {
        self.why.is_none() && self.find.is_none()
    }

    pub fn fits(&self, job: &Job) -> bool {
        let reason = job.reason.as_deref().unwrap_or_default();
        let texts = [Some(&job.id), job.reason.as_ref(), Some(&job.body), job.note.as_ref()];
        let mut texts = texts.into_iter().chain([job.result.as_ref()]).flatten();
        self.why.as_ref().is_none_or(|why| *why == reasons::pattern(reason))
            && self.find.as_ref().is_none_or(|find| texts.any(|text| find.is_in(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(reason: Option<&[u8]>, body: &[u8]) -> Job {
        let id = b"order:17".to_vec();
        Job { id, body: body.into(), reason: reason.map(Into::into), ..Job::new() }
    }

    #[test]
    fn a_text_is_found_in_all_that_a_job_says_in_either_case() {
        let find = |text: &[u8]| Filter { find: Needle::new(text), ..Filter::default() };
        let job = job(Some(b"No such MAILBOX"), b"\xffto: Ann\0");
        for text in [&b"mailbox"[..], b"ORDER:17", b"\xffTO", b"ann\0", b"n"] {
            assert!(find(text).fits(&job), "{text:?}");
        }
        for text in [&b"mailboxes"[..], b"order:17no", b"\xfe"] {
            assert!(!find(text).fits(&job), "{text:?}");
        }
        assert!(find(b"").is_all() && find(b"").fits(&job));

        let long = [b'x'; NEEDLE_MAX + 1];
        let job = Job { body: long.into(), ..job };
        assert!(!find(&long).is_all() && !find(&long).fits(&job));
        assert!(find(&long[1..]).fits(&job));
    }

    #[test]
    fn a_reason_fits_its_pattern_and_none_the_empty_one() {
        let why = |why: &str| Filter { why: Some(why.into()), ..Filter::default() };
        assert!(why("timeout after # ms").fits(&job(Some(b"timeout after 17 ms"), b"")));
        assert!(!why("timeout after # ms").fits(&job(Some(b"timeout after 17 s"), b"")));
        assert!(why("").fits(&job(None, b"")) && !why("").fits(&job(Some(b"x"), b"")));
    }
}
