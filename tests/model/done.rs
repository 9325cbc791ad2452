//! Several jobs of the reference in one step: finishing one and going on with others, adding many.

use crate::reference::Reference;
use crate::run_state::RunState;
use crate::told::{
    Add, Bytes, Claim, Defaults, Due, Finishing, IfTaken, Options, Outcome, Rule, Timing,
};

impl Reference {
    /// First, in a copy: if anything is refused there, nothing happens.
    pub fn done(
        &mut self,
        now: u64,
        defaults: Defaults,
        (claim, finishing): (&Claim, &Finishing),
        adds: &[Add],
        seen: &Outcome,
    ) -> Outcome {
        let mut copy = self.clone();
        if !copy.finish(now, claim, finishing) {
            return Outcome::No;
        }
        for (n, add) in adds.iter().enumerate() {
            // Some id that nobody else gives.
            let id = add.id.clone().unwrap_or(format!("of the copy {n}").into_bytes());
            let add = Add { id: Some(id.clone()), ..add.clone() };
            let outcome = copy.add(now, defaults, &add, &Outcome::No);
            match outcome.clone() {
                Outcome::No if add.if_taken == IfTaken::Refuse => {
                    return Outcome::Refused(Box::new(Outcome::No));
                }
                refused @ (Outcome::Full | Outcome::Never | Outcome::Unconnected(_)) => {
                    return Outcome::Refused(Box::new(refused))
                }
                // What comes behind it must not count on that.
                Outcome::Over { .. } => copy.stand_in(now, &id),
                _ => (),
            }
        }
        assert!(self.finish(now, claim, finishing));
        let Outcome::Followed(ids) = seen else {
            panic!("{seen:?}, and nothing is to be refused");
        };
        assert_eq!(ids.len(), adds.len());
        let added = adds.iter().zip(ids).map(|(add, seen)| {
            let seen = match seen {
                Some(id) => Outcome::Added { id: id.clone(), due: 0, replaced: false },
                None => Outcome::No,
            };
            match self.add(now, defaults, add, &seen) {
                Outcome::Added { id, .. } => Some(id),
                // As it was, by ENSURE.
                Outcome::No if add.if_taken == IfTaken::Ensure => add.id.clone(),
                Outcome::No if add.if_taken == IfTaken::Leave => None,
                Outcome::Over { .. } => None,
                refused => panic!("{refused:?}, of {add:?} behind a copy in which it wasn't"),
            }
        });
        Outcome::Followed(added.collect())
    }

    /// Adds jobs in one step: first, in a copy.
    pub fn add_alike(
        &mut self,
        now: u64,
        defaults: Defaults,
        adds: &[Add],
        seen: &Outcome,
    ) -> Outcome {
        let mut copy = self.clone();
        for (n, add) in adds.iter().enumerate() {
            let refused = |outcome| Outcome::RefusedAt(n, Box::new(outcome));
            if add.id.is_some() && adds[..n].iter().any(|before| before.id == add.id) {
                return refused(Outcome::Twice);
            }
            let id = add.id.clone().unwrap_or(format!("of the copy {n}").into_bytes());
            match copy.add(now, defaults, &Add { id: Some(id), ..add.clone() }, &Outcome::No) {
                Outcome::No if add.if_taken == IfTaken::Refuse => return refused(Outcome::No),
                full_or_worse @ (Outcome::Full | Outcome::Unconnected(_)) => {
                    return refused(full_or_worse);
                }
                _ => (),
            }
        }
        let Outcome::Alike(ids) = seen else {
            panic!("{seen:?}, and nothing is to be refused");
        };
        assert_eq!(ids.len(), adds.len());
        let added = adds.iter().zip(ids).map(|(add, seen)| {
            let seen = match seen {
                Some(id) => Outcome::Added { id: id.clone(), due: 0, replaced: false },
                None => Outcome::No,
            };
            match self.add(now, defaults, add, &seen) {
                Outcome::Added { id, .. } => Some(id),
                Outcome::No if add.if_taken == IfTaken::Leave => None,
                refused => panic!("{refused:?}, of {add:?} behind a copy in which it wasn't"),
            }
        });
        Outcome::Alike(added.collect())
    }

    /// Puts a job there that does nothing but be there, as one with a schedule.
    fn stand_in(&mut self, now: u64, id: &Bytes) {
        let max_jobs = std::mem::take(&mut self.settings.max_jobs);
        let options = Options { ttr: Some(1), ..Options::default() };
        let due = Due::In(0);
        let (id, body, if_taken) = (Some(id.clone()), Bytes::new(), IfTaken::Replace);
        let add = Add { id, body, due, options, schedule: None, edges: None, if_taken };
        self.add(now, self.defaults, &add, &Outcome::No);
        self.settings.max_jobs = max_jobs;
        let rule =
            Rule { timing: Timing::Every(1), all: false, jitter: 0, runs: 0, until: None, late: 0 };
        let job = self.jobs.last_mut();
        job.into_iter().for_each(|job| job.round = Some(RunState::at(&rule, now, now)));
    }
}
