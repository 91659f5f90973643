//! The reference page of the command line, made from the same definitions that parse it.
//!
//! A test keeps `docs/reference/cli.md` as this says; `UPDATE=1 cargo test -p saltern` rewrites it.

use crate::args::Cli;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

/// What every command takes.
const GLOBAL: [&str; 3] = ["data_dir", "url", "ca_file"];

/// The page, in Markdown.
fn cli_reference_page() -> String {
    let mut page = String::from(
        "# Command line\n\n<!-- Made from crates/cli/src/args.rs and crates/cli/src/cmd by `UPDATE=1 cargo test -p saltern`. -->\n\n",
    );
    let mut root = Cli::command();
    root.build();
    write_command(&mut page, &root, "saltern", 1);
    page
}

fn write_command(page: &mut String, command: &Command, name: &str, level: usize) {
    if level > 1 {
        let _ = writeln!(page, "{} `{name}`\n", "#".repeat(level));
    }
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "{}\n", about.trim().replace('<', "&lt;"));
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "```text\n{}\n```\n", usage.trim().replace("Usage: ", ""));
    write_arguments(page, command, level);
    if let Some(help) = command.get_after_help() {
        let _ = writeln!(page, "```text\n{}\n```\n", help.to_string().trim());
    }
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        write_command(page, verb, &format!("{name} {}", verb.get_name()), level + 1);
    }
}

fn write_arguments(page: &mut String, command: &Command, level: usize) {
    // What is global is told once, at the top.
    let told_elsewhere = |arg: &Arg| arg.is_global_set() && level > 1 && GLOBAL.contains(&arg.get_id().as_str());
    let is_ours =
        |arg: &&Arg| !matches!(arg.get_id().as_str(), "help" | "version") && !told_elsewhere(arg) && !arg.is_hide_set();
    let arguments: Vec<&Arg> = command.get_arguments().filter(is_ours).collect();
    if arguments.is_empty() {
        return;
    }
    page.push_str("| argument | what it does |\n|---|---|\n");
    for arg in arguments {
        let _ = writeln!(page, "| `{}` | {} |", name(arg), cell(&describe(arg)));
    }
    page.push('\n');
}

fn name(arg: &Arg) -> String {
    let values =
        arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    if arg.is_positional() {
        let dots = if arg.get_num_args().is_some_and(|range| range.max_values() > 1) { "..." } else { "" };
        return format!("{values}{dots}");
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if arg.get_action().takes_values() { format!("{flags} {values}") } else { flags }
}

fn describe(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|choice| !choice.is_hide_set())
        .map(|choice| format!("`{}`", choice.get_name()))
        .collect();
    if arg.get_action().takes_values() && !choices.is_empty() {
        let _ = write!(text, " ({})", choices.join(", "));
    }
    if let [default] = arg.get_default_values()
        && arg.get_action().takes_values()
        && !arg.is_hide_default_value_set()
    {
        let _ = write!(text, "; default `{}`", default.to_string_lossy());
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, " [env: {}]", variable.to_string_lossy());
    }
    text
}

/// Text that fits between the bars of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = cli_reference_page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/cli.md is stale: run `UPDATE=1 cargo test -p saltern`");
}
