//! Reading `salt/job/…` tags: which job, which minion, what happened.

use super::tag;
use crate::ids::{Jid, MinionId};
use std::fmt;

/// A tag of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTag {
    /// The job
    pub jid: Jid,
    /// What happened
    pub kind: JobTagKind,
}

/// What a job's tag says happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobTagKind {
    /// It was accepted
    New,
    /// It was published
    Publish,
    /// It was refused
    Error,
    /// A minion returned
    Ret(MinionId),
    /// A minion finished the given item or state
    Prog(MinionId, u64),
    /// A minion took it over
    Ack(MinionId),
    /// A minion began to run it
    Start(MinionId),
    /// A state failed on a minion, in this function
    SubError(MinionId, String),
}

impl JobTag {
    /// Reads a tag; `None` for one that is no job's, or that no Salt release and no server of ours makes.
    pub fn parse(tag: &str) -> Option<Self> {
        let (jid, rest) = tag.strip_prefix("salt/job/")?.split_once('/')?;
        let jid = Jid::parse(jid)?;
        let mut parts = rest.split('/');
        let mut next = || parts.next();
        let kind = match next()? {
            "new" => JobTagKind::New,
            "publish" => JobTagKind::Publish,
            "error" => JobTagKind::Error,
            "ret" => JobTagKind::Ret(minion(next()?)?),
            "ack" => JobTagKind::Ack(minion(next()?)?),
            "start" => JobTagKind::Start(minion(next()?)?),
            "prog" => JobTagKind::Prog(minion(next()?)?, number(next()?)?),
            "sub" => {
                let id = minion(next()?)?;
                let fun = (next()? == "error").then(&mut next)??;
                JobTagKind::SubError(id, fun.to_owned())
            }
            _ => return None,
        };
        next().is_none().then_some(Self { jid, kind })
    }

    /// The minion it is about, if it is about one.
    pub fn minion(&self) -> Option<&MinionId> {
        match &self.kind {
            JobTagKind::New | JobTagKind::Publish | JobTagKind::Error => None,
            JobTagKind::Ret(id)
            | JobTagKind::Prog(id, _)
            | JobTagKind::Ack(id)
            | JobTagKind::Start(id)
            | JobTagKind::SubError(id, _) => Some(id),
        }
    }
}

impl fmt::Display for JobTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jid = self.jid;
        f.write_str(&match &self.kind {
            JobTagKind::New => tag::job_new(jid),
            JobTagKind::Publish => tag::job_publish(jid),
            JobTagKind::Error => tag::job_error(jid),
            JobTagKind::Ret(id) => tag::job_ret(jid, id),
            JobTagKind::Prog(id, n) => tag::job_prog(jid, id, *n),
            JobTagKind::Ack(id) => tag::job_ack(jid, id),
            JobTagKind::Start(id) => tag::job_start(jid, id),
            JobTagKind::SubError(id, fun) => tag::job_sub_error(jid, id, fun),
        })
    }
}

fn minion(text: &str) -> Option<MinionId> {
    MinionId::new(text).ok()
}

/// Digits only: `str::parse` would also take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JID: &str = "20261115200427443183";

    #[test]
    fn every_kind_reads_back_as_it_was_made() {
        let jid = Jid::parse(JID).unwrap();
        let id = || MinionId::new("web1").unwrap();
        for kind in [
            JobTagKind::New,
            JobTagKind::Publish,
            JobTagKind::Error,
            JobTagKind::Ret(id()),
            JobTagKind::Prog(id(), 7),
            JobTagKind::Ack(id()),
            JobTagKind::Start(id()),
            JobTagKind::SubError(id(), "state.sls".into()),
        ] {
            let tag = JobTag { jid, kind };
            assert_eq!(JobTag::parse(&tag.to_string()), Some(tag));
        }
    }

    #[test]
    fn what_is_no_job_tag_is_not_read_as_one() {
        for tag in [
            "",
            "salt/job/",
            "salt/job/new",
            "salt/job/123/new",
            "salt/auth",
            "xsalt/job/20261115200427443183/new",
            "salt/job/20261115200427443183",
            "salt/job/20261115200427443183/new/x",
            "salt/job/20261115200427443183/ret",
            "salt/job/20261115200427443183/ret/",
            "salt/job/20261115200427443183/ret/a/b",
            "salt/job/20261115200427443183/ret/../x",
            "salt/job/20261115200427443183/prog/web1",
            "salt/job/20261115200427443183/prog/web1/x",
            "salt/job/20261115200427443183/prog/web1/+1",
            "salt/job/20261115200427443183/prog/web1/99999999999999999999",
            "salt/job/20261115200427443183/sub/web1/x/y",
        ] {
            assert_eq!(JobTag::parse(tag), None, "{tag}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_reads_back(rest in "(/|ret|prog|sub|error|new|web1|1|\\PC){0,8}") {
            let text = format!("salt/job/{JID}/{rest}");
            if let Some(tag) = JobTag::parse(&text) {
                prop_assert_eq!(JobTag::parse(&tag.to_string()), Some(tag));
            }
        }
    }
}
