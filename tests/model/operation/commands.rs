//! What a drawn operation comes to, when it is its turn.

use dq::queue::State;

use super::*;

impl Jump {
    pub fn from(self, clock: u64) -> u64 {
        match self {
            Jump::Forward(ms) => (clock + ms).min(LAST),
            Jump::Back(ms) => clock.saturating_sub(ms),
        }
    }
}

impl Readers {
    pub fn time(self, clock: u64, before: u64) -> u64 {
        match self {
            Readers::OfClock => clock,
            Readers::Asleep => before,
            Readers::Ahead(ms) => clock.saturating_add_signed(ms).min(LAST),
        }
    }
}

impl Operation {
    /// What this is for a queue that stands as the reference does, at whose horizon it is now.
    pub fn commands(&self, clock: u64, reference: &Reference, subject: &Subject) -> Vec<Command> {
        let ids = |which: &[Which]| which.iter().map(|one| one.id(reference)).collect();
        let one = match self {
            Operation::AddMany { jobs, due, options, groups } => {
                return add_many(*jobs, *due, *options, *groups, clock)
            }
            Operation::GiveBack { count } => {
                let claim =
                    |one: &Delivery| told::Claim { id: one.id.clone(), lease: Some(one.lease) };
                let release = |claim| Command::Release {
                    claim,
                    when: told::When::Unbegun,
                    priority: None,
                    reason: None,
                    checkpoint: Checkpoint::default(),
                };
                return reference
                    .deliveries
                    .iter()
                    .rev()
                    .take(*count)
                    .map(claim)
                    .map(release)
                    .collect();
            }
            Operation::Add { id, due, options, edges, replaces } => {
                let if_taken = if *replaces { IfTaken::Replace } else { IfTaken::Refuse };
                let edges = edges.as_ref().map(|edges| edges.told(reference));
                let plain = add(id.bytes(clock), *due, *options, clock);
                Command::Add(Add { edges, if_taken, ..plain })
            }
            Operation::Alike { ids, due, times, options, edges, if_taken } => {
                let edges = edges.as_ref().map(|edges| edges.told(reference));
                let like = self::due(*due, clock);
                let (start, count) = (like.counted_from(clock), ids.len() as u64);
                let due_of = |place: usize| match times {
                    TimesIn::Same => like,
                    TimesIn::Each(times) => self::due(times[place], clock),
                    TimesIn::SpreadOver(ms) => {
                        let behind = ms * place as u64 / count;
                        match like {
                            Due::In(delay) => Due::In((delay + behind).min(LAST)),
                            Due::At(_) => Due::At((start + behind).min(LAST)),
                        }
                    }
                };
                let one = |(place, id): (usize, &NewId)| Add {
                    edges: edges.clone(),
                    if_taken: *if_taken,
                    due: due_of(place),
                    body: format!("{place} at {clock}").into_bytes(),
                    ..add(id.bytes(clock), *due, *options, clock)
                };
                let adds = ids.iter().enumerate().map(one).collect();
                let times = match times {
                    TimesIn::Same => Times::Same,
                    TimesIn::Each(_) => Times::Each,
                    TimesIn::SpreadOver(ms) => Times::SpreadOver(*ms),
                };
                Command::Alike { adds, like, times }
            }
            Operation::Schedule { id, rule, starts, options, if_taken } => {
                let schedule = Some(rule.told(*starts, clock));
                // Of a few, so that one that is ensured may be as it was.
                let body = vec![b'a' + (clock % 3) as u8];
                let plain = add(Some(given_id(*id)), DueIn::Delay(0), *options, clock);
                Command::Add(Add { body, schedule, if_taken: *if_taken, ..plain })
            }
            Operation::Pop { count, ttr, no_ack } => {
                Command::Pop { count: *count, ttr: *ttr, no_ack: *no_ack }
            }
            Operation::FinishAndPop { claims, count, ttr, no_ack } => Command::FinishAndPop {
                claims: claims.iter().map(|claim| claim.told(reference)).collect(),
                count: *count,
                ttr: *ttr,
                no_ack: *no_ack,
            },
            Operation::Finish(claims) => Command::Finish {
                claims: claims.iter().map(|claim| claim.told(reference)).collect(),
            },
            Operation::Done { claim, result, keep, adds } => {
                let claim = claim.told(reference);
                let finishing = Finishing { result: result.map(text), keep: *keep };
                // At the last moment there is, nothing is kept.
                let adds = adds.iter().filter(|_| clock < LAST);
                let adds = adds.map(|add| add.told(&claim.id, clock, reference)).collect();
                Command::Done { claim, finishing, adds }
            }
            Operation::PopById { jobs, ttr, no_ack } => {
                Command::PopById { ids: ids(jobs), ttr: *ttr, no_ack: *no_ack }
            }
            Operation::Release { claim, when, priority, reason, checkpoint } => {
                let (claim, reason) = (claim.told(reference), reason.map(words));
                let checkpoint = checkpoint.told();
                Command::Release { claim, when: *when, priority: *priority, reason, checkpoint }
            }
            Operation::Touch { claim, ttr, checkpoint } => Command::Touch {
                claim: claim.told(reference),
                ttr: *ttr,
                checkpoint: checkpoint.told(),
            },
            Operation::Renew(claims, ttr) => {
                let claims = claims.iter().map(|claim| claim.told(reference)).collect();
                Command::Renew { claims, ttr: *ttr }
            }
            Operation::Bury { claim, reason } => {
                Command::Bury { claim: claim.told(reference), reason: reason.map(words) }
            }
            Operation::Delete(which) => Command::Delete { ids: ids(which) },
            Operation::KickJob(which) => Command::KickJob { ids: ids(which) },
            Operation::Forget(which) => Command::Forget { ids: ids(which) },
            Operation::Pause { group, span } => Command::Pause { group: *group, span: *span },
            Operation::Resume { group } => Command::Resume { group: *group },
            Operation::ResumeJobs(which) => Command::ResumeJobs { ids: ids(which) },
            Operation::Alter(alteration) => Command::Alter(*alteration),
            // Those who say them choose among the jobs that they see; what is logged is what they
            // chose.
            Operation::Kick { at_most, over } => {
                let ids = subject.seen(State::Dead, *at_most);
                assert!(reference.are_the_first(&ids, State::Dead, 0, *at_most), "{ids:?}");
                match *over {
                    None => Command::KickJob { ids },
                    Some(span) => Command::KickSpread { ids, span },
                }
            }
            Operation::Purge { state, older, at_most } => {
                let ids = subject.to_purge(reference.horizon, *state, *older, *at_most);
                assert!(reference.are_the_first(&ids, *state, *older, *at_most), "{ids:?}");
                Command::Forget { ids }
            }
            Operation::Upkeep => {
                let ids = subject.to_forget(reference.horizon);
                let (mut seen, mut expected) = (ids.clone(), reference.to_forget());
                seen.sort();
                expected.sort();
                assert_eq!(seen, expected);
                if ids.is_empty() {
                    Command::ForgetGroups
                } else {
                    Command::Forget { ids }
                }
            }
            Operation::Look => return Vec::new(),
        };
        vec![one]
    }

