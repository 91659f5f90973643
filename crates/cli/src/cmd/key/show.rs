//! Keys as `salt-key` shows them: a heading per state, ids below.

use crate::output::style::{Colour, Style};
use crate::output::{text, when};
use saltern_api::shape::{Key, KeyList};
use saltern_core::keys::KeyState;
use std::collections::BTreeMap;

/// The order of headings.
pub(super) const ORDER: [KeyState; 4] =
    [KeyState::Accepted, KeyState::Denied, KeyState::Unaccepted, KeyState::Rejected];

/// Ids by state, under the names that `salt-key --out json` uses.
pub(super) fn by_state(keys: &[Key], states: &[KeyState]) -> BTreeMap<&'static str, Vec<String>> {
    let name = |state: KeyState| match state {
        KeyState::Accepted => "minions",
        KeyState::Denied => "minions_denied",
        KeyState::Unaccepted => "minions_pre",
        KeyState::Rejected => "minions_rejected",
    };
    states.iter().map(|state| (name(*state), of(keys, *state).map(|key| key.id.clone()).collect())).collect()
}

/// Ids by state.
pub(super) fn list(keys: &[Key], states: &[KeyState]) -> String {
    listing(keys, states, true, |key| text::clean(&key.id))
}

/// Ids with fingerprints by state, the server's own key first.
pub(super) fn fingerprints(list: &KeyList) -> String {
    let own = format!(
        "{}\nmaster.pub:  {}\n",
        Style::of_stdout().paint(Colour::Cyan, "Local Keys:"),
        list.master_fingerprint
    );
    own + &listing(&list.keys, &ORDER, false, |key| {
        format!("{}:  {}", text::clean(&key.id), text::clean(&key.fingerprint))
    })
}

/// Keys in full.
pub(super) fn public_keys(keys: &[Key]) -> String {
    listing(keys, &ORDER, false, |key| {
        let pem = text::clean_lines(key.pem.as_deref().unwrap_or_default());
        format!(
            "{}:  since {}\n{}\n{pem}",
            text::clean(&key.id),
            when::instant(key.since.0),
            text::clean(&key.fingerprint)
        )
    })
}

/// What a decision is going to apply to.
pub(super) fn chosen(keys: &[Key]) -> String {
    listing(keys, &ORDER, false, |key| text::clean(&key.id))
}

fn listing(keys: &[Key], states: &[KeyState], with_empty: bool, show: impl Fn(&Key) -> String) -> String {
    let style = Style::of_stdout();
    let mut lines = Vec::new();
    for state in states {
        let (heading, colour) = match state {
            KeyState::Accepted => ("Accepted Keys:", Colour::Green),
            KeyState::Denied => ("Denied Keys:", Colour::Red),
            KeyState::Unaccepted => ("Unaccepted Keys:", Colour::Yellow),
            KeyState::Rejected => ("Rejected Keys:", Colour::Grey),
        };
        let mut of_state = of(keys, *state).peekable();
        if with_empty || of_state.peek().is_some() {
            lines.push(style.paint(colour, heading));
        }
        lines.extend(of_state.map(|key| style.paint(colour, &show(key))));
    }
    lines.join("\n")
}

fn of(keys: &[Key], state: KeyState) -> impl Iterator<Item = &Key> {
    keys.iter().filter(move |key| key.state == state.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::time::Timestamp;

    fn key(id: &str, state: KeyState) -> Key {
        Key {
            id: id.into(),
            state: state.as_str().into(),
            fingerprint: "aa:bb".into(),
            pem: None,
            since: Time(Timestamp::from_secs(1_794_772_591)),
        }
    }

    #[test]
    fn the_list_is_salt_keys() {
        let keys = [key("a", KeyState::Accepted), key("b", KeyState::Unaccepted), key("c", KeyState::Accepted)];
        assert_eq!(list(&keys, &ORDER), "Accepted Keys:\na\nc\nDenied Keys:\nUnaccepted Keys:\nb\nRejected Keys:");
        let json = serde_json::to_string(&by_state(&keys, &ORDER)).unwrap();
        assert_eq!(json, r#"{"minions":["a","c"],"minions_denied":[],"minions_pre":["b"],"minions_rejected":[]}"#);
    }

    #[test]
    fn fingerprints_begin_with_the_servers_own() {
        let list = KeyList { master_fingerprint: "11:22".into(), keys: vec![key("a", KeyState::Accepted)], next: None };
        assert_eq!(fingerprints(&list), "Local Keys:\nmaster.pub:  11:22\nAccepted Keys:\na:  aa:bb");
    }
}
