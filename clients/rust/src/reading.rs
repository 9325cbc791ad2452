//! Replies of the redis crate as Rust's values.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{from_redis_value, FromRedisValue, Value};

use crate::errors::{Error, Result};
use crate::words::{State, Text};

/// A value of a reply. What an older server doesn't tell is the type's default.
pub(crate) trait Wire: Sized {
    fn read(value: Value) -> Result<Self>;

    /// As the server has it.
    fn shown(&self) -> Shown;
}

/// A value as the server shows it: durations in milliseconds, times in Unix milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// There is none.
    Nothing,
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// Text or bytes.
    Bytes(Vec<u8>),
}

fn plain<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| Error::Reply(error.to_string()))
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        other => plain(other),
    }
}

pub(crate) fn list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(items) | Value::Set(items) => Ok(items),
        other => Err(Error::reply(other)),
    }
}

/// The next part of a list; the default when there are no more.
pub(crate) fn next<T: Wire>(parts: &mut impl Iterator<Item = Value>) -> Result<T> {
    T::read(parts.next().unwrap_or_default())
}

/// A map: as RESP3 has it, or as RESP2's names and values in turn.
pub(crate) fn fields(value: Value) -> Result<HashMap<String, Value>> {
    let pairs = match value {
        Value::Map(pairs) => pairs,
        other => {
            let mut items = list(other)?.into_iter();
            std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect()
        }
    };
    pairs.into_iter().map(|(name, value)| Ok((plain(name)?, value))).collect()
}

impl Wire for i64 {
    fn read(value: Value) -> Result<Self> {
        match value {
            Value::Nil => Ok(0),
            other => plain(other),
        }
    }

    fn shown(&self) -> Shown {
        Shown::Number(*self)
    }
}

impl Wire for bool {
    fn read(value: Value) -> Result<Self> {
        match value {
            Value::Nil => Ok(false),
            other => plain(other),
        }
    }

    fn shown(&self) -> Shown {
        Shown::Flag(*self)
    }
}

impl Wire for Vec<u8> {
    fn read(value: Value) -> Result<Self> {
        match value {
            Value::Nil => Ok(Vec::new()),
            other => bytes(other),
        }
    }

    fn shown(&self) -> Shown {
        Shown::Bytes(self.clone())
    }
}

impl Wire for Text {
    fn read(value: Value) -> Result<Self> {
        Vec::read(value).map(Text::from)
    }

    fn shown(&self) -> Shown {
        Shown::Bytes(self.as_bytes().to_vec())
    }
}

impl Wire for State {
    fn read(value: Value) -> Result<Self> {
        Text::read(value)?.to_str().parse()
    }

    fn shown(&self) -> Shown {
        Shown::Bytes(self.as_str().into())
    }
}

impl Wire for Duration {
    fn read(value: Value) -> Result<Self> {
        let ms = i64::read(value)?;
        Ok(Self::from_millis(u64::try_from(ms).unwrap_or_default()))
    }

    fn shown(&self) -> Shown {
        Shown::Number(i64::try_from(self.as_millis()).unwrap_or(i64::MAX))
    }
}

impl Wire for SystemTime {
    fn read(value: Value) -> Result<Self> {
        let since = Duration::read(value)?;
        UNIX_EPOCH.checked_add(since).ok_or_else(|| Error::reply(since))
    }

    fn shown(&self) -> Shown {
        self.duration_since(UNIX_EPOCH).map_or(Shown::Number(0), |since| since.shown())
    }
}

impl<T: Wire> Wire for Option<T> {
    fn read(value: Value) -> Result<Self> {
        match value {
            Value::Nil => Ok(None),
            other => T::read(other).map(Some),
        }
    }

    fn shown(&self) -> Shown {
        self.as_ref().map_or(Shown::Nothing, Wire::shown)
    }
}

/// A struct with the names that its fields have on the wire. What a newer server tells besides is
/// left out.
macro_rules! structure {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $field:ident: $type:ty = $wire:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name { $($(#[$each])* pub $field: $type,)* }

        impl $name {
            /// The names of the fields on the wire.
            pub const WIRE: &'static [&'static str] = &[$($wire),*];

            pub(crate) fn read(
                told: &mut std::collections::HashMap<String, redis::Value>,
            ) -> crate::errors::Result<Self> {
                Ok(Self {
                    $($field: crate::reading::Wire::read(told.remove($wire).unwrap_or_default())?,)*
                })
            }

            /// All fields under the server's names, to print them.
            pub fn shown(&self) -> Vec<(&'static str, crate::reading::Shown)> {
                vec![$(($wire, crate::reading::Wire::shown(&self.$field)),)*]
            }
        }
    };
}
pub(crate) use structure;