    /// Whether whoever says it looks first, at the queue as it is now.
    pub fn looks_first(&self) -> bool {
        matches!(self, Operation::Kick { .. } | Operation::Purge { .. } | Operation::Upkeep)
    }
}

fn add(id: Option<Bytes>, due: DueIn, options: Options, clock: u64) -> Add {
    let body = format!("made at {clock}").into_bytes();
    let (due, if_taken) = (self::due(due, clock), IfTaken::Refuse);
    Add { id, body, due, options, schedule: None, edges: None, if_taken }
}

fn due(due: DueIn, clock: u64) -> Due {
    match due {
        DueIn::Delay(delay) => Due::In(delay),
        DueIn::Ahead(ms) => Due::At((clock + ms).min(LAST)),
        DueIn::Behind(ms) => Due::At(clock.saturating_sub(ms)),
        DueIn::At(time) => Due::At(time),
    }
}

fn add_many(jobs: u64, due: DueIn, options: Options, groups: u8, clock: u64) -> Vec<Command> {
    let id = |n| Some(format!("many {clock} {n}").into_bytes());
    let group =
        |n: u64| if groups > 0 { Some((n % u64::from(groups)) as Name) } else { options.group };
    let options = |n| Options { group: group(n), ..options };
    (0..jobs).map(|n| Command::Add(add(id(n), due, options(n), clock))).collect()
}

