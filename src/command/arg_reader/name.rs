//! The names of options, and rows that read options by them.

use crate::command::error::Error;

/// No option's name is longer.
const OPTION_BYTES_MAX: usize = 16;

/// The name of an option, which is of letters: all of them in one number, in capitals, and how many
/// they are. So names are compared at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    letters: u128,
    len: usize,
}

impl Name {
    const CAPITALS: u128 = u128::from_le_bytes([!0x20; OPTION_BYTES_MAX]);

    pub const fn of(name: &str) -> Name {
        let (mut letters, mut rest) = (0, name.as_bytes());
        while let [before @ .., last] = rest {
            letters = letters << 8 | *last as u128;
            rest = before;
        }
        Name { letters, len: name.len() }
    }

    /// In capitals. What isn't a letter doesn't become one by that.
    pub(super) fn read(word: &[u8]) -> Option<Name> {
        let mut letters = [0; OPTION_BYTES_MAX];
        letters.get_mut(..word.len())?.copy_from_slice(word);
        let letters = u128::from_le_bytes(letters) & Name::CAPITALS;
        Some(Name { letters, len: word.len() })
    }
}

/// Takes the value of an option that may be given once.
pub fn once<T>(option: &'static str, place: &mut Option<T>, value: T) -> Result<bool, Error> {
    if place.is_some() {
        return Err(Error::Repeated { option });
    }
    *place = Some(value);
    Ok(true)
}

/// Reads one option, if it is one of these. A row is `"NAME" => place, reader(arguments);`: the
/// place is an `Option`, which is given once, and the reader the method of `ArgReader` that reads the
/// value.
macro_rules! option {
    (
        $found:ident, $args:ident,
        { $($name:literal => $place:expr, $read:ident($($argument:expr),*);)* } else $other:expr
    ) => {
        match $found {
            $(found if found == const { $crate::command::arg_reader::name::Name::of($name) } => {
                let value = $args.$read($name $(, $argument)*)?;
                $crate::command::arg_reader::name::once($name, &mut $place, value)
            })*
            _ => $other,
        }
    };
}

/// Reads all arguments that are left as options, by such rows; what none of them names is left to
/// `else`, or is an error.
macro_rules! options {
    ($args:expr, { $($rows:tt)* }) => {
        $crate::command::arg_reader::name::options!($args, { $($rows)* } else |_name, _args| Ok(false))
    };
    ($args:expr, { $($rows:tt)* } else |$found:ident, $rest:ident| $other:expr) => {
        $args.options(|$found, $rest| {
            $crate::command::arg_reader::name::option!($found, $rest, { $($rows)* } else $other)
        })?
    };
}

pub(in crate::command) use {option, options};
