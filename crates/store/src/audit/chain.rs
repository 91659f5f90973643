//! The chain of the audit log: how an entry is tied to the one before it, and whether all of them still are.

use super::{AuditEntry, AuditLink, Head};
use crate::{Result, Store};
use sha2::{Digest as _, Sha256};

/// What a check of the whole chain found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditCheck {
    /// How many entries are as they were written: all, or those before the break
    pub entries: i64,
    /// The hash of the last of them. Kept elsewhere, it tells later whether somebody wrote the whole chain anew
    pub head: [u8; 32],
    /// The first place where the chain does not hold
    pub broken: Option<AuditBreak>,
}

/// A place where the chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditBreak {
    /// The number of the entry
    pub number: i64,
    /// What is wrong with it, for people
    pub what: String,
}

/// Entries read at once by a check.
const PAGE: usize = 1000;

/// The hash of an entry: SHA-256 of the hash before it (zeros for the first), its number, its time, and its texts, each after
/// its length, so that nothing can be moved from one to the next.
pub fn link(previous: &[u8; 32], number: i64, entry: &AuditEntry) -> [u8; 32] {
    let AuditEntry { at, who, origin, what, subject, detail } = entry;
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(number.to_be_bytes());
    hash.update(at.micros().to_be_bytes());
    for text in [who, origin, what, subject, detail] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}

impl Store {
    /// Reads the audit log from its beginning, and tells whether every entry is as it was written and none is missing, at
    /// the end neither. Entries may be added meanwhile.
    pub async fn verify_audit(&self) -> Result<AuditCheck> {
        let mut last = Head::default();
        let broken = loop {
            // First the head, then the entries: those are then at least as new, and a head beyond them covers what is gone.
            let head = self.audit_head().await?;
            let page = self.audit_links(last.number, PAGE).await?;
            if page.is_empty() {
                break check_head(&last, head);
            }
            if let Some(found) = page.iter().find_map(|link| check_link(&mut last, link)) {
                break Some(found);
            }
        };
        Ok(AuditCheck { entries: last.number, head: last.hash, broken })
    }
}

/// Goes on to the next entry, or tells why it cannot follow the last one.
fn check_link(last: &mut Head, next: &AuditLink) -> Option<AuditBreak> {
    let number = last.number + 1;
    let broken = |what: String| Some(AuditBreak { number, what });
    if next.number != number {
        return broken(format!("entry {number} is missing: the next one is {}", next.number));
    }
    let expected = last.then(number, &next.entry);
    if next.hash != expected.hash {
        return broken(format!(
            "entry {number} or its hash is not what was written, or an entry before it was replaced"
        ));
    }
    *last = expected;
    None
}

fn check_head(last: &Head, head: Option<(i64, [u8; 32])>) -> Option<AuditBreak> {
    let broken = |number, what: String| Some(AuditBreak { number, what });
    match head {
        None => broken(last.number, "the head of the log is missing: entries may have been cut off".into()),
        Some((number, _)) if number > last.number => {
            broken(last.number + 1, format!("entries {} to {number} are missing at the end", last.number + 1))
        }
        Some((number, _)) if number < last.number => {
            broken(number + 1, format!("entry {} is beyond the head of the log", number + 1))
        }
        Some((number, hash)) if hash != last.hash => {
            broken(number, format!("entry {number} is not the one that the head of the log covers"))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn entry() -> AuditEntry {
        AuditEntry {
            at: Timestamp(7),
            who: "alice".into(),
            origin: "cli".into(),
            what: "key.accept".into(),
            subject: "web1".into(),
            detail: "{}".into(),
        }
    }

    #[test]
    fn a_hash_covers_everything_of_an_entry_and_what_came_before() {
        let plain = link(&[0; 32], 1, &entry());
        let others = [
            link(&[1; 32], 1, &entry()),
            link(&[0; 32], 2, &entry()),
            link(&[0; 32], 1, &AuditEntry { at: Timestamp(8), ..entry() }),
            link(&[0; 32], 1, &AuditEntry { who: "alicec".into(), origin: "li".into(), ..entry() }),
            link(&[0; 32], 1, &AuditEntry { what: "key.reject".into(), ..entry() }),
            link(&[0; 32], 1, &AuditEntry { subject: "web2".into(), ..entry() }),
            link(&[0; 32], 1, &AuditEntry { detail: "[]".into(), ..entry() }),
        ];
        assert!(others.iter().all(|other| *other != plain));
    }

    /// Chains are kept for years and checked by other programs: what is hashed may never change.
    #[test]
    fn the_hash_of_an_entry_is_what_it_always_was() {
        let digits: String = link(&[0; 32], 1, &entry()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, "bb66fa8b0c15daed40f2030e65b4551cd9a2abdb138e9853cbcdeebcb046347e");
    }
}
