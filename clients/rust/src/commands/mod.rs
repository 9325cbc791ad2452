//! Each command: its words, and how its reply is read.
//!
//! The names are the grammar's: a method of [`Queue`] is called like its command (that of DQ.MADD is
//! `add_many`), an option like its token, in small letters. DQ.POP and DQ.MPOP with FINISH reply
//! something else, and are methods of their own: `finish_and_pop`, `finish_and_mpop`. What an option
//! means stands in DQ's documentation, `docs/commands`. A command is sent when it is awaited, or put on
//! a pipeline by `on`.

mod consume;
mod look;
mod manage;
mod produce;

pub use consume::{
    Bury, Claim, Done, Finish, FinishAndMpop, FinishAndPop, Mpop, Pop, Release, Renew, Touch,
};
pub use look::{Depends, Forecast, Get, GetInfo, GetResult, Groups, Len, Next, Peek, Scan};
pub use manage::{Alter, Del, Kick, KickJob, Pause, Purge, Resume};
pub use produce::{Add, AddMany, NewJob};

pub(crate) use builder::{builder, options};

#[cfg(doc)]
use crate::Queue;

mod builder {
    /// The methods of options: a kind of value, a name, a token.
    macro_rules! options {
        ($($(#[$doc:meta])* $kind:ident $method:ident = $token:literal;)*) => {
            $(options!(@one $(#[$doc])* $kind $method = $token);)*

            /// The names of the options, for the test that they are those of the grammar.
            #[cfg(test)]
            pub(crate) const OPTIONS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($method), $token)),*];
        };
        (@one $(#[$doc:meta])* flag $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self) -> Self {
                self.words().token($token);
                self
            }
        };
        (@one $(#[$doc:meta])* duration $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, duration: impl crate::words::Millis) -> Self {
                self.words().token($token).duration(duration);
                self
            }
        };
        (@one $(#[$doc:meta])* wait $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, limit: impl crate::words::Millis) -> Self {
                self.words().token($token).duration(limit);
                self.command.waits();
                self
            }
        };
        (@one $(#[$doc:meta])* time $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, time: impl crate::words::UnixMillis) -> Self {
                self.words().token($token).time(time);
                self
            }
        };
        (@one $(#[$doc:meta])* durations $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(
                mut self,
                durations: impl IntoIterator<Item = impl crate::words::Millis>,
            ) -> Self {
                let words = self.words().token($token);
                for duration in durations {
                    words.duration(duration);
                }
                self
            }
        };
        (@one $(#[$doc:meta])* times $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(
                mut self,
                times: impl IntoIterator<Item = impl crate::words::UnixMillis>,
            ) -> Self {
                let words = self.words().token($token);
                for time in times {
                    words.time(time);
                }
                self
            }
        };
        (@one $(#[$doc:meta])* int $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, number: i64) -> Self {
                self.words().token($token).int(number);
                self
            }
        };
        (@one $(#[$doc:meta])* text $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, text: impl AsRef<[u8]>) -> Self {
                self.words().token($token).text(text);
                self
            }
        };
        (@one $(#[$doc:meta])* texts $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(
                mut self,
                items: impl IntoIterator<Item = impl AsRef<[u8]>>,
            ) -> Self {
                self.words().token($token).counted(items);
                self
            }
        };
        (@one $(#[$doc:meta])* state $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, state: crate::words::State) -> Self {
                self.words().token($token).token(state.as_str());
                self
            }
        };
        (@one $(#[$doc:meta])* ondead $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, then: crate::words::OnDead) -> Self {
                self.words().token($token).token(then.as_str());
                self
            }
        };
        (@one $(#[$doc:meta])* misfire $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, which: crate::words::Misfire) -> Self {
                self.words().token($token).token(which.as_str());
                self
            }
        };
        (@one $(#[$doc:meta])* backoff $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(
                mut self,
                backoff: crate::words::Backoff<impl crate::words::Millis>,
            ) -> Self {
                self.words().token($token).backoff(backoff);
                self
            }
        };
        (@one $(#[$doc:meta])* rate $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, rate: crate::words::Rate<impl crate::words::Millis>) -> Self {
                self.words().token($token).rate(rate);
                self
            }
        };
        (@one $(#[$doc:meta])* cron $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, cron: impl Into<crate::words::Cron>) -> Self {
                self.words().token($token).cron(cron);
                self
            }
        };
        (@one $(#[$doc:meta])* sink $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, sink: impl Into<crate::words::Sink>) -> Self {
                self.words().token($token).sink(sink);
                self
            }
        };
        (@one $(#[$doc:meta])* body $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, body: impl crate::codec::Body) -> Self {
                self.words().token($token);
                self.command.encoded(self.queue.payload(&body));
                self
            }
        };
        (@one $(#[$doc:meta])* result $method:ident = $token:literal) => {
            $(#[$doc])*
            pub fn $method(mut self, result: impl crate::codec::Body) -> Self {
                self.words().token($token);
                self.command.encoded(result.encode(self.queue.codec));
                self
            }
        };
    }
    pub(crate) use options;

    /// A command of a queue: it is sent when it is awaited.
    macro_rules! builder {
        ($(#[$doc:meta])* $name:ident -> $reply:ty) => {
            $(#[$doc])*
            #[must_use = "a command is sent when it is awaited, or put on a pipeline"]
            pub struct $name {
                #[allow(dead_code)]
                queue: crate::queue::Queue,
                command: crate::seam::Command<$reply>,
            }

            impl $name {
                #[allow(dead_code)]
                fn words(&mut self) -> &mut crate::words::Words {
                    &mut self.command.words
                }

                /// Puts the command on a pipeline, which the program executes. Fails when a value
                /// can't be encoded.
                pub fn on(
                    self,
                    pipeline: &mut redis::Pipeline,
                ) -> crate::errors::Result<crate::seam::Later<$reply>> {
                    self.command.on(pipeline)
                }
            }

            impl std::future::IntoFuture for $name {
                type Output = crate::errors::Result<$reply>;
                type IntoFuture = futures_util::future::BoxFuture<'static, Self::Output>;

                fn into_future(self) -> Self::IntoFuture {
                    Box::pin(async move { self.command.send(&*self.queue.connection).await })
                }
            }
        };
    }
    pub(crate) use builder;
}

#[cfg(test)]
mod tests;
