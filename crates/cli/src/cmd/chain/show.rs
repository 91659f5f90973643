//! Chains for people: a list, and one with its steps as sentences.

use super::sentence;
use crate::output::fields::fields;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::when;
use saltern_api::shape::{Chain, ChainDetail};
use saltern_core::time::Timestamp;

pub(super) fn table(chains: &[Chain], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ID", "NAME", "OWNER", "SHARED", "STEPS", "CHANGED", "DESCRIPTION"]);
    for chain in chains {
        table.row([
            chain.id.to_string(),
            chain.name.clone(),
            chain.owner.clone(),
            yes_no(chain.shared).to_owned(),
            chain.step_count.to_string(),
            when::ago(chain.changed.0, now),
            chain.description.lines().next().unwrap_or_default().chars().take(60).collect(),
        ]);
    }
    table.show("There is no chain; `saltern chain create` makes one.", style)
}

pub(super) fn detail(detail: &ChainDetail, now: Timestamp, style: Style) -> String {
    let chain = &detail.chain;
    let mut known = vec![
        ("Number", chain.id.to_string()),
        ("Owner", chain.owner.clone()),
        ("Shared", yes_no(chain.shared).to_owned()),
        ("Changed", when::when(chain.changed.0, now)),
        ("Version", chain.version.to_string()),
    ];
    // What was made through the control socket belongs to none.
    if !chain.org.is_empty() {
        known.push(("Organisation", chain.org.clone()));
    }
    if !chain.description.is_empty() {
        known.push(("Description", chain.description.clone()));
    }
    format!("{}\n\n{}", fields(&chain.name, &known, style), sentence::list(&detail.steps, style))
}

fn yes_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::chain::{Step, StepTarget};
    use saltern_core::value::Map;

    pub(in super::super) const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    pub(in super::super) fn chain() -> ChainDetail {
        let at = Time(Timestamp::from_secs(1_794_772_591 - 600));
        let chain = Chain {
            id: 7,
            name: "patch-web".into(),
            owner: "ann".into(),
            org: "default".into(),
            description: "Patches the web servers\nand more".into(),
            shared: true,
            step_count: 2,
            created: at,
            changed: at,
            version: 3,
        };
        let update = Step { target: Some(StepTarget::glob("web*")), ..Step::new("package_update", Map::new()) };
        ChainDetail { chain, steps: vec![update, Step::new("reboot", Map::new())] }
    }

    #[test]
    fn the_list_tells_whose_and_how_long_each_is() {
        assert_eq!(
            table(&[chain().chain], NOW, Style::PLAIN),
            "\
ID  NAME       OWNER  SHARED  STEPS  CHANGED     DESCRIPTION
7   patch-web  ann    yes     2      10 min ago  Patches the web servers"
        );
    }

    #[test]
    fn a_chain_is_shown_with_its_steps() {
        assert_eq!(
            detail(&chain(), NOW, Style::PLAIN),
            "\
patch-web:
    Number        7
    Owner         ann
    Shared        yes
    Changed       2026-11-15 19:46:31 UTC (10 min ago)
    Version       3
    Organisation  default
    Description   Patches the web servers?and more

  1. update all packages on glob web*
  2. reboot on whom the launch names"
        );
    }
}
