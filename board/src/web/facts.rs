//! What is to be said of a queue beside its jobs: the last hour, lateness, settings, totals.

use maud::{html, Markup};

use super::{chart, glossary, words, App};
use crate::bytes::{excerpt, Shown};
use crate::server::forecast::Forecast;
use crate::server::queue::{Info, Rate, Sink};
use crate::server::replies::Field;
use crate::server::Result;
use crate::watch::now_ms;

pub fn of(app: &App, name: &[u8], info: &Info, forecast: &Result<Vec<Forecast>>) -> Markup {
    html! {
        (last_hour(app, name, info))
        (comes_due(forecast))
        (lateness(info))
        @if info.is_limited() { (limits(info)) }
        (sink(&info.sink))
        (settings(info))
        (totals(info))
        @if !info.others.is_empty() {
            section { h2 title="What this dq-board has no words for: the server's DQ is newer" { "More" } dl.facts { (others(&info.others)) } }
        }
    }
}

fn last_hour(app: &App, name: &[u8], info: &Info) -> Markup {
    let now = now_ms();
    let known = app.watch.known();
    let reading = known.get(name);
    let history = reading.and_then(|reading| reading.history.as_ref());
    let rates = reading.and_then(|reading| reading.rates);
    html! {
        section { h2 { "The last hour" }
            dl.facts {
                dt title=(glossary::HANDED_OUT) { "handed out" } dd { (a_second(rates.map(|rates| rates.popped))) }
            }
            dl.facts {
                dt { "added" } dd { (a_second(rates.map(|rates| rates.added))) }
                dt { "ready" } dd { (words::number(info.counts.ready)) }
            }
            @if let Some(history) = history { (chart::spark(history.slots(now).map(|slot| slot.ready.get()), "ready")) }
            dl.facts {
                dt { "oldest ready" } dd { (info.oldest_ready_ms.map_or("–".into(), words::span)) }
                dt title="When the next job will be ready by itself: it is due, or its lease runs out" { (next_heading(info)) } dd { @if let Some(due) = info.next_due { (words::brief(due, now)) } @else { "–" } }
                dt { "waiting workers" } dd { (words::number(info.waiting_consumers)) }
                @if info.watchers > 0 { dt { "clients that watch jobs" } dd { (words::number(info.watchers)) } }
                dt { "memory" } dd { (words::size(info.memory)) }
            }
        }
    }
}

/// What `next-due` is the time of: DQ.INFO has one for delayed jobs and for leases.
fn next_heading(info: &Info) -> &'static str {
    match (info.counts.delayed, info.counts.reserved) {
        (0, reserved) if reserved > 0 => "first lease ends",
        (delayed, reserved) if delayed > 0 && reserved > 0 => "next due, or a lease ends",
        _ => "next due",
    }
}

fn a_second(rate: Option<f64>) -> String {
    rate.map_or("…".into(), |rate| format!("{} a second", words::rate(rate)))
}

/// Bars of the next hour and of the next day.
fn comes_due(forecast: &Result<Vec<Forecast>>) -> Markup {
    html! {
        section.forecast { h2 title="Delayed jobs by the time at which they are due" { "What comes due" }
            @match forecast {
                Ok(spans) => @for span in spans {
                    @let hours = span.step_ms >= 3_600_000;
                    dl.facts {
                        dt { @if hours { "delayed, due in the next day" } @else { "delayed, due in the next hour" } }
                        dd { (words::number(span.jobs.iter().sum())) }
                    }
                    (chart::bars(span))
                },
                Err(trouble) => p.note { (trouble) },
            }
        }
    }
}

/// What CONCURRENCY and RATE allow, and what they do now.
fn limits(info: &Info) -> Markup {
    let (settings, limits, now) = (&info.settings, &info.limits, now_ms());
    html! {
        section.limits { h2 { "Limits" }
            dl.facts {
                @if settings.concurrency > 0 {
                    dt { "in use" }
                    dd { (words::number(info.counts.reserved)) " of " (words::number(settings.concurrency)) }
                }
                @if settings.rate.jobs > 0 {
                    dt { "rate" }
                    dd { (rate(&settings.rate)) }
                    dt { "may leave now" } dd { (limits.rate_left.map_or("–".into(), words::number)) }
                }
                dt { "next may leave" }
                dd { @if let Some(until) = limits.blocked_until { (words::brief(until, now)) } @else { "now" } }
            }
        }
    }
}