fn words(n: u8) -> Bytes {
    format!("reason {n}").into_bytes()
}

/// Of this length.
fn text(len: u16) -> Bytes {
    (b'a'..=b'z').cycle().take(len.into()).collect()
}

impl CheckpointIn {
    fn told(self) -> Checkpoint {
        Checkpoint { body: self.body.map(text), note: self.note.map(text) }
    }
}

impl RuleIn {
    fn told(self, starts: Option<DueIn>, clock: u64) -> (Rule, Starts) {
        let until = self.until_in.map(|ahead| (clock + ahead).min(LAST));
        let starts = starts.map_or(Starts::ByItself, |starts| match due(starts, clock) {
            Due::In(delay) => Starts::In(delay),
            Due::At(time) => Starts::At(time),
        });
        (Rule { until, ..self.rule }, starts)
    }
}

impl Following {
    fn told(&self, finished: &Bytes, clock: u64, reference: &Reference) -> Add {
        let id = self.id.map_or(Some(finished.clone()), |id| id.bytes(clock));
        let schedule = self.schedule.map(|(rule, starts)| rule.told(starts, clock));
        let id = id.or(schedule.map(|_| given_id(0)));
        let edges = self.edges.as_ref().filter(|_| schedule.is_none());
        let edges = edges.map(|edges| edges.told(reference));
        let add = add(id, self.due, self.options, clock);
        Add { schedule, edges, if_taken: self.if_taken, ..add }
    }
}

impl EdgesIn {
    fn told(&self, reference: &Reference) -> Edges {
        let ids = |which: &[Which]| {
            let mut ids: Vec<Bytes> = which.iter().map(|one| one.id(reference)).collect();
            let mut seen = Vec::new();
            ids.retain(|id| !seen.contains(id) && (seen.push(id.clone()), true).1);
            ids
        };
        let (on_dead, is_on_hold) = (self.on_dead, self.is_on_hold);
        Edges { after: ids(&self.after), before: ids(&self.before), on_dead, is_on_hold }
    }
}

fn pick<T>(all: &[T], place: u16) -> Option<&T> {
    all.get(all.len() * usize::from(place) / 65_536)
}

impl Claim {
    fn told(self, reference: &Reference) -> told::Claim {
        let id = self.job.id(reference);
        match self.by {
            By::TheirLease => {
                let lease = reference.get(&id).and_then(|job| job.lease).or(Some(0));
                told::Claim { id, lease }
            }
            By::NoLease(number) => told::Claim { id, lease: Some(number) },
            By::Latest => told::Claim { id, lease: None },
            By::SomeLease(place) => match pick(&reference.deliveries, place) {
                Some(delivery) => {
                    told::Claim { id: delivery.id.clone(), lease: Some(delivery.lease) }
                }
                None => told::Claim { id, lease: Some(1) },
            },
        }
    }
}

impl NewId {
    fn bytes(self, clock: u64) -> Option<Bytes> {
        match self {
            NewId::Given(n) => Some(given_id(n)),
            NewId::LikeOfQueue { ahead, number } => {
                Some(format!("{}-{number}", (clock + ahead).min(LAST)).into_bytes())
            }
            NewId::ByQueue => None,
        }
    }
}

impl Which {
    fn id(self, reference: &Reference) -> Bytes {
        match self {
            Which::Given(n) => given_id(n),
            Which::There(place) => {
                pick(&reference.jobs, place).map_or(given_id(0), |job| job.id.clone())
            }
            Which::Held(place) => {
                let held: Vec<&Job> = reference.in_state(State::Held).collect();
                pick(&held, place).map_or(given_id(1), |job| job.id.clone())
            }
        }
    }
}

pub const GIVEN_IDS: u8 = 6;

fn given_id(n: u8) -> Bytes {
    // Any bytes will do; the last one is as long as ids may be.
    match n {
        0 => vec![0],
        1 => vec![255, 0, 10],
        GIVEN_IDS.. => vec![7; 512],
        n => vec![b'a' + n],
    }
}

/// Every id that is ever given by hand from the small set.
pub fn given_ids() -> impl Iterator<Item = Bytes> {
    (0..=GIVEN_IDS).map(given_id)
}
