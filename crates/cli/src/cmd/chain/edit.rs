//! Changing a chain: read it, change what was asked, and write it back only if it is still as it was read.
//!
//! Whoever is overtaken tries once more, but only where what was asked means the same after the other's change: a new name
//! does, the number of a step does not if the steps are others now.

use crate::failure::Failure;
use saltern_api::client::{Client, ClientError};
use saltern_api::shape::{ChainDetail, ChainDraft};
use saltern_core::chain::Step;

/// What is to be changed.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Rename(String),
    Describe(String),
    Share(bool),
    /// Another step in place of the one with this number
    Replace(usize, Box<super::step::StepChange>),
    /// The steps with these numbers are taken out
    Remove(Vec<usize>),
    /// A step gets another number
    Move {
        from: usize,
        to: usize,
    },
}

/// Changes a chain.
pub(super) async fn change(client: &Client, which: &str, edits: &[Edit]) -> Result<ChainDetail, Failure> {
    let known = client.chain(which).await?;
    let stale = match write(client, &known, edits).await? {
        Ok(changed) => return Ok(changed),
        Err(stale) => stale,
    };
    let now = client.chain(&known.chain.id.to_string()).await?;
    if edits.iter().any(Edit::names_steps) && now.steps != known.steps {
        let name = &known.chain.name;
        return Err(Failure::from(stale).hint(format!(
            "somebody has changed the steps meanwhile; `saltern chain show {name}` shows what they are now"
        )));
    }
    write(client, &now, edits).await?.map_err(Failure::from)
}

/// Writes the change, or tells that somebody was faster.
async fn write(
    client: &Client,
    known: &ChainDetail,
    edits: &[Edit],
) -> Result<Result<ChainDetail, ClientError>, Failure> {
    let mut draft = draft(known);
    for edit in edits {
        edit.apply(&mut draft)?;
    }
    match client.put_chain(known.chain.id, known.chain.version, &draft).await {
        Err(stale) if stale.is_stale() => Ok(Err(stale)),
        done => Ok(Ok(done?)),
    }
}

/// A chain as a draft of itself.
pub(super) fn draft(known: &ChainDetail) -> ChainDraft {
    ChainDraft {
        name: known.chain.name.clone(),
        description: known.chain.description.clone(),
        shared: known.chain.shared,
        steps: known.steps.clone(),
    }
}

impl Edit {
    /// Whether it means something else when the steps are others.
    fn names_steps(&self) -> bool {
        match self {
            Self::Rename(_) | Self::Describe(_) | Self::Share(_) => false,
            Self::Replace(..) | Self::Remove(_) | Self::Move { .. } => true,
        }
    }

    fn apply(&self, draft: &mut ChainDraft) -> Result<(), Failure> {
        match self {
            Self::Rename(name) => draft.name.clone_from(name),
            Self::Describe(text) => draft.description.clone_from(text),
            Self::Share(shared) => draft.shared = *shared,
            Self::Replace(number, change) => {
                let at = index(&draft.steps, *number)?;
                draft.steps[at] = change.apply(draft.steps[at].clone())?;
            }
            Self::Remove(numbers) => {
                for number in numbers {
                    index(&draft.steps, *number)?;
                }
                let mut number = 0;
                draft.steps.retain(|_| {
                    number += 1;
                    !numbers.contains(&number)
                });
            }
            Self::Move { from, to } => {
                let (from, to) = (index(&draft.steps, *from)?, index(&draft.steps, *to)?);
                let step = draft.steps.remove(from);
                draft.steps.insert(to, step);
            }
        }
        Ok(())
    }
}

/// Where the step with this number is.
fn index(steps: &[Step], number: usize) -> Result<usize, Failure> {
    match number.checked_sub(1).filter(|index| *index < steps.len()) {
        Some(index) => Ok(index),
        None if steps.is_empty() => Err(Failure::usage("the chain has no steps yet")),
        None => Err(Failure::usage(format!("there is no step {number}: the chain has steps 1 to {}", steps.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::value::Map;

    fn chain() -> ChainDraft {
        let step = |name: &str| Step { name: Some(name.into()), ..Step::new("reboot", Map::new()) };
        ChainDraft { name: "x".into(), steps: ["a", "b", "c", "d"].map(step).into(), ..ChainDraft::default() }
    }

    fn names(edit: Edit) -> Result<String, String> {
        let mut draft = chain();
        edit.apply(&mut draft).map_err(|failure| failure.to_string())?;
        Ok(draft.steps.iter().map(Step::describe).collect())
    }

    #[test]
    fn a_step_is_moved_to_the_number_it_is_to_have() {
        assert_eq!(names(Edit::Move { from: 1, to: 3 }).unwrap(), "bcad");
        assert_eq!(names(Edit::Move { from: 4, to: 1 }).unwrap(), "dabc");
        assert_eq!(names(Edit::Move { from: 2, to: 2 }).unwrap(), "abcd");
    }

    #[test]
    fn numbers_mean_the_steps_as_they_are_before() {
        assert_eq!(names(Edit::Remove(vec![1, 3, 3])).unwrap(), "bd");
    }

    #[test]
    fn a_number_that_no_step_has_is_refused() {
        for edit in [
            Edit::Remove(vec![1, 5]),
            Edit::Remove(vec![0]),
            Edit::Move { from: 1, to: 5 },
            Edit::Replace(5, Box::default()),
        ] {
            assert!(names(edit.clone()).unwrap_err().contains("steps 1 to 4"), "{edit:?}");
        }
    }

    #[test]
    fn only_what_does_not_name_steps_is_done_again_though_they_are_others() {
        assert!(!Edit::Rename("y".into()).names_steps() && !Edit::Share(true).names_steps());
        assert!(Edit::Remove(vec![1]).names_steps() && Edit::Replace(1, Box::default()).names_steps());
    }
}
