//! The groups of a queue: what each has, and what holds it back.

use maud::{html, Markup};

use super::{facts, forms, layout, words, App};
use crate::bytes::{excerpt, link, Shown};
use crate::server::groups::{Group, Groups};
use crate::server::queue::Info;
use crate::watch::now_ms;

/// What of a name a list shows.
const EXCERPT: usize = 100;

pub fn page_link(queue: &[u8], cursor: u64) -> String {
    let cursor = cursor.to_string();
    let mut fields: Vec<(&str, &[u8])> = vec![("name", queue), ("tab", b"groups")];
    if cursor != "0" {
        fields.push(("cursor", cursor.as_bytes()));
    }
    link("queue", &fields)
}

/// A page of them, from this cursor on.
pub fn page(app: &App, queue: &[u8], info: &Info, cursor: u64, found: &Groups) -> Markup {
    html! {
        p.note { "Jobs of a group take turns with those of others. "
            @if info.limits_groups() { "Of each group: " (limits(info)) "." } }
        (forms::of_groups(app, queue, cursor))
        @if found.groups.is_empty() {
            p.empty { @if found.next.is_some() { "None so far: there is more to look through." }
                @else if cursor > 0 { "There are no more." }
                @else { "No group has a job, and none is paused." } }
        } @else {
            (table(app, queue, cursor, &found.groups))
        }
        @if cursor > 0 || found.next.is_some() {
            nav.pager aria-label="Pages" {
                @if cursor > 0 {
                    a.first href=(page_link(queue, 0)) { "⇤ first" }
                    a rel="prev" data-came-from hidden { "← previous" }
                }
                span { "of about " (words::number(info.groups)) }
                @if let Some(next) = found.next { a rel="next" href=(page_link(queue, next)) { "go on →" } }
            }
        }
    }
}

/// GROUPCONCURRENCY and GROUPRATE.
fn limits(info: &Info) -> Markup {
    let settings = &info.settings;
    html! {
        @if settings.group_concurrency > 0 { (words::number(settings.group_concurrency)) " at a time" }
        @if settings.group_concurrency > 0 && settings.group_rate.jobs > 0 { ", " }
        @if settings.group_rate.jobs > 0 { (facts::rate(&settings.group_rate)) }
    }
}

fn table(app: &App, queue: &[u8], cursor: u64, groups: &[Group]) -> Markup {
    let now = now_ms();
    let has_forms = forms::has_pause(app);
    html! {
        table.list.groups {
            thead { tr {
                th.id scope="col" { "group" }
                th.num scope="col" { "ready" }
                th.num scope="col" { "reserved" }
                th.num scope="col" { "delayed" }
                th scope="col" { "blocked" }
                @if has_forms { th scope="col" { span.unseen { "pause or resume" } } }
            } }
            tbody { @for group in groups { tr data-key=(Shown(&group.name)) {
                th.id scope="row" { a href=(layout::group_link(queue, &group.name)) { (excerpt(&group.name, EXCERPT)) } }
                (count("ready", group.ready))
                (count("reserved", group.reserved))
                (count("delayed", group.delayed))
                td data-label="blocked" { (blocked(group, now)) }
                @if has_forms { td.act { (forms::of_group(app, queue, group, cursor)) } }
            } } }
        }
    }
}

fn count(label: &str, many: u64) -> Markup {
    html! { td.num.{ "is-" (label) }.zero[many == 0] data-label=(label) { (words::number(many)) } }
}

fn blocked(group: &Group, now: u64) -> Markup {
    html! {
        @if group.is_paused {
            span.mark.paused {
                "paused"
                @if let Some(until) = group.paused_until { ", ends " (words::brief(until, now)) }
            }
        } @else if let Some(until) = group.blocked_until {
            span.mark.blocked title="Its limits let no job of it go" { "by limits, ends " (words::brief(until, now)) }
        } @else {
            span.soft { "no" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(group: Group) -> String {
        blocked(&group, 1_000_000).into_string()
    }

    #[test]
    fn a_group_row_says_what_blocks_the_group() {
        let paused = Group { is_paused: true, blocked_until: Some(1_060_000), ..Group::default() };
        assert!(told(paused.clone()).contains(">paused</span>"));
        let for_a_time = told(Group { paused_until: Some(1_060_000), ..paused });
        assert!(
            for_a_time.contains("paused, ends ") && for_a_time.contains("in 1 min"),
            "{for_a_time}"
        );
        let limited = told(Group { blocked_until: Some(1_002_000), ..Group::default() });
        assert!(limited.contains("by limits, ends ") && limited.contains("in 2 s"), "{limited}");
        assert!(told(Group::default()).contains(">no<"));
    }

    #[test]
    fn a_page_s_address_holds_any_name() {
        assert_eq!(page_link(b"a&b\xff", 0), "queue?name=a%26b%FF&tab=groups");
        assert_eq!(page_link(b"mail", 17), "queue?name=mail&tab=groups&cursor=17");
    }
}
