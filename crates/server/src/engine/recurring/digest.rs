//! Tells how each fire ended, once: so many did well, so many failed, so many were left out.

use super::tell;
use crate::master::Master;
use crate::{Error, clock};

/// Fires told of in one go.
const PAGE: usize = 100;

impl Master {
    /// Tells of every fire whose action or launch has ended.
    pub(super) async fn tell_digests(&self) -> Result<(), Error> {
        loop {
            let ended = self.store.undigested_fires(PAGE).await?;
            let is_last = ended.len() < PAGE;
            for (fire, counts) in ended {
                // One that was removed meanwhile has no owner any more; the server's log tells of it all the same.
                let row = self.store.recurring(fire.recurring).await?;
                let event = tell::digest(row.as_ref(), &fire, &counts, clock::now());
                self.store.mark_digested(fire.recurring, fire.planned, vec![event]).await?;
            }
            if is_last || self.tasks.stop_token().is_cancelled() {
                return Ok(());
            }
        }
    }
}
