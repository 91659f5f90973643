//! Accept, reject, delete: shows what is meant, asks on a terminal, then applies to exactly that.

use super::{Decision, show};
use crate::args::Format;
use crate::failure::Failure;
use crate::output;
use saltern_api::client::{Client, KeyVerb};
use saltern_api::shape::{Key, KeyDecision, KeyResult};
use saltern_core::keys::KeyState;
use saltern_core::target::Glob;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

pub(super) async fn run(
    client: &Client,
    verb: KeyVerb,
    decision: &Decision,
    format: Format,
) -> Result<ExitCode, Failure> {
    let include = decision.include();
    let chosen = choose(client.keys().await?.keys, verb, decision, &include)?;
    if chosen.is_empty() {
        output::show(format, &KeyResult { ids: Vec::new() }, || format!("There is no key to {}.", word(verb)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let asked = !decision.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
    if asked && !confirmed(verb, &chosen)? {
        return Err(Failure::new("nothing was done"));
    }
    // By id and not by pattern: what was shown is what is meant, whoever has knocked in the meantime.
    let mut ids: Vec<String> = chosen.into_iter().map(|key| key.id).collect();
    ids.dedup();
    let include = include.iter().map(|state| state.as_str().to_owned()).collect();
    let request = KeyDecision { ids: Some(ids), include, ..KeyDecision::default() };
    let result = client.decide_keys(verb, &request).await?;
    output::show(format, &result, || {
        let told = |id: &String| format!("Key for minion {id} {}.", done(verb));
        result.ids.iter().map(told).collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The keys that are meant. A pattern that means none is an error, and then nothing is done at all.
fn choose(keys: Vec<Key>, verb: KeyVerb, decision: &Decision, include: &[KeyState]) -> Result<Vec<Key>, Failure> {
    let applies = |key: &Key| {
        let usual = verb == KeyVerb::Delete || key.state == KeyState::Unaccepted.as_str();
        usual || include.iter().any(|state| state.as_str() == key.state)
    };
    let mut chosen: Vec<Key> = keys.into_iter().filter(applies).collect();
    if decision.all {
        return Ok(chosen);
    }
    let globs: Vec<Glob> = decision.ids.iter().map(|pattern| Glob::new(pattern)).collect();
    if let Some(idle) = globs.iter().find(|glob| !chosen.iter().any(|key| glob.matches(&key.id))) {
        let hint = if verb == KeyVerb::Delete {
            "`saltern key list` shows them"
        } else {
            "`saltern key list` shows them; see --include-…"
        };
        return Err(Failure::new(format!("no key that can be {} matches {:?}", done(verb), idle.as_str())).hint(hint));
    }
    chosen.retain(|key| globs.iter().any(|glob| glob.matches(&key.id)));
    Ok(chosen)
}

fn confirmed(verb: KeyVerb, chosen: &[Key]) -> Result<bool, Failure> {
    let mut err = io::stderr();
    write!(err, "The following keys are going to be {}:\n{}\nProceed? [n/Y] ", done(verb), show::chosen(chosen))?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(agrees(&answer))
}

/// As `salt-key` reads it: nothing means yes, the end of input means no.
fn agrees(answer: &str) -> bool {
    answer.ends_with('\n') && matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

const fn word(verb: KeyVerb) -> &'static str {
    match verb {
        KeyVerb::Accept => "accept",
        KeyVerb::Reject => "reject",
        KeyVerb::Delete => "delete",
    }
}

const fn done(verb: KeyVerb) -> &'static str {
    match verb {
        KeyVerb::Accept => "accepted",
        KeyVerb::Reject => "rejected",
        KeyVerb::Delete => "deleted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::time::Timestamp;

    fn keys() -> Vec<Key> {
        let key = |(id, state): (&str, KeyState)| Key {
            id: id.into(),
            state: state.as_str().into(),
            fingerprint: String::new(),
            pem: None,
            since: Time(Timestamp(0)),
        };
        [
            ("db1", KeyState::Accepted),
            ("web1", KeyState::Unaccepted),
            ("web2", KeyState::Rejected),
            ("web3", KeyState::Unaccepted),
        ]
        .map(key)
        .to_vec()
    }

    fn chosen(verb: KeyVerb, ids: &[&str], include: &[KeyState]) -> Result<Vec<String>, Failure> {
        let decision = Decision {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            all: ids.is_empty(),
            include_rejected: false,
            include_denied: false,
            include_accepted: false,
            yes: true,
        };
        Ok(choose(keys(), verb, &decision, include)?.into_iter().map(|key| key.id).collect())
    }

    #[test]
    fn a_decision_applies_to_what_waits_for_one() {
        assert_eq!(chosen(KeyVerb::Accept, &["web*"], &[]).unwrap(), ["web1", "web3"]);
        assert_eq!(chosen(KeyVerb::Accept, &["web*"], &[KeyState::Rejected]).unwrap(), ["web1", "web2", "web3"]);
        assert_eq!(chosen(KeyVerb::Reject, &[], &[]).unwrap(), ["web1", "web3"]);
    }

    #[test]
    fn any_key_can_be_deleted() {
        assert_eq!(chosen(KeyVerb::Delete, &["db1", "web2"], &[]).unwrap(), ["db1", "web2"]);
    }

    #[test]
    fn a_pattern_without_a_key_stops_the_whole_decision() {
        assert!(chosen(KeyVerb::Accept, &["web1", "typo"], &[]).is_err());
        assert!(chosen(KeyVerb::Accept, &["db1"], &[]).is_err(), "it is accepted already");
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(agrees("\n") && agrees("y\n") && agrees("YES\n"));
        assert!(!agrees("n\n") && !agrees("") && !agrees("x\n"));
    }
}
