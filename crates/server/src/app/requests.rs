//! Requests that may be sent again without being carried out again: the first answer is kept under a key the client chose.
//!
//! What holds: of all requests of one user with one key, one is carried out, whichever server they reach. Its answer is kept
//! for a day and given to the others. If the server dies between doing what was asked and keeping the answer, nobody knows
//! whether it was done: those who repeat it are told that, and nothing is done a second time.

use super::{App, Caller};
use crate::{Error, clock};
use saltern_store::{Body, Reply};

/// What is to be done with a request.
#[derive(Debug)]
pub enum Repeated {
    /// It is the first with this key: carry it out
    No,
    /// The first is still being carried out, or its end is not known
    Running,
    /// This was answered
    Answered(KeptAnswer),
    /// The key was used for another request
    Other,
}

/// An answer that is kept.
pub struct KeptAnswer {
    /// The status
    pub status: u16,
    /// Headers that belong to it
    pub headers: Vec<(String, String)>,
    /// The body; not shown, nobody knows what is in it
    pub body: Vec<u8>,
}

/// Bytes that are kept as they are.
const RAW: i64 = 0;

impl App {
    /// Begins a request, unless it was begun already. `fingerprint` is a hash of all that makes it this request.
    pub async fn begin_request(&self, caller: &Caller, key: &str, fingerprint: [u8; 32]) -> Result<Repeated, Error> {
        let store = &self.master.store;
        let begun = store.begin_request(caller.who.clone(), key.to_owned(), fingerprint, clock::now()).await?;
        Ok(match begun {
            saltern_store::Begun::New => Repeated::No,
            saltern_store::Begun::Running => Repeated::Running,
            saltern_store::Begun::Other => Repeated::Other,
            saltern_store::Begun::Done(Reply { status, headers, body }) => {
                let status = u16::try_from(status).map_err(|_| Error::Internal(format!("no status: {status}")))?;
                Repeated::Answered(KeptAnswer { status, headers, body: body.bytes })
            }
        })
    }

    /// Keeps the answer to a request that was begun.
    pub async fn end_request(&self, caller: &Caller, key: &str, answer: KeptAnswer) -> Result<(), Error> {
        let KeptAnswer { status, headers, body } = answer;
        let reply = Reply { status: status.into(), headers, body: Body { encoding: RAW, bytes: body } };
        Ok(self.master.store.end_request(caller.who.clone(), key.to_owned(), reply).await?)
    }

    /// Forgets a request that came to nothing: the key may be used again.
    pub async fn drop_request(&self, caller: &Caller, key: &str) -> Result<(), Error> {
        Ok(self.master.store.drop_request(caller.who.clone(), key.to_owned()).await?)
    }
}

impl std::fmt::Debug for KeptAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}
