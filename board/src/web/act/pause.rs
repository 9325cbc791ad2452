//! Pauses of queues and groups, and the end of a job's hold.

use redis::Cmd;

use super::{Act, Done, No};
use crate::bytes::{Fields, Shown};
use crate::server::replies::number;
use crate::web::words;

/// The group that a form is about: in hex from one that knows it, as the pages spell it from a
/// person. `None` is the whole queue, which a form that has the field never means, whatever is in
/// it.
pub fn group_named(fields: &Fields) -> std::result::Result<Option<Vec<u8>>, No> {
    if !fields.has_bytes("group") {
        return Ok(None);
    }
    let name = fields.spelled("group");
    name.filter(|name| !name.is_empty()).map(Some).ok_or(No::Form("Say which group."))
}

impl Act<'_> {
    /// Of the queue, or, when a group is named, of that; or the end of a job's hold.
    pub(super) async fn pause(&self) -> std::result::Result<Done, No> {
        if self.fields.text("resume") == "job" {
            return self.end_hold().await;
        }
        let group = group_named(self.fields)?;
        let of_group = |mut command: Cmd| {
            group.iter().for_each(|group| {
                command.arg("GROUP").arg(group);
            });
            command
        };
        let (whose, its) = match &group {
            Some(group) => (format!(" the group “{}”", Shown(group)), "its jobs are handed out"),
            None => (String::new(), "jobs are handed out"),
        };
        // A form on a job's page is about its group.
        let done = |words| Done::to_job(words, self.fields.bytes("id"));
        if self.fields.text("resume") == "1" {
            self.ask(of_group(self.command("DQ.RESUME"))).await?;
            return Ok(done(format!("Resumed{whose}: {its}.")));
        }
        let mut command = of_group(self.command("DQ.PAUSE"));
        let span = self.span("for")?.filter(|ms| *ms > 0);
        if let Some(ms) = span {
            command.arg("FOR").arg(ms);
        }
        self.ask(command).await?;
        let until =
            span.map_or("until it is resumed".into(), |ms| format!("for {}", words::span(ms)));
        let nothing =
            if group.is_some() { "nothing of it is handed out" } else { "nothing is handed out" };
        Ok(done(format!("Paused{whose} {until}: {nothing}.")))
    }

    async fn end_hold(&self) -> std::result::Result<Done, No> {
        let id = self.fields.bytes("id").ok_or(No::Form("An id is needed."))?;
        let mut command = self.command("DQ.RESUME");
        command.arg("ID").arg(&id);
        match number(self.ask(command).await?)? {
            0 => Err(No::Form("It isn't on hold.")),
            _ => {
                let words = "Resumed: it is due when it waits for no other job.";
                Ok(Done::to_job(words.into(), Some(id)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_a_group_in_hex_or_as_it_is_spelled() {
        let named =
            |form: &str| group_named(&Fields::parse(form.as_bytes())).map_err(|_| "refused");
        assert_eq!(named("verb=pause"), Ok(None));
        for (form, name) in [
            ("group=ann", &b"ann"[..]),
            ("group.hex=ff3c623e00", b"\xff<b>\0"),
            ("group=%5Cxff%3Cb%3E%5C%5C", b"\xff<b>\\"),
            // What isn't spelled so is what it is.
            ("group=C%3A%5Cdir", b"C:\\dir"),
            ("group=%FF", b"\xff"),
            ("group=+ann+", b" ann "),
        ] {
            assert_eq!(named(form), Ok(Some(name.to_vec())), "{form}");
        }
        for form in ["group=", "group", "group.hex=", "group.hex=abc", "group.hex=zz", "group.hex"]
        {
            assert_eq!(named(form), Err("refused"), "{form}");
        }
    }
}
