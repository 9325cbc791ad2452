//! Limits and defaults of a queue.

use super::{Act, Done, No};
use crate::web::limits;

impl Act<'_> {
    /// Only what the form names: what another has set since the preview stays.
    pub(super) async fn alter(&self) -> std::result::Result<Done, No> {
        let change = limits::read(self.fields).map_err(No::Form)?;
        if change.is_empty() {
            return Err(No::Form("Nothing was set: the form names no setting."));
        }
        self.ask(change.command(self.queue)).await?;
        Ok(Done::to_queue(format!("Set: {}.", limits::in_words(&change))))
    }
}
