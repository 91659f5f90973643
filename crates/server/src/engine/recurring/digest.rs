//! Tells how each fire ended, once: so many did well, so many failed, so many were left out.

use super::{AT_ONCE, tell};
use crate::master::Master;
use crate::{Error, clock};
use futures_util::{StreamExt as _, TryStreamExt as _};
use saltern_store::{Counts, Fire};

/// Fires told of in one go.
const PAGE: usize = 100;

impl Master {
    /// Tells of fires whose action or launch has ended, a page at most: what is due does not wait for them. Whether there may
    /// be more.
    pub(super) async fn tell_digests(&self) -> Result<bool, Error> {
        let ended = self.store.undigested_fires(PAGE).await?;
        let is_full = ended.len() == PAGE;
        // Together, so that they share commits.
        let telling = ended.into_iter().map(|(fire, counts)| self.tell_digest(fire, counts));
        futures_util::stream::iter(telling).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        Ok(is_full)
    }

    async fn tell_digest(&self, fire: Fire, counts: Counts) -> Result<(), Error> {
        // One that was removed meanwhile has no owner any more; the server's log tells of it all the same.
        let row = self.store.recurring(fire.recurring).await?;
        let event = tell::digest(row.as_ref(), &fire, &counts, clock::now());
        self.store.mark_digested(fire.recurring, fire.planned, vec![event]).await?;
        Ok(())
    }
}
