//! Which jobs of a state a page is about: in which order, and those that fit a filter. An address
//! says it, and so does a form.

use maud::{html, Markup};

use crate::bytes::{excerpt, link, Fields, Hex};
use crate::server::filter::{Filter, Needle};
use crate::server::jobs::Begin;
use crate::server::queue::State as JobState;
use crate::server::walk::{Mark, Order};

/// More jobs than there can be: so that an address that a reader made up can be counted on.
const NUMBER_MAX: u64 = 1 << 48;
/// What of a pattern or a text that is sought is told.
const TOLD: usize = 200;

#[derive(Clone)]
pub struct Choice {
    pub state: JobState,
    pub order: Order,
    pub filter: Filter,
}

impl Choice {
    pub fn of(state: JobState, fields: &Fields) -> Choice {
        let is_newest = state == JobState::Dead && fields.text("order") == "newest";
        let why = fields.bytes("why").filter(|_| state == JobState::Dead);
        Choice {
            state,
            order: if is_newest { Order::Newest } else { Order::Oldest },
            filter: Filter {
                why: why.map(|why| String::from_utf8_lossy(&why).into_owned()),
                find: fields.bytes("find").as_deref().and_then(Needle::new),
            },
        }
    }

    /// `None` where a page is about all jobs of a state as they leave it.
    pub fn filtered(fields: &Fields) -> Option<Choice> {
        let choice = Choice::of(fields.get("state").and_then(JobState::named)?, fields);
        (!choice.filter.is_all() || choice.order == Order::Newest).then_some(choice)
    }

    /// The jobs that something is done to, in the order of their state; dead ones unless a form says
    /// another state.
    pub fn acted_on(fields: &Fields) -> Choice {
        Choice { order: Order::Oldest, ..Choice::selected(fields) }
    }

    /// The same in the order in which the reader looked at them.
    pub fn selected(fields: &Fields) -> Choice {
        let state = fields.get("state").and_then(JobState::named);
        Choice::of(state.unwrap_or(JobState::Dead), fields)
    }

    pub fn all(state: JobState) -> Choice {
        Choice { state, order: Order::Oldest, filter: Filter::default() }
    }

    pub fn with_order(&self, order: Order) -> Choice {
        Choice { order, ..self.clone() }
    }

    pub fn with_why(&self, why: Option<&str>) -> Choice {
        let filter = Filter { why: why.map(Into::into), ..self.filter.clone() };
        Choice { filter, ..self.clone() }
    }

    pub fn without_find(&self) -> Choice {
        Choice { filter: Filter { find: None, ..self.filter.clone() }, ..self.clone() }
    }

    /// What an address has to say for it.
    pub fn fields(&self) -> Vec<(&str, &[u8])> {
        let mut fields = vec![("state", self.state.name().as_bytes())];
        if let Some(why) = &self.filter.why {
            fields.push(("why", why.as_bytes()));
        }
        if let Some(find) = &self.filter.find {
            fields.push(("find", &find.text));
        }
        if self.order == Order::Newest {
            fields.push(("order", b"newest"));
        }
        fields
    }

    /// The same in a form. A browser makes another character of a NUL, and others of ends of lines.
    pub fn hidden(&self) -> Markup {
        html! { @for (name, value) in self.fields() {
            @match std::str::from_utf8(value) {
                Ok(text) if !text.contains(char::is_control) => input type="hidden" name=(name) value=(text);,
                _ => input type="hidden" name={ (name) ".hex" } value=(Hex(value));,
            }
        } }
    }

    pub fn link(&self, queue: &[u8]) -> String {
        self.link_with(queue, &[])
    }

    pub fn link_with(&self, queue: &[u8], more: &[(&str, String)]) -> String {
        let mut fields: Vec<(&str, &[u8])> = vec![("name", queue)];
        fields.extend(self.fields());
        fields.extend(more.iter().map(|(name, value)| (*name, value.as_bytes())));
        link("queue", &fields)
    }

    /// What of it is a filter: “ whose reason is “timeout after # ms” and in which “ann” is found”.
    /// Nothing where there is none.
    pub fn filter_words(&self) -> String {
        let why = self.filter.why.as_ref().map(|why| match why.as_str() {
            "" => " that have no reason".to_string(),
            why => format!(" whose reason is “{}”", excerpt(why.as_bytes(), TOLD)),
        });
        let and = if why.is_some() { " and" } else { "" };
        let find = self.filter.find.as_ref();
        let find =
            find.map(|find| format!("{and} in which “{}” is found", excerpt(&find.text, TOLD)));
        [why, find].into_iter().flatten().collect()
    }
}

