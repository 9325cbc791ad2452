//! A queue: what its commands are sent to. They are its methods in methods.rs.

use std::sync::Arc;

use crate::codec::{Body, Codec};
use crate::envelope::wrapped;
use crate::errors::Result;
use crate::seam::Connection;
use crate::words::Text;

/// A queue, over a connection that the program made.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let orders = dq_client::Queue::new(client.get_multiplexed_async_connection().await?, "orders");
/// let minutes = 30;
/// orders.add("order:17", "cancel").delay(Duration::from_secs(minutes * 60)).nx().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Queue {
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) name: Text,
    pub(crate) codec: Codec,
    #[cfg(feature = "opentelemetry")]
    pub(crate) is_traced: bool,
}

impl Queue {
    /// The queue of this name. Clones share the connection.
    pub fn new(connection: impl Connection + 'static, name: impl AsRef<[u8]>) -> Self {
        Self::shared(Arc::new(connection), name)
    }

    /// The same over a connection that others have, too.
    pub fn shared(connection: Arc<dyn Connection>, name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref().to_vec().into();
        Self {
            connection,
            name,
            codec: Codec::Json,
            #[cfg(feature = "opentelemetry")]
            is_traced: false,
        }
    }

    /// The same queue, whose bodies and results are written by another codec.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The same queue, with the context of a span in each job that is added.
    #[cfg(feature = "opentelemetry")]
    pub fn traced(mut self) -> Self {
        self.is_traced = true;
        self
    }

    /// Its name, which is its key.
    pub fn name(&self) -> &Text {
        &self.name
    }

    pub(crate) fn over(&self, connection: Arc<dyn Connection>) -> Self {
        Self { connection, ..self.clone() }
    }

    pub(crate) fn named(&self, name: Text) -> Self {
        Self { name, ..self.clone() }
    }

    pub(crate) fn payload(&self, body: &dyn Body) -> Result<Vec<u8>> {
        wrapped(body.encode(self.codec)?, &self.headers())
    }

    #[cfg(feature = "opentelemetry")]
    fn headers(&self) -> crate::envelope::Headers {
        if self.is_traced {
            crate::spans::create(&self.name)
        } else {
            Vec::new()
        }
    }

    #[cfg(not(feature = "opentelemetry"))]
    fn headers(&self) -> crate::envelope::Headers {
        Vec::new()
    }
}
