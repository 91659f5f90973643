//! `saltern action types`: what can be asked for, and with which parameters.

use crate::args::Format;
use crate::failure::Failure;
use crate::output;
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use saltern_api::client::Client;
use saltern_api::shape::ActionType;
use std::process::ExitCode;

/// List the types of actions; with a type, its parameters
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this type, with its parameters
    #[arg(value_name = "TYPE")]
    kind: Option<String>,
}

pub(super) async fn run(args: Args, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    let types = client.action_types().await?.types;
    let Some(name) = args.kind else {
        output::show(format, &types, || table(&types, Style::of_stdout()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(kind) = types.iter().find(|kind| kind.name == name) else {
        return Err(Failure::new(format!("there is no action type {name:?}")).hint("`saltern action types` lists them"));
    };
    output::show(format, kind, || told(kind, Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn table(types: &[ActionType], style: Style) -> String {
    let mut table = Table::new(&["TYPE", "PARAMETERS", "WHAT IT DOES"]);
    for kind in types {
        let names = kind
            .params
            .iter()
            .map(|param| if param.required { param.name.clone() } else { format!("[{}]", param.name) });
        table.row([kind.name.clone(), names.collect::<Vec<_>>().join(" "), kind.help.clone()]);
    }
    table.show("There is none.", style)
}

fn told(kind: &ActionType, style: Style) -> String {
    let mut table = Table::new(&["PARAMETER", "KIND", "REQUIRED", "WHAT IT MEANS"]);
    for param in &kind.params {
        let required = if param.required { "yes" } else { "no" };
        table.row([param.name.clone(), param.kind.clone(), required.into(), param.help.clone()]);
    }
    let head = style.paint(Colour::Cyan, &format!("{}: {}", kind.name, kind.title));
    format!("{head}\n    {}\n\n{}", kind.help, table.show("It takes no parameters.", style))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::ActionParam;

    #[test]
    fn a_type_is_told_with_its_parameters() {
        let param = |name: &str, required| ActionParam {
            name: name.into(),
            help: format!("the {name}"),
            required,
            kind: "names".into(),
        };
        let kind = ActionType {
            name: "package_install".into(),
            title: "Install packages".into(),
            help: "Install them".into(),
            params: vec![param("packages", true), param("refresh", false)],
        };
        assert_eq!(
            table(std::slice::from_ref(&kind), Style::PLAIN),
            "\
TYPE             PARAMETERS          WHAT IT DOES
package_install  packages [refresh]  Install them"
        );
        assert_eq!(
            told(&kind, Style::PLAIN),
            "\
package_install: Install packages
    Install them

PARAMETER  KIND   REQUIRED  WHAT IT MEANS
packages   names  yes       the packages
refresh    names  no        the refresh"
        );
    }
}
