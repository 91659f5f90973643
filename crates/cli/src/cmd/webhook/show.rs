//! Webhooks for people: where each stands, and why it does not go on.

use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{text, when};
use saltern_api::shape::{DeadDelivery, Webhook, WebhookFilter, WebhookTest};
use saltern_core::time::Timestamp;

pub(super) fn table(webhooks: &[Webhook], style: Style) -> String {
    let mut table = Table::new(&["ID", "NAME", "OWNER", "STATE", "EVENT", "FILTER", "RECEIVER"]);
    for webhook in webhooks {
        table.row([
            webhook.id.to_string(),
            webhook.name.clone(),
            webhook.owner.clone(),
            state(webhook).to_owned(),
            webhook.cursor.to_string(),
            filter(&webhook.filter),
            webhook.url.clone(),
        ]);
    }
    table.show("There is no webhook.", style)
}

pub(super) fn detail(webhook: &Webhook, now: Timestamp, style: Style) -> String {
    let mut known = vec![
        ("Number", webhook.id.to_string()),
        ("Receiver", webhook.url.clone()),
        ("Filter", filter(&webhook.filter)),
        ("Owner", webhook.owner.clone()),
        ("State", state(webhook).into()),
        ("Last event done", webhook.cursor.to_string()),
        ("Made", when::when(webhook.created.0, now)),
        ("Version", webhook.version.to_string()),
    ];
    if let Some(why) = &webhook.suspended {
        known.push(("Suspended", why.clone()));
    }
    if let Some(error) = &webhook.last_error {
        known.push(("Last failure", error.clone()));
    }
    if webhook.failures > 0 {
        known.push(("Failed tries", webhook.failures.to_string()));
    }
    if let Some(next) = webhook.next_try {
        known.push(("Next try", when::when(next.0, now)));
    }
    fields(&webhook.name, &known, style)
}

pub(super) fn dead(dead: &[DeadDelivery], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["EVENT", "GIVEN UP", "TRIES", "WHY"]);
    for delivery in dead {
        table.row([
            delivery.number.to_string(),
            when::ago(delivery.at.0, now),
            delivery.attempts.to_string(),
            delivery.error.clone(),
        ]);
    }
    table.show("Everything has arrived.", style)
}

pub(super) fn test(test: &WebhookTest) -> String {
    let answered = test.status.map_or("no answer".into(), |status| format!("status {status}"));
    let verdict = test.error.as_deref().map_or("as it should be".into(), text::clean);
    format!("{answered} after {:.2} s: {verdict}", test.took)
}

fn state(webhook: &Webhook) -> &'static str {
    match webhook {
        Webhook { active: false, .. } => "inactive",
        Webhook { suspended: Some(_), .. } => "suspended",
        Webhook { failures: 1.., .. } => "failing",
        _ => "active",
    }
}

fn filter(filter: &WebhookFilter) -> String {
    let part = |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}"));
    let parts = [
        part("tag", filter.tag.clone()),
        part("jid", filter.jid.clone()),
        part("action", filter.action.map(|id| id.to_string())),
        part("minion", filter.minion.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use saltern_api::shape::Time;

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    pub(in super::super) fn webhook(id: i64, name: &str) -> Webhook {
        Webhook {
            id,
            name: name.into(),
            url: "https://chat.example.org/7".into(),
            filter: WebhookFilter { tag: Some("salt/job/*".into()), minion: Some("web*".into()), ..Default::default() },
            owner: "ann".into(),
            active: true,
            suspended: None,
            cursor: 12,
            failures: 0,
            next_try: None,
            last_error: None,
            created: Time(Timestamp::from_secs(1_794_772_591 - 600)),
            version: 1,
        }
    }

    #[test]
    fn the_list_tells_where_each_stands() {
        let stuck = Webhook { failures: 3, ..webhook(2, "log") };
        assert_eq!(
            table(&[webhook(1, "chat"), stuck], Style::PLAIN),
            "\
ID  NAME  OWNER  STATE    EVENT  FILTER                      RECEIVER
1   chat  ann    active   12     tag=salt/job/* minion=web*  https://chat.example.org/7
2   log   ann    failing  12     tag=salt/job/* minion=web*  https://chat.example.org/7"
        );
    }

    #[test]
    fn a_webhook_that_does_not_go_on_says_why() {
        let suspended = Some("its owner is disabled".into());
        let next_try = Some(Time(Timestamp::from_secs(1_794_772_591 + 60)));
        let stuck =
            Webhook { suspended, failures: 2, next_try, last_error: Some("status 500".into()), ..webhook(1, "chat") };
        let shown = detail(&stuck, NOW, Style::PLAIN);
        assert!(shown.contains("State            suspended\n"), "{shown}");
        assert!(
            shown.ends_with(
                "    Suspended        its owner is disabled\n    Last failure     status 500\n    Failed tries     2\n    \
                 Next try         2026-11-15 19:57:31 UTC (in 60 s)"
            ),
            "{shown}"
        );
    }

    #[test]
    fn a_test_tells_what_came_of_it() {
        let good = WebhookTest { status: Some(204), error: None, took: 0.123 };
        assert_eq!(test(&good), "status 204 after 0.12 s: as it should be");
        let bad = WebhookTest { status: None, error: Some("connection refused".into()), took: 1.0 };
        assert_eq!(test(&bad), "no answer after 1.00 s: connection refused");
    }
}