/// How far a reader has looked who goes on from page to page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// `None` at the beginning.
    pub mark: Option<Mark>,
    pub looked: u64,
    pub found: u64,
    /// How many of those are on this page already: it goes on while it is shown.
    pub kept: u64,
    pub page: u64,
}

impl Progress {
    pub fn of(fields: &Fields) -> Progress {
        let number = |name| fields.number(name).unwrap_or(0).min(NUMBER_MAX);
        let mark = match (fields.bytes("after"), fields.number("cursor")) {
            (Some(id), _) => Some(Mark::Begin(Begin::After { id, time: fields.number("time") })),
            (None, Some(cursor)) if cursor > 0 => Some(Mark::Cursor(cursor)),
            (None, _) => None,
        };
        if mark.is_none() {
            return Progress::default();
        }
        let (looked, found) = (number("looked"), number("found"));
        Progress { mark, looked, found, kept: number("kept"), page: number("page") }
    }

    /// The link that goes on there.
    pub fn link(&self, path: &str, fields: &[(&str, &[u8])]) -> String {
        let numbers = [
            ("looked", self.looked.to_string()),
            ("found", self.found.to_string()),
            ("kept", self.kept.to_string()),
            ("page", self.page.to_string()),
        ];
        let (id, time, cursor) = match &self.mark {
            Some(Mark::Begin(Begin::After { id, time })) => (Some(id), *time, None),
            Some(Mark::Begin(Begin::From { time })) => (None, Some(*time), None),
            Some(Mark::Cursor(cursor)) => (None, None, Some(*cursor)),
            Some(Mark::Begin(Begin::First)) | None => (None, None, None),
        };
        let (time, cursor) = (time.map(|time| time.to_string()), cursor.map(|c| c.to_string()));
        let mut all = fields.to_vec();
        all.extend(id.map(|id| ("after", id.as_slice())));
        all.extend(time.iter().map(|time| ("time", time.as_bytes())));
        all.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_bytes())));
        all.extend(numbers.iter().map(|(name, number)| (*name, number.as_bytes())));
        link(path, &all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Choice {
        Choice::of(JobState::Dead, &Fields::parse(query.as_bytes()))
    }

    #[test]
    fn a_choice_comes_back_from_its_link() {
        let choice = of("why=timeout+%23&find=%FF%0A&order=newest");
        let link = choice.link(b"mail");
        let again = of(link.strip_prefix("queue?").unwrap());
        assert_eq!(again.filter.why.as_deref(), Some("timeout #"));
        assert_eq!(again.filter.find.unwrap().text, b"\xff\n");
        assert_eq!(again.order, Order::Newest);
        let form = choice.hidden().into_string();
        assert!(form.contains("name=\"find.hex\" value=\"ff0a\""), "{form}");
        assert_eq!(
            choice.filter_words(),
            " whose reason is “timeout #” and in which “\\xff\\n” is found"
        );
        assert_eq!(of("find=x").filter_words(), " in which “x” is found");
        assert_eq!(of("find=&why=").filter_words(), " that have no reason");
    }

    #[test]
    fn a_reason_with_a_nul_comes_back_from_its_form() {
        let form = of("why=a%00b").hidden().into_string();
        assert!(form.contains("name=\"why.hex\" value=\"610062\""), "{form}");
        assert_eq!(of("why.hex=610062").filter.why.as_deref(), Some("a\0b"));
    }

    #[test]
    fn only_dead_jobs_have_reasons_and_a_way_back() {
        let fields = Fields::parse(b"why=x&order=newest&find=a");
        let choice = Choice::of(JobState::Ready, &fields);
        assert_eq!((choice.order, choice.filter.why), (Order::Oldest, None));
    }

    #[test]
    fn progress_comes_back_from_its_link() {
        for mark in [
            Mark::Begin(Begin::After { id: b"\xff&a".into(), time: Some(17) }),
            Mark::Begin(Begin::After { id: b"b".into(), time: None }),
            Mark::Cursor(9),
        ] {
            let progress = Progress { mark: Some(mark), looked: 5, found: 3, kept: 2, page: 1 };
            let link = progress.link("queue", &[("name", b"mail")]);
            let fields = Fields::parse(link.strip_prefix("queue?").unwrap().as_bytes());
            assert_eq!(Progress::of(&fields), progress);
        }
        assert_eq!(Progress::of(&Fields::parse(b"looked=7&kept=50")), Progress::default());
        let most = Progress::of(&Fields::parse(b"after=a&looked=18446744073709551615"));
        assert!(most.looked.checked_add(1 << 48).is_some());
    }
}
