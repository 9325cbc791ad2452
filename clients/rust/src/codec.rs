//! How a value becomes the body of a job, and the result of one.

use serde::{de::DeserializeOwned, Serialize};

use crate::errors::{Error, Result};

/// How the bodies and results of a queue are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// JSON in UTF-8, without spaces, as the other clients write it. The default.
    #[default]
    Json,
    /// MessagePack, structs as maps.
    #[cfg(feature = "msgpack")]
    Msgpack,
}

impl Codec {
    /// The bytes of a value. What can't be written is an [`Error::Codec`].
    pub fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>> {
        match self {
            Self::Json => serde_json::to_vec(value).map_err(Error::codec),
            #[cfg(feature = "msgpack")]
            Self::Msgpack => rmp_serde::to_vec_named(value).map_err(Error::codec),
        }
    }

    /// The value of bytes. What can't be read is an [`Error::Codec`].
    pub fn decode<T: DeserializeOwned>(self, data: &[u8]) -> Result<T> {
        match self {
            Self::Json => serde_json::from_slice(data).map_err(Error::codec),
            #[cfg(feature = "msgpack")]
            Self::Msgpack => rmp_serde::from_slice(data).map_err(Error::codec),
        }
    }

    /// Whether these bytes say that there is no value: `()` and `None` become them.
    pub(crate) fn is_nothing(self, data: &[u8]) -> bool {
        match self {
            Self::Json => data == b"null",
            #[cfg(feature = "msgpack")]
            Self::Msgpack => data == [0xc0],
        }
    }
}

/// What can be the body of a job, or the result of one: any `Serialize`, by the codec of the queue,
/// or [`Raw`] bytes.
pub trait Body {
    /// The bytes that go to the server.
    fn encode(&self, codec: Codec) -> Result<Vec<u8>>;
}

impl<T: Serialize + ?Sized> Body for T {
    fn encode(&self, codec: Codec) -> Result<Vec<u8>> {
        codec.encode(self)
    }
}

/// Bytes as they are, whatever the codec of the queue: `queue.add("a", Raw(b"hello"))`. They are
/// read by `payload` in place of `body`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<T>(pub T);

impl<T: AsRef<[u8]>> Body for Raw<T> {
    fn encode(&self, _: Codec) -> Result<Vec<u8>> {
        Ok(self.0.as_ref().to_vec())
    }
}