/// For which stream jobs leave, and why they can't.
fn sink(sink: &Sink) -> Markup {
    html! { @if let Some(stream) = &sink.stream {
        section.sink { h2 title="A stream for which jobs leave as they come due, without a worker" { "Sink" }
            dl.facts {
                dt { "stream" } dd { (excerpt(stream, 200)) }
                dt { "most entries" }
                dd { @if sink.maxlen == 0 { "no limit" } @else { "about " (words::number(sink.maxlen)) } }
                dt { "jobs leave" }
                dd { @if let Some(error) = &sink.error { "no: " span.reason { (Shown(error)) } } @else { "yes" } }
            }
        }
    } }
}

pub fn rate(rate: &Rate) -> String {
    let burst = match rate.burst {
        0 | 1 => String::new(),
        burst => format!(", {} at once", words::number(burst)),
    };
    format!("{} in {}{burst}", words::number(rate.jobs), words::span(rate.per_ms))
}

pub fn times(many: u64) -> String {
    if many == 1 {
        "once".into()
    } else {
        format!("{} times", words::number(many))
    }
}

fn lateness(info: &Info) -> Markup {
    let late = &info.lateness;
    html! {
        section { h2 title={ (glossary::LATE) " Since the server started." } { "Lateness" }
            (chart::log_bars(&[
                ("half within", late.p50_ms),
                ("90 %", late.p90_ms),
                ("99 %", late.p99_ms),
                ("99.9 %", late.p999_ms),
                ("most", late.max_ms),
            ]))
        }
    }
}

fn settings(info: &Info) -> Markup {
    let settings = &info.settings;
    let backoff = match (settings.backoff_base_ms, settings.backoff_max_ms) {
        (0, 0) => "none".into(),
        (base, max) => format!("{}, doubling to {}", words::span(base), words::span(max)),
    };
    let limit = |number: u64| if number == 0 { "no limit".into() } else { words::number(number) };
    html! {
        section { h2 { "Settings" }
            dl.facts {
                dt { "time to run" } dd { (words::span(settings.ttr_ms)) }
                dt { "attempts" } dd { (limit(settings.attempts)) }
                dt { "backoff" } dd { (backoff) }
                dt { "finished jobs stay" } dd { (words::span_or(settings.keep_ms, "not at all")) }
                dt { "dead jobs stay" } dd { (words::span_or(settings.dead_keep_ms, "for ever")) }
                dt { "dead when late by" } dd { (words::span_or(settings.late_ms, "no limit")) }
                dt { "most jobs" } dd { (limit(settings.max_jobs)) }
                @if info.groups > 0 || info.limits_groups() {
                    dt { "of a group at a time" } dd { (limit(settings.group_concurrency)) }
                    dt { "rate of a group" }
                    dd { @if settings.group_rate.jobs > 0 { (rate(&settings.group_rate)) } @else { "no limit" } }
                }
            }
        }
    }
}

fn totals(info: &Info) -> Markup {
    let totals = &info.totals;
    html! {
        section.totals { h2 { "Since the queue was made" }
            dl.facts {
                @for (name, many) in [
                    ("added", totals.added),
                    ("replaced", totals.replaced),
                    ("handed out", totals.popped),
                    ("finished", totals.finished),
                    ("released", totals.released),
                    ("timed out", totals.timed_out),
                    ("buried", totals.buried),
                    ("died", totals.dead),
                    ("kicked", totals.kicked),
                    ("deleted", totals.deleted),
                    ("purged", totals.purged),
                    ("missed runs", totals.missed),
                ] {
                    dt { (name) } dd { (words::number(many)) }
                }
            }
        }
    }
}

/// Fields that a later DQ has, almost as it says them.
pub fn others(others: &[(String, Field)]) -> Markup {
    html! {
        @for (name, field) in others {
            dt { (name.replace('-', " ")) }
            dd { @match field {
                Field::Nil => "–",
                Field::Number(number) => (words::number(*number)),
                Field::Bytes(bytes) => (Shown(bytes)),
            } }
        }
    }
}
